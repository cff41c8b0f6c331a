// The meaning of the ops that only move elements, as plain loops. Parameters in ints:
//   ref.Reshape    none: in 0 to out 0 in flat order (Identity, Flatten, Squeeze, Unsqueeze too)
//   ref.Transpose  perm, one for each axis of the output
//   ref.Slice      start for each axis, then step for each axis; the output says how many
//   ref.Concat     axis; any number of inputs
//   ref.Expand     none: in 0 broadcast to out 0
//   ref.Tile       none: in 0 repeated to the size of out 0
//   ref.Pad        mode (0 constant, 1 reflect, 2 edge, 3 wrap), then begin for each axis; in 1: the
//                  constant (one element), absent: zero bytes
//   ref.Gather     axis; in: data, indices (i32, i64)
//   ref.Where      none; in: condition (bool), x, y, each broadcast to the output
//   ref.Cast       saturate, round mode, as move.cast
#include <algorithm>
#include <array>

#include "kernels/move/pad_index.h"
#include "kernels/reference/index.h"

namespace ge::kernels::move {
namespace {

Status same_type(const Call& c, std::string_view kernel) {
  if (c.in[0].dtype != c.out[0].dtype) return bad_call(kernel, "input and output differ in type");
  return ok();
}

bool broadcasts(const View& v, const View& to) {
  if (v.rank > to.rank) return false;
  for (int i = 0; i < v.rank; ++i)
    if (v.dims[i] != 1 && v.dims[i] != to.dims[to.rank - v.rank + i]) return false;
  return true;
}
std::byte* broadcast_address(const View& v, const View& space, const int64_t* index) {
  int64_t at = 0;
  for (int i = 0; i < v.rank; ++i)
    if (v.dims[i] != 1) at += index[space.rank - v.rank + i] * v.strides[i];
  return v.data + at * size_of(v.dtype);
}

// ---- ref.Reshape

Result<Work> prepare_reshape(const Call& c) {
  constexpr std::string_view kName = "ref.Reshape";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  GE_RETURN_IF_ERROR(same_type(c, kName));
  if (c.in[0].count() != c.out[0].count())
    return bad_call(kName, format("{} cannot become {}: the numbers of elements differ", dims_text(c.in[0]), dims_text(c.out[0])));
  return one_chunk(c);
}
Status run_reshape(const Call& c, int64_t) {
  const View& x = c.in[0];
  int64_t flat = 0;
  fill_from(c.out[0], [&](const int64_t*) {
    int64_t index[kMaxRank], left = flat++;
    for (int i = x.rank - 1; i >= 0; --i) index[i] = left % x.dims[i], left /= x.dims[i];
    return address(x, index);
  });
  return ok();
}

// ---- ref.Transpose

Result<Work> prepare_transpose(const Call& c) {
  constexpr std::string_view kName = "ref.Transpose";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  GE_RETURN_IF_ERROR(same_type(c, kName));
  const View &x = c.in[0], &y = c.out[0];
  if (x.rank != y.rank || c.ints.size() != static_cast<size_t>(x.rank)) return bad_call(kName, "ranks differ");
  unsigned seen = 0;
  for (int i = 0; i < x.rank; ++i) {
    int64_t p = c.ints[static_cast<size_t>(i)];
    if (p < 0 || p >= x.rank || (seen >> p & 1)) return bad_call(kName, "not a permutation");
    seen |= 1u << p;
    if (y.dims[i] != x.dims[p]) return bad_call(kName, format("{} is not {} permuted", dims_text(y), dims_text(x)));
  }
  return one_chunk(c);
}
Status run_transpose(const Call& c, int64_t) {
  fill_from(c.out[0], [&](const int64_t* index) {
    int64_t from[kMaxRank];
    for (int i = 0; i < c.out[0].rank; ++i) from[c.ints[static_cast<size_t>(i)]] = index[i];
    return address(c.in[0], from);
  });
  return ok();
}

// ---- ref.Slice

Result<Work> prepare_slice(const Call& c) {
  constexpr std::string_view kName = "ref.Slice";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  GE_RETURN_IF_ERROR(same_type(c, kName));
  const View &x = c.in[0], &y = c.out[0];
  auto rank = static_cast<size_t>(x.rank);
  if (x.rank != y.rank || c.ints.size() != 2 * rank) return bad_call(kName, "ranks differ");
  for (size_t i = 0; i < rank; ++i) {
    int64_t n = y.dims[i], first = c.ints[i], step = c.ints[rank + i], last;
    if (n == 0) continue;
    if (__builtin_mul_overflow(n - 1, step, &last) || __builtin_add_overflow(last, first, &last) || first < 0 ||
        first >= x.dims[i] || last < 0 || last >= x.dims[i])
      return bad_call(kName, format("a slice {} from {} in steps of {} is not within {}", dims_text(y), first, step, dims_text(x)));
  }
  return one_chunk(c);
}
Status run_slice(const Call& c, int64_t) {
  auto rank = static_cast<size_t>(c.out[0].rank);
  fill_from(c.out[0], [&](const int64_t* index) {
    int64_t from[kMaxRank];
    for (size_t i = 0; i < rank; ++i) from[i] = c.ints[i] + index[i] * c.ints[rank + i];
    return address(c.in[0], from);
  });
  return ok();
}

// ---- ref.Concat

Result<Work> prepare_concat(const Call& c) {
  constexpr std::string_view kName = "ref.Concat";
  GE_RETURN_IF_ERROR(check_call(c, kName, c.in.size(), c.in.size(), 1, 1));
  const View& y = c.out[0];
  if (c.ints.size() != 1 || c.ints[0] < 0 || c.ints[0] >= y.rank) return bad_call(kName, "the axis is wrong");
  int64_t sum = 0;
  for (auto& x : c.in) {
    if (x.dtype != y.dtype || x.rank != y.rank) return bad_call(kName, "an input differs in type or rank");
    for (int i = 0; i < y.rank; ++i)
      if (i != c.ints[0] && x.dims[i] != y.dims[i])
        return bad_call(kName, format("{} does not fit into {}", dims_text(x), dims_text(y)));
    if (__builtin_add_overflow(sum, x.dims[c.ints[0]], &sum)) return bad_call(kName, "an input is too large");
  }
  if (sum != y.dims[c.ints[0]]) return bad_call(kName, format("the inputs have {} in all, not {}", sum, y.dims[c.ints[0]]));
  return one_chunk(c);
}
Status run_concat(const Call& c, int64_t) {
  int64_t axis = c.ints[0], at = 0;
  for (auto& x : c.in) {
    each_index(x, [&](const int64_t* index) {
      int64_t to[kMaxRank];
      std::copy(index, index + x.rank, to);
      to[axis] += at;
      copy_element(address(c.out[0], to), address(x, index), x.dtype);
      return true;
    });
    at += x.dims[axis];
  }
  return ok();
}

// ---- ref.Expand, ref.Tile

Result<Work> prepare_expand(const Call& c) {
  constexpr std::string_view kName = "ref.Expand";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  GE_RETURN_IF_ERROR(same_type(c, kName));
  if (!broadcasts(c.in[0], c.out[0]))
    return bad_call(kName, format("{} does not broadcast to {}", dims_text(c.in[0]), dims_text(c.out[0])));
  return one_chunk(c);
}
Status run_expand(const Call& c, int64_t) {
  fill_from(c.out[0], [&](const int64_t* index) { return broadcast_address(c.in[0], c.out[0], index); });
  return ok();
}

Result<Work> prepare_tile(const Call& c) {
  constexpr std::string_view kName = "ref.Tile";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  GE_RETURN_IF_ERROR(same_type(c, kName));
  const View &x = c.in[0], &y = c.out[0];
  if (x.rank != y.rank) return bad_call(kName, "ranks differ");
  for (int i = 0; i < x.rank; ++i)
    if (x.dims[i] == 0 ? y.dims[i] != 0 : y.dims[i] % x.dims[i] != 0)
      return bad_call(kName, format("{} is not {} repeated", dims_text(y), dims_text(x)));
  return one_chunk(c);
}
Status run_tile(const Call& c, int64_t) {
  const View& x = c.in[0];
  fill_from(c.out[0], [&](const int64_t* index) {
    int64_t from[kMaxRank];
    for (int i = 0; i < x.rank; ++i) from[i] = index[i] % x.dims[i];
    return address(x, from);
  });
  return ok();
}

// ---- ref.Pad

Result<Work> prepare_pad(const Call& c) {
  constexpr std::string_view kName = "ref.Pad";
  GE_RETURN_IF_ERROR(check_pad(c, kName));
  return one_chunk(c);
}
Status run_pad(const Call& c, int64_t) {
  const View &x = c.in[0], &y = c.out[0];
  auto mode = static_cast<PadMode>(c.ints[0]);
  std::array<std::byte, 16> zero{};
  const std::byte* constant = has_input(c, 1) ? c.in[1].data : zero.data();
  fill_from(y, [&](const int64_t* index) -> const std::byte* {
    int64_t from[kMaxRank];
    for (int i = 0; i < x.rank; ++i) {
      from[i] = pad_source(mode, index[i] - c.ints[static_cast<size_t>(1 + i)], x.dims[i]);
      if (from[i] < 0) return constant;
    }
    return address(x, from);
  });
  return ok();
}

// ---- ref.Gather

Result<Work> prepare_gather(const Call& c) {
  GE_TRY(Work checked, find("move.gather")->prepare(c));  // the same rules
  (void)checked;
  return one_chunk(c);
}
Status run_gather(const Call& c, int64_t) {
  const View &x = c.in[0], &idx = c.in[1], &y = c.out[0];
  int64_t axis = c.ints[0], n = x.dims[axis], bad = 0;
  bool good = each_index(y, [&](const int64_t* index) {
    int64_t from[kMaxRank], v = load_i64(idx.dtype, address(idx, index + axis));
    if (v < -n || v >= n) return bad = v, false;
    std::copy(index, index + axis, from);
    from[axis] = v < 0 ? v + n : v;
    std::copy(index + axis + idx.rank, index + y.rank, from + axis + 1);
    copy_element(address(y, index), address(x, from), y.dtype);
    return true;
  });
  if (!good) return error(code::kRunFailed, format("Gather: index {} is outside -{}..{}", bad, n, n - 1));
  return ok();
}

// ---- ref.Where

Result<Work> prepare_where(const Call& c) {
  constexpr std::string_view kName = "ref.Where";
  GE_RETURN_IF_ERROR(check_call(c, kName, 3, 3, 1, 1));
  if (c.in[0].dtype != DType::boolean) return bad_call(kName, "the condition is not bool");
  for (size_t i = 0; i < 3; ++i) {
    if (i && c.in[i].dtype != c.out[0].dtype) return bad_call(kName, "inputs and output differ in type");
    if (!broadcasts(c.in[i], c.out[0]))
      return bad_call(kName, format("{} does not broadcast to {}", dims_text(c.in[i]), dims_text(c.out[0])));
  }
  return one_chunk(c);
}
Status run_where(const Call& c, int64_t) {
  const View& y = c.out[0];
  fill_from(y, [&](const int64_t* index) {
    bool yes = *broadcast_address(c.in[0], y, index) != std::byte{0};
    return broadcast_address(c.in[yes ? 1 : 2], y, index);
  });
  return ok();
}

// ---- ref.Cast

Result<Work> prepare_cast(const Call& c) {
  GE_TRY(Work checked, find("move.cast")->prepare(c));
  (void)checked;
  return one_chunk(c);
}
Status run_cast(const Call& c, int64_t) {
  const View &x = c.in[0], &y = c.out[0];
  CastMode mode;
  if (!c.ints.empty()) mode.saturate = c.ints[0] != 0;
  if (c.ints.size() > 1) mode.round = static_cast<Round>(c.ints[1]);
  each_index(y, [&](const int64_t* index) {
    std::byte *to = address(y, index), *from = address(x, index);
    if (x.dtype == y.dtype) copy_element(to, from, x.dtype);
    else if (is_float(x.dtype) || x.dtype == DType::u64) {
      // u64 to an integer keeps the low bits, which a double would lose.
      if (x.dtype == DType::u64 && !is_float(y.dtype)) store_i64(y.dtype, to, load_i64(x.dtype, from), mode);
      else store_f64(y.dtype, to, load_f64(x.dtype, from), mode);
    } else {
      store_i64(y.dtype, to, load_i64(x.dtype, from), mode);
    }
    return true;
  });
  return ok();
}

const Register registered[] = {
    Register({.name = "ref.Reshape", .prepare = prepare_reshape, .run = run_reshape}),
    Register({.name = "ref.Transpose", .prepare = prepare_transpose, .run = run_transpose}),
    Register({.name = "ref.Slice", .prepare = prepare_slice, .run = run_slice}),
    Register({.name = "ref.Concat", .prepare = prepare_concat, .run = run_concat}),
    Register({.name = "ref.Expand", .prepare = prepare_expand, .run = run_expand}),
    Register({.name = "ref.Tile", .prepare = prepare_tile, .run = run_tile}),
    Register({.name = "ref.Pad", .prepare = prepare_pad, .run = run_pad}),
    Register({.name = "ref.Gather", .prepare = prepare_gather, .run = run_gather}),
    Register({.name = "ref.Where", .prepare = prepare_where, .run = run_where}),
    Register({.name = "ref.Cast", .prepare = prepare_cast, .run = run_cast}),
};

}  // namespace
}  // namespace ge::kernels::move
