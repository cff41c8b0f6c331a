#include "kernels/isa.h"

#include <atomic>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace ge::kernels {
namespace {

Isa from_environment() {
  const char* v = std::getenv("GE_ISA");
  Isa best = best_isa();
  if (!v) return best;
  for (Isa i : {Isa::portable, Isa::avx2, Isa::avx512})
    if (name(i) == v && i <= best) return i;
  return best;
}

std::atomic<Isa>& current() {
  static std::atomic<Isa> i{from_environment()};
  return i;
}

}  // namespace

Isa best_isa() {
#if defined(__x86_64__)
  static const Isa best = [] {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::portable;
    bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
    return v4 ? Isa::avx512 : Isa::avx2;
  }();
  return best;
#else
  return Isa::portable;
#endif
}

Isa isa() { return current().load(std::memory_order_relaxed); }

bool set_isa(Isa i) {
  if (i > best_isa()) return false;
  current() = i;
  return true;
}

std::string_view name(Isa i) {
  return i == Isa::avx512 ? "avx512" : i == Isa::avx2 ? "avx2" : "portable";
}

// CPUID leaf 7.1: gcc 12's __builtin_cpu_supports does not know the name.
bool has_avx_vnni() {
#if defined(__x86_64__)
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & (1u << 4));
  }();
  return isa() >= Isa::avx2 && has;
#else
  return false;
#endif
}

bool has_avx512_vnni() {
#if defined(__x86_64__)
  return isa() == Isa::avx512 && __builtin_cpu_supports("avx512vnni");
#else
  return false;
#endif
}

bool has_avx512_bf16() {
#if defined(__x86_64__)
  return isa() == Isa::avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace ge::kernels
