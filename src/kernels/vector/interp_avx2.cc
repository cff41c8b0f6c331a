#include <cstddef>
#include <utility>

#include "kernels/vector/machine.h"
#include "kernels/vector/simd_avx2.h"

namespace ge::kernels::vector {

#if defined(__x86_64__)
GE_TARGET_AVX2_BEGIN
namespace avx2 {
#define GE_SIMD_NS avx2
#ifndef GE_WIDE_VECTORS
#define GE_WIDE_VECTORS 8
#endif
#include "kernels/vector/interp-inl.h"
}  // namespace avx2
GE_TARGET_END

const Table* avx2_table() {
  static const Table t = avx2::make_table();
  return &t;
}
#else
const Table* avx2_table() { return nullptr; }
#endif

}  // namespace ge::kernels::vector
