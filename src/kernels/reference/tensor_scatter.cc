// ref.TensorScatter: in [cache, update, first place of each batch entry or absent], out as the cache, with the update
// put along an axis from that place on. ints [axis, circular]. Any plain type.
#include "kernels/reference/index.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "ref.TensorScatter";

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 3, 1, 1));
  const View &x = c.in[0], &u = c.in[1], &y = c.out[0];
  if (c.ints.size() != 2 || x.dtype != y.dtype || u.dtype != y.dtype || !same_dims(x, y) || u.rank != x.rank)
    return bad_call(kName, "cache, update and output do not fit");
  int64_t axis = c.ints[0];
  if (axis < 1 || axis >= x.rank) return bad_call(kName, "the axis is wrong");
  for (int a = 0; a < x.rank; ++a)
    if (a == axis ? u.dims[a] > x.dims[a] : u.dims[a] != x.dims[a])
      return bad_call(kName, format("update {} does not fit the cache {}", dims_text(u), dims_text(x)));
  if (has_input(c, 2) && (!is_index(c.in[2].dtype) || c.in[2].rank != 1 || c.in[2].dims[0] != x.dims[0]))
    return bad_call(kName, "not one place for each batch entry");
  return one_chunk(c);
}

Status run(const Call& c, int64_t) {
  const View &x = c.in[0], &u = c.in[1], &y = c.out[0];
  if (x.data != y.data) fill_from(y, [&](const int64_t* index) { return address(x, index); });
  int64_t axis = c.ints[0], size = y.dims[axis];
  bool circular = c.ints[1] != 0;
  auto first = [&](int64_t n) { return has_input(c, 2) ? load_index(c.in[2], n * c.in[2].strides[0]) : 0; };
  for (int64_t n = 0; n < y.dims[0] && u.count(); ++n)
    if (int64_t p = first(n); !circular && (p < 0 || p > size - u.dims[axis]))
      return error(code::kRunFailed, format("TensorScatter: {} elements at {} do not fit into {}", u.dims[axis], p, size));
  each_index(u, [&](const int64_t* index) {
    int64_t to[kMaxRank];
    std::copy(index, index + u.rank, to);
    int64_t p = first(index[0]);
    if (circular) p = (p % size + size) % size;
    to[axis] = (p + index[axis]) % size;
    copy_element(address(y, to), address(u, index), y.dtype);
    return true;
  });
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run, .in_place = 1});

}  // namespace
}  // namespace ge::kernels::move
