// Tasks whose outputs are as large as the data say: select.unique, select.non_max_suppression.
#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"
#include "kernels/move/element.h"
#include "kernels/reference/non_max_suppression.h"
#include "kernels/reference/unique.h"
#include "runtime/frame.h"

namespace ge::runtime {
namespace {

Result<Value> tensor_in(TaskRun& t, size_t i) {
  GE_TRY(Value v, t.in(i));
  if (!v.is_tensor()) return t.fail(format("input {} is no tensor", i));
  return v;
}

Status give_list(TaskRun& t, size_t i, const std::vector<int64_t>& list, std::span<const int64_t> dims) {
  if (!t.wants(i)) return ok();
  return t.give(i, Value::tensor(DType::i64, dims, list.data()));
}

// Of each string its place among the different ones in order, which compares as they do.
Result<std::vector<int64_t>> places(TaskRun& t, const Value& x) {
  if (!t.texts()) return t.fail("this run has no strings");
  GE_TRY(auto strings, t.texts()->strings(x));
  auto sorted = strings;
  std::sort(sorted.begin(), sorted.end());
  std::vector<int64_t> out;
  for (auto s : strings) out.push_back(std::lower_bound(sorted.begin(), sorted.end(), s) - sorted.begin());
  return out;
}

// ints [has an axis, axis, sorted]; in: any type; out: the entries, first places, which is which, counts
Status run_unique(TaskRun& t) {
  GE_TRY(Value x, tensor_in(t, 0));
  if (t.ints().size() != 3) return t.fail("wrong parameters");
  bool flat = !t.ints()[0];
  int64_t axis = t.ints()[1];
  if (!flat && (axis < 0 || axis >= static_cast<int64_t>(x.dims.size()))) return t.fail(format("axis {} is none of a tensor {}", axis, shape_text(x.dims)));
  int64_t outer = 1, inner = 1, entries = flat ? x.count() : x.dims[static_cast<size_t>(axis)];
  for (size_t k = 0; !flat && k < x.dims.size(); ++k)
    if (static_cast<int64_t>(k) != axis) (static_cast<int64_t>(k) < axis ? outer : inner) *= x.dims[k];
  DType compared = x.dtype;
  const std::byte* elements = x.data;
  std::vector<int64_t> ranks;
  if (x.dtype == DType::string) {
    GE_TRY(ranks, places(t, x));
    compared = DType::i64;
    elements = reinterpret_cast<const std::byte*>(ranks.data());
  }
  // Complex numbers in the order of their real parts, then of their imaginary ones.
  const int64_t parts = x.dtype == DType::c64 || x.dtype == DType::c128 ? 2 : 1;
  if (parts == 2) compared = x.dtype == DType::c64 ? DType::f32 : DType::f64;
  auto found = kernels::reference::different_entries(compared, elements, outer, entries, inner * parts, t.ints()[2] != 0);
  auto count = static_cast<int64_t>(found.first.size());
  if (t.wants(0)) {
    std::vector<int64_t> dims{count};
    if (!flat) dims = x.dims, dims[static_cast<size_t>(axis)] = count;
    GE_TRY(std::byte* to, t.out(0, x.dtype, dims));
    auto bytes = static_cast<size_t>(inner * size_of(x.dtype));
    for (int64_t o = 0; o < outer && bytes; ++o)
      for (int64_t e : found.first) {
        std::memcpy(to, x.data + static_cast<size_t>(o * entries + e) * bytes, bytes);
        to += bytes;
      }
  }
  GE_RETURN_IF_ERROR(give_list(t, 1, found.first, std::array{count}));
  GE_RETURN_IF_ERROR(give_list(t, 2, found.which, std::array{entries}));
  return give_list(t, 3, found.count, std::array{count});
}

Result<float> float_in(TaskRun& t, size_t i) {
  GE_TRY(Value v, tensor_in(t, i));
  if (v.dtype != DType::f32 || v.count() != 1) return t.fail(format("input {} is not one f32", i));
  return *reinterpret_cast<const float*>(v.data);
}

// ints [boxes are centres]; in: boxes, scores, most of a class, overlap, least score (the last three may be absent)
Status run_non_max_suppression(TaskRun& t) {
  GE_TRY(Value boxes, tensor_in(t, 0));
  GE_TRY(Value scores, tensor_in(t, 1));
  if (t.ints().size() != 1 || boxes.dtype != DType::f32 || scores.dtype != DType::f32) return t.fail("boxes and scores are not f32");
  auto &b = boxes.dims, &s = scores.dims;
  if (b.size() != 3 || s.size() != 3 || b[2] != 4 || b[0] != s[0] || b[1] != s[2])
    return t.fail(format("boxes {} and scores {} do not go together", shape_text(b), shape_text(s)));
  kernels::reference::Suppression p{s[0], s[1], s[2]};
  p.centers = t.ints()[0] != 0;
  if (t.has(2)) {
    GE_TRY(p.most, t.integer(2));
  }
  if (t.has(3)) {
    GE_TRY(p.overlap, float_in(t, 3));
    if (!(p.overlap >= 0 && p.overlap <= 1)) return t.fail(format("the overlap {} is outside 0..1", p.overlap));
  }
  if (t.has(4)) {
    GE_TRY(p.least_score, float_in(t, 4));
  }
  auto found = kernels::reference::non_max_suppression(p, reinterpret_cast<const float*>(boxes.data), reinterpret_cast<const float*>(scores.data));
  return give_list(t, 0, found, std::array{static_cast<int64_t>(found.size()) / 3, int64_t{3}});
}

const RegisterHost r1("select.unique", run_unique);
const RegisterHost r2("select.non_max_suppression", run_non_max_suppression);

}  // namespace
}  // namespace ge::runtime
