// Fast conversions of contiguous rows for the type pairs that models use; the others go through
// element.h. Same results for every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace ge::kernels::move {

using CastRow = void (*)(const std::byte* from, std::byte* to, int64_t n);
// For the instruction set now in use; null when the pair has no fast row.
CastRow cast_row(DType from, DType to);

}  // namespace ge::kernels::move
