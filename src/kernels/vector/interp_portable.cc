#include <cstddef>
#include <utility>

#include "kernels/vector/machine.h"
#include "kernels/vector/simd_portable.h"

namespace ge::kernels::vector {

namespace portable {
#define GE_SIMD_NS portable
#ifndef GE_WIDE_VECTORS
#define GE_WIDE_VECTORS 8
#endif
#include "kernels/vector/interp-inl.h"
}  // namespace portable

const Table& portable_table() {
  static const Table t = portable::make_table();
  return t;
}

}  // namespace ge::kernels::vector
