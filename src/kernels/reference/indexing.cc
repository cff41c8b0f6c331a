// The meaning of the ops that index by data, as plain loops. Parameters in ints:
//   ref.GatherElements   axis; in: data, indices
//   ref.GatherND         batch_dims; in: data, indices
//   ref.ScatterElements  axis, reduction (0 none, 1 add, 2 mul, 3 max, 4 min); in: data, indices, updates
//   ref.ScatterND        reduction; in: data, indices, updates
//   ref.OneHot           axis; in: indices (any number type), values [off, on]; the depth is the output's
//   ref.Compress         axis, or -1 for the flat input; in: data, condition (bool, one axis). The output
//                        has as many entries as the condition holds
//   ref.NonZero          none; in: x; out: i64 [axes of x (at least 1), number of elements that are not 0]
//   ref.ReverseSequence  batch_axis, time_axis; in: data, lengths (i64)
#include <algorithm>

#include "kernels/move/reduce_element.h"
#include "kernels/reference/index.h"

namespace ge::kernels::move {
namespace {

Result<Work> prepare_gather_elements(const Call& c) {
  GE_RETURN_IF_ERROR(check_gather_elements(c, "ref.GatherElements"));
  return one_chunk(c);
}
Status run_gather_elements(const Call& c, int64_t) {
  const View &x = c.in[0], &idx = c.in[1], &y = c.out[0];
  int64_t axis = c.ints[0], bad = 0;
  bool good = each_index(y, [&](const int64_t* index) {
    int64_t from[kMaxRank];
    std::copy(index, index + y.rank, from);
    from[axis] = bad = load_i64(idx.dtype, address(idx, index));
    if (!wrap_index(&from[axis], x.dims[axis])) return false;
    copy_element(address(y, index), address(x, from), y.dtype);
    return true;
  });
  if (!good) return index_error("GatherElements", bad, x.dims[axis]);
  return ok();
}

// The index of data that a tuple selects: batch axes, tuple, and zeros. False: out of range.
bool tuple_index(const View& data, const View& idx, const int64_t* at, int batch, int64_t* out, int64_t* bad, int64_t* size) {
  int64_t tuple[kMaxRank];
  std::copy(at, at + idx.rank - 1, tuple);
  std::fill(out, out + data.rank, 0);
  std::copy(at, at + batch, out);
  for (int64_t k = 0; k < idx.dims[idx.rank - 1]; ++k) {
    tuple[idx.rank - 1] = k;
    int64_t axis = batch + k;
    out[axis] = *bad = load_i64(idx.dtype, address(idx, tuple));
    *size = data.dims[axis];
    if (!wrap_index(&out[axis], *size)) return false;
  }
  return true;
}

Result<Work> prepare_gather_nd(const Call& c) {
  GE_RETURN_IF_ERROR(check_gather_nd(c, "ref.GatherND"));
  return one_chunk(c);
}
Status run_gather_nd(const Call& c, int64_t) {
  const View &x = c.in[0], &idx = c.in[1], &y = c.out[0];
  int batch = static_cast<int>(c.ints[0]), lead = idx.rank - 1;
  int64_t bad = 0, size = 0;
  bool good = each_index(y, [&](const int64_t* index) {
    int64_t from[kMaxRank];
    if (!tuple_index(x, idx, index, batch, from, &bad, &size)) return false;
    std::copy(index + lead, index + y.rank, from + batch + idx.dims[lead]);
    copy_element(address(y, index), address(x, from), y.dtype);
    return true;
  });
  if (!good) return index_error("GatherND", bad, size);
  return ok();
}

void copy_data(const Call& c) {
  if (c.in[0].data == c.out[0].data) return;
  fill_from(c.out[0], [&](const int64_t* index) { return address(c.in[0], index); });
}

Result<Work> prepare_scatter_elements(const Call& c) {
  GE_RETURN_IF_ERROR(check_scatter_elements(c, "ref.ScatterElements"));
  return one_chunk(c);
}
Status run_scatter_elements(const Call& c, int64_t) {
  const View &idx = c.in[1], &up = c.in[2], &y = c.out[0];
  copy_data(c);
  int64_t axis = c.ints[0], bad = 0;
  bool good = each_index(idx, [&](const int64_t* index) {
    int64_t to[kMaxRank];
    std::copy(index, index + y.rank, to);
    to[axis] = bad = load_i64(idx.dtype, address(idx, index));
    if (!wrap_index(&to[axis], y.dims[axis])) return false;
    reduce_element(y.dtype, static_cast<Reduction>(c.ints[1]), address(y, to), address(up, index));
    return true;
  });
  if (!good) return index_error("ScatterElements", bad, y.dims[axis]);
  return ok();
}

Result<Work> prepare_scatter_nd(const Call& c) {
  GE_RETURN_IF_ERROR(check_scatter_nd(c, "ref.ScatterND"));
  return one_chunk(c);
}
Status run_scatter_nd(const Call& c, int64_t) {
  const View &idx = c.in[1], &up = c.in[2], &y = c.out[0];
  copy_data(c);
  int lead = idx.rank - 1;
  int64_t bad = 0, size = 0;
  bool good = each_index(up, [&](const int64_t* index) {
    int64_t to[kMaxRank];
    if (!tuple_index(y, idx, index, 0, to, &bad, &size)) return false;
    std::copy(index + lead, index + up.rank, to + idx.dims[lead]);
    reduce_element(y.dtype, static_cast<Reduction>(c.ints[0]), address(y, to), address(up, index));
    return true;
  });
  if (!good) return index_error("ScatterND", bad, size);
  return ok();
}

Result<Work> prepare_one_hot(const Call& c) {
  constexpr std::string_view kName = "ref.OneHot";
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 2, 1, 1));
  const View &idx = c.in[0], &v = c.in[1], &y = c.out[0];
  if (!is_number(idx.dtype) || v.dtype != y.dtype || v.rank != 1 || v.dims[0] != 2) return bad_call(kName, "wrong inputs");
  if (c.ints.size() != 1 || c.ints[0] < 0 || c.ints[0] > idx.rank || y.rank != idx.rank + 1) return bad_call(kName, "the axis is wrong");
  for (int i = 0; i < idx.rank; ++i)
    if (idx.dims[i] != y.dims[i < c.ints[0] ? i : i + 1])
      return bad_call(kName, format("indices {} cannot give an output {}", dims_text(idx), dims_text(y)));
  return one_chunk(c);
}
Status run_one_hot(const Call& c, int64_t) {
  const View &idx = c.in[0], &v = c.in[1], &y = c.out[0];
  int64_t axis = c.ints[0], depth = y.dims[axis], off = 0, on = 1;
  fill_from(y, [&](const int64_t* index) {
    int64_t from[kMaxRank];
    std::copy(index, index + axis, from);
    std::copy(index + axis + 1, index + y.rank, from + axis);
    int64_t i = load_i64(idx.dtype, address(idx, from));
    // Out of range: off everywhere.
    return address(v, wrap_index(&i, depth) && i == index[axis] ? &on : &off);
  });
  return ok();
}

