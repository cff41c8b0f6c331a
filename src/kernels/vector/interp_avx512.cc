#include <cstddef>
#include <utility>

#include "kernels/vector/machine.h"
#include "kernels/vector/simd_avx512.h"

namespace ge::kernels::vector {

#if defined(__x86_64__)
GE_TARGET_AVX512_BEGIN
namespace avx512 {
#define GE_SIMD_NS avx512
#ifndef GE_WIDE_VECTORS
#define GE_WIDE_VECTORS 8
#endif
#include "kernels/vector/interp-inl.h"
}  // namespace avx512
GE_TARGET_END

const Table* avx512_table() {
  static const Table t = avx512::make_table();
  return &t;
}
#else
const Table* avx512_table() { return nullptr; }
#endif

}  // namespace ge::kernels::vector
