// What the per-ISA SIMD headers share: target regions without -m flags, attributes, lane constants.
// simd_avx512.h, simd_avx2.h, simd_neon.h and simd_portable.h each define the same small vocabulary (V, I, M
// and functions over them) in a namespace of their own, and the functions of math-inl.h on top of it.
// Use them from code that lies between GE_TARGET_*_BEGIN and GE_TARGET_END, or whose target attribute
// is at least that string; all else they need must be included before such a region.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define GE_AVX512_TARGET "avx,avx2,fma,f16c,bmi,bmi2,avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
#define GE_AVX2_TARGET "avx,avx2,fma,f16c,bmi,bmi2"

#define GE_PRAGMA_(x) _Pragma(#x)
#if defined(__clang__)
#define GE_TARGET_BEGIN_(t) GE_PRAGMA_(clang attribute push(__attribute__((target(t))), apply_to = function))
#define GE_TARGET_END _Pragma("clang attribute pop")
#else
#define GE_TARGET_BEGIN_(t) _Pragma("GCC push_options") GE_PRAGMA_(GCC target(t))
#define GE_TARGET_END _Pragma("GCC pop_options")
#endif
#define GE_TARGET_AVX512_BEGIN GE_TARGET_BEGIN_(GE_AVX512_TARGET)
#define GE_TARGET_AVX2_BEGIN GE_TARGET_BEGIN_(GE_AVX2_TARGET)

#define GE_SIMD static inline __attribute__((always_inline))

// A guaranteed tail call where the compiler can promise one; elsewhere gcc makes it at -O2.
#if defined(__clang__) && __has_cpp_attribute(clang::musttail)
#define GE_TAIL_CALL [[clang::musttail]] return
#else
#define GE_TAIL_CALL return
#endif