Result<Work> prepare_compress(const Call& c) {
  constexpr std::string_view kName = "ref.Compress";
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 2, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (c.in[1].dtype != DType::boolean || c.in[1].rank != 1 || x.dtype != y.dtype) return bad_call(kName, "wrong types");
  if (c.ints.size() != 1 || c.ints[0] < -1 || c.ints[0] >= x.rank) return bad_call(kName, "the axis is wrong");
  bool fits = c.ints[0] < 0 ? y.rank == 1 : y.rank == x.rank;
  for (int i = 0; fits && c.ints[0] >= 0 && i < x.rank; ++i) fits = i == c.ints[0] || x.dims[i] == y.dims[i];
  if (!fits) return bad_call(kName, format("an input {} cannot give an output {}", dims_text(x), dims_text(y)));
  return one_chunk(c);
}
Status run_compress(const Call& c, int64_t) {
  const View &x = c.in[0], &condition = c.in[1], &y = c.out[0];
  int64_t axis = c.ints[0], n = axis < 0 ? x.count() : x.dims[axis], taken = 0;
  auto wrong = [&] { return error(code::kRunFailed, format("Compress: the condition does not hold {} times", y.dims[std::max<int64_t>(axis, 0)])); };
  for (int64_t i = 0; i < std::min(n, condition.dims[0]); ++i) {
    if (condition.data[i * condition.strides[0]] == std::byte{0}) continue;
    if (taken == y.dims[std::max<int64_t>(axis, 0)]) return wrong();
    if (axis < 0) {
      int64_t index[kMaxRank], left = i;
      for (int a = x.rank - 1; a >= 0; --a) index[a] = left % x.dims[a], left /= x.dims[a];
      copy_element(address(y, &taken), address(x, index), x.dtype);
    } else {
      each_index(y, [&](const int64_t* index) {
        if (index[axis] != taken) return true;
        int64_t from[kMaxRank];
        std::copy(index, index + y.rank, from);
        from[axis] = i;
        copy_element(address(y, index), address(x, from), x.dtype);
        return true;
      });
    }
    ++taken;
  }
  return taken == y.dims[std::max<int64_t>(axis, 0)] ? ok() : Status(wrong());
}

