// The reductions of scattering ops on one element of any number type, and checks that they and the
// gathering ops share.
#pragma once

#include <algorithm>

#include "kernels/move/check.h"
#include "kernels/move/element.h"

namespace ge::kernels::move {

enum class Reduction : int64_t { none = 0, add = 1, mul = 2, max = 3, min = 4 };

template <class T>
inline T reduced(Reduction r, T a, T b) {
  switch (r) {
    case Reduction::add: return a + b;
    case Reduction::mul: return a * b;
    // A NaN on either side stays.
    case Reduction::max: return a != a ? a : b != b ? b : std::max(a, b);
    case Reduction::min: return a != a ? a : b != b ? b : std::min(a, b);
    default: return b;
  }
}

// *to = reduction(*to, *from).
inline void reduce_element(DType t, Reduction r, std::byte* to, const std::byte* from) {
  if (r == Reduction::none) {
    std::copy(from, from + size_of(t), to);
  } else if (is_float(t)) {
    store_f64(t, to, reduced(r, load_f64(t, to), load_f64(t, from)));
  } else if (t == DType::u64 || r == Reduction::add || r == Reduction::mul) {
    // Unsigned, so that overflow wraps.
    store_i64(t, to, static_cast<int64_t>(reduced(r, static_cast<uint64_t>(load_i64(t, to)), static_cast<uint64_t>(load_i64(t, from)))));
  } else {
    store_i64(t, to, reduced(r, load_i64(t, to), load_i64(t, from)));
  }
}

inline Status check_reduction(DType t, int64_t r, std::string_view kernel) {
  if (r < 0 || r > 4) return bad_call(kernel, format("unknown reduction {}", r));
  if (r != 0 && !is_number(t)) return bad_call(kernel, format("cannot reduce {}", name(t)));
  return ok();
}

inline Error index_error(std::string_view op, int64_t index, int64_t size) {
  return error(code::kRunFailed, format("{}: index {} is outside -{}..{}", op, index, size, size - 1));
}
// Index counted from the front; false when out of range.
inline bool wrap_index(int64_t* i, int64_t size) {
  if (*i < 0) *i += size;
  return *i >= 0 && *i < size;
}

// GatherElements: out has the sizes of the indices; they fit into data but for the axis.
inline Status check_gather_elements(const Call& c, std::string_view kernel) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 2, 2, 1, 1));
  const View &x = c.in[0], &idx = c.in[1], &y = c.out[0];
  if (!is_index(idx.dtype) || x.dtype != y.dtype) return bad_call(kernel, "wrong types");
  if (c.ints.size() != 1 || c.ints[0] < 0 || c.ints[0] >= x.rank) return bad_call(kernel, "the axis is wrong");
  if (idx.rank != x.rank || !same_dims(idx, y)) return bad_call(kernel, format("indices {} cannot give an output {}: both need one shape", dims_text(idx), dims_text(y)));
  for (int i = 0; i < x.rank; ++i)
    if (i != c.ints[0] && idx.dims[i] > x.dims[i])
      return bad_call(kernel, format("indices {} are larger than the data {}", dims_text(idx), dims_text(x)));
  return ok();
}

// ScatterElements: ints [axis, reduction]; in data, indices, updates.
inline Status check_scatter_elements(const Call& c, std::string_view kernel) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 3, 3, 1, 1));
  const View &x = c.in[0], &idx = c.in[1], &up = c.in[2], &y = c.out[0];
  if (!is_index(idx.dtype) || x.dtype != y.dtype || up.dtype != x.dtype) return bad_call(kernel, "wrong types");
  if (c.ints.size() != 2 || c.ints[0] < 0 || c.ints[0] >= x.rank) return bad_call(kernel, "the axis is wrong");
  GE_RETURN_IF_ERROR(check_reduction(x.dtype, c.ints[1], kernel));
  if (!same_dims(x, y) || !same_dims(idx, up) || idx.rank != x.rank) return bad_call(kernel, "sizes do not fit");
  for (int i = 0; i < x.rank; ++i)
    if (i != c.ints[0] && idx.dims[i] > x.dims[i])
      return bad_call(kernel, format("indices {} are larger than the data {}", dims_text(idx), dims_text(x)));
  return ok();
}

// Sizes of the block that one index tuple selects: data[batch + k ...].
inline Status check_tuples(const View& data, const View& idx, const View& block, int batch, std::string_view kernel) {
  if (idx.rank < 1 || batch < 0 || batch > idx.rank - 1 || batch > data.rank) return bad_call(kernel, "wrong ranks");
  int64_t k = idx.dims[idx.rank - 1];
  if (k > data.rank - batch) return bad_call(kernel, format("tuples of {} numbers cannot name places in {}", k, dims_text(data)));
  int lead = idx.rank - 1, rest = data.rank - batch - static_cast<int>(k);
  bool fits = block.rank == lead + rest;
  for (int i = 0; fits && i < lead; ++i) fits = block.dims[i] == idx.dims[i];
  for (int i = 0; fits && i < rest; ++i) fits = block.dims[lead + i] == data.dims[batch + k + i];
  for (int i = 0; fits && i < batch; ++i) fits = data.dims[i] == idx.dims[i];
  if (!fits) return bad_call(kernel, format("data {} at indices {} are not {}", dims_text(data), dims_text(idx), dims_text(block)));
  return ok();
}

// GatherND: ints [batch_dims]; in data, indices.
inline Status check_gather_nd(const Call& c, std::string_view kernel) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 2, 2, 1, 1));
  if (!is_index(c.in[1].dtype) || c.in[0].dtype != c.out[0].dtype) return bad_call(kernel, "wrong types");
  if (c.ints.size() != 1 || c.ints[0] < 0 || c.ints[0] > kMaxRank) return bad_call(kernel, "has a wrong number of batch axes");
  return check_tuples(c.in[0], c.in[1], c.out[0], static_cast<int>(c.ints[0]), kernel);
}

// ScatterND: ints [reduction]; in data, indices, updates.
inline Status check_scatter_nd(const Call& c, std::string_view kernel) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 3, 3, 1, 1));
  const View &x = c.in[0], &up = c.in[2];
  if (!is_index(c.in[1].dtype) || x.dtype != c.out[0].dtype || up.dtype != x.dtype) return bad_call(kernel, "wrong types");
  if (c.ints.size() != 1) return bad_call(kernel, "has no reduction");
  GE_RETURN_IF_ERROR(check_reduction(x.dtype, c.ints[0], kernel));
  if (!same_dims(x, c.out[0])) return bad_call(kernel, "output and data differ in size");
  return check_tuples(x, c.in[1], up, 0, kernel);
}

}  // namespace ge::kernels::move
