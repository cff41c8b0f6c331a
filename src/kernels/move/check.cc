#include "kernels/move/check.h"

namespace ge::kernels::move {
namespace {
// Largest extent of a view in elements, and largest product of its sizes: bytes stay below 2^57.
constexpr int64_t kLimit = int64_t{1} << 52;
}  // namespace

Error bad_call(std::string_view kernel, std::string_view what) {
  return error(code::kBadOp, format("{}: {}", kernel, what));
}

Status check_view(const View& v, std::string_view kernel, std::string_view which) {
  if (size_of(v.dtype) == 0) return bad_call(kernel, format("{} is of type {}, which is not plain memory", which, name(v.dtype)));
  if (v.rank < 0 || v.rank > kMaxRank)
    return bad_call(kernel, format("{} has {} axes, at most {}", which, v.rank, kMaxRank));
  if (v.rank > 0 && (!v.dims || !v.strides)) return bad_call(kernel, format("{} has no sizes", which));
  int64_t count = 1, extent = 0;
  bool empty = false;
  for (int i = 0; i < v.rank; ++i) {
    if (v.dims[i] < 0) return bad_call(kernel, format("{} has size {}", which, v.dims[i]));
    empty = empty || v.dims[i] == 0;
  }
  for (int i = 0; i < v.rank; ++i) {
    int64_t step, d = v.dims[i];
    if (d > kLimit || __builtin_mul_overflow(count, d ? d : 1, &count) || count > kLimit)
      return bad_call(kernel, format("{} is too large", which));
    if (v.strides[i] > kLimit || v.strides[i] < -kLimit)
      return bad_call(kernel, format("{} has a stride out of range", which));
    if (empty) continue;
    if (__builtin_mul_overflow(d - 1, v.strides[i] < 0 ? -v.strides[i] : v.strides[i], &step) ||
        __builtin_add_overflow(extent, step, &extent) || extent > kLimit)
      return bad_call(kernel, format("{} reaches too far", which));
  }
  return ok();
}

Status check_call(const Call& c, std::string_view kernel, size_t min_in, size_t max_in, size_t min_out,
                  size_t max_out) {
  if (c.in.size() < min_in || c.in.size() > max_in)
    return bad_call(kernel, format("has {} inputs, takes {} to {}", c.in.size(), min_in, max_in));
  if (c.out.size() < min_out || c.out.size() > max_out)
    return bad_call(kernel, format("has {} outputs, takes {} to {}", c.out.size(), min_out, max_out));
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (c.in[i].dtype == DType::none && i >= min_in) continue;
    GE_RETURN_IF_ERROR(check_view(c.in[i], kernel, format("input {}", i)));
  }
  for (size_t i = 0; i < c.out.size(); ++i) {
    if (c.out[i].dtype == DType::none && i >= min_out) continue;
    GE_RETURN_IF_ERROR(check_view(c.out[i], kernel, format("output {}", i)));
  }
  return ok();
}

bool same_dims(const View& a, const View& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.dims[i] != b.dims[i]) return false;
  return true;
}

std::string dims_text(const View& v) {
  std::string s = "[";
  for (int i = 0; i < v.rank; ++i) s += format("{}{}", i ? "," : "", v.dims[i]);
  return s + "]";
}

}  // namespace ge::kernels::move