Result<Work> prepare_non_zero(const Call& c) {
  constexpr std::string_view kName = "ref.NonZero";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (x.dtype == DType::none || y.dtype != DType::i64 || y.rank != 2 || y.dims[0] != std::max(x.rank, 1))
    return bad_call(kName, "wrong types or ranks");
  return Work{};
}
Status run_non_zero(const Call& c, int64_t) {
  const View &x = c.in[0], &y = c.out[0];
  int64_t found = 0;
  each_index(x, [&](const int64_t* index) {
    const std::byte* p = address(x, index);
    if (is_zero(x.dtype, p)) return true;
    if (found < y.dims[1])
      for (int64_t i = 0; i < y.dims[0]; ++i) {
        int64_t at[2] = {i, found};
        store_i64(DType::i64, address(y, at), x.rank ? index[i] : 0);
      }
    ++found;
    return true;
  });
  if (found != y.dims[1]) return error(code::kRunFailed, format("NonZero: {} elements are not 0, not {}", found, y.dims[1]));
  return ok();
}

Result<Work> prepare_reverse(const Call& c) {
  constexpr std::string_view kName = "ref.ReverseSequence";
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 2, 1, 1));
  const View &x = c.in[0], &n = c.in[1], &y = c.out[0];
  if (x.dtype != y.dtype || n.dtype != DType::i64 || !same_dims(x, y)) return bad_call(kName, "wrong types or sizes");
  if (c.ints.size() != 2 || std::min(c.ints[0], c.ints[1]) < 0 || std::max(c.ints[0], c.ints[1]) >= x.rank || c.ints[0] == c.ints[1])
    return bad_call(kName, "wrong axes");
  if (n.rank != 1 || n.dims[0] != x.dims[c.ints[0]]) return bad_call(kName, "not one length for each batch");
  return one_chunk(c);
}
Status run_reverse(const Call& c, int64_t) {
  const View &x = c.in[0], &lengths = c.in[1], &y = c.out[0];
  int64_t batch = c.ints[0], time = c.ints[1];
  for (int64_t b = 0; b < lengths.dims[0]; ++b)
    if (int64_t n = load_index(lengths, b * lengths.strides[0]); n < 0 || n > x.dims[time])
      return error(code::kRunFailed, format("ReverseSequence: length {} is outside 0..{}", n, x.dims[time]));
  fill_from(y, [&](const int64_t* index) {
    int64_t from[kMaxRank], n = load_index(lengths, index[batch] * lengths.strides[0]);
    std::copy(index, index + y.rank, from);
    if (index[time] < n) from[time] = n - 1 - index[time];
    return address(x, from);
  });
  return ok();
}

const Register registered[] = {
    Register({.name = "ref.GatherElements", .prepare = prepare_gather_elements, .run = run_gather_elements}),
    Register({.name = "ref.GatherND", .prepare = prepare_gather_nd, .run = run_gather_nd}),
    Register({.name = "ref.ScatterElements", .prepare = prepare_scatter_elements, .run = run_scatter_elements, .in_place = 1}),
    Register({.name = "ref.ScatterND", .prepare = prepare_scatter_nd, .run = run_scatter_nd, .in_place = 1}),
    Register({.name = "ref.OneHot", .prepare = prepare_one_hot, .run = run_one_hot}),
    Register({.name = "ref.Compress", .prepare = prepare_compress, .run = run_compress}),
    Register({.name = "ref.NonZero", .prepare = prepare_non_zero, .run = run_non_zero}),
    Register({.name = "ref.ReverseSequence", .prepare = prepare_reverse, .run = run_reverse}),
};

}  // namespace
}  // namespace ge::kernels::move
