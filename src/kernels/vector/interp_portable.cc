#include <cstddef>
#include <utility>

#include "kernels/vector/machine.h"

// The baseline of the build.
#if defined(__aarch64__)
#include "kernels/vector/simd_neon.h"
#define GE_SIMD_NS neon
#else
#include "kernels/vector/simd_portable.h"
#define GE_SIMD_NS portable
#endif

namespace ge::kernels::vector {

namespace GE_SIMD_NS {
#ifndef GE_WIDE_VECTORS
#define GE_WIDE_VECTORS 8
#endif
#include "kernels/vector/interp-inl.h"
}  // namespace GE_SIMD_NS

const Table& portable_table() {
  static const Table t = GE_SIMD_NS::make_table();
  return t;
}

}  // namespace ge::kernels::vector
