// Sequences and optionals. Tensors in them are shared; one that lies in an arena is copied when it goes in.
#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "runtime/frame.h"

namespace ge::runtime {
namespace {

using Kind = Value::Kind;

Result<Value> sequence_in(TaskRun& t, size_t i) {
  GE_TRY(Value v, t.in(i));
  if (v.kind != Kind::sequence) return t.fail(format("input {} is no sequence", i));
  return v;
}

// Position `i` says among n, negative from the end; `end` may be one past the last.
Result<size_t> position(TaskRun& t, size_t i, size_t n, bool end) {
  GE_TRY(int64_t at, t.integer(i));
  auto count = static_cast<int64_t>(n);
  if (at < -count || at >= count + end) return t.fail(format("position {} of a sequence of {} does not exist", at, n));
  return static_cast<size_t>(at < 0 ? at + count : at);
}

Status run_copy(TaskRun& t) {
  GE_TRY(Value v, t.in(0));
  return t.give(0, std::move(v));
}

Status run_squeeze(TaskRun& t) {
  GE_TRY(Value v, t.in(0));
  std::erase(v.dims, 1);
  return t.give(0, std::move(v));
}

Status run_construct(TaskRun& t) {
  Value made;
  made.kind = Kind::sequence;
  made.dtype = t.out_type(0);
  for (size_t i = 0; i < t.inputs(); ++i) {
    GE_TRY(Value v, t.in(i));
    if (!v.is_tensor() || v.dtype != made.dtype) return t.fail(format("input {} does not fit the sequence", i));
    made.items.push_back(std::move(v));
  }
  return t.give(0, std::move(made));
}

Status run_insert(TaskRun& t) {
  GE_TRY(Value s, sequence_in(t, 0));
  GE_TRY(Value v, t.in(1));
  if (!v.is_tensor() || v.dtype != s.dtype) return t.fail("the tensor does not fit the sequence");
  size_t at = s.items.size();
  if (t.has(2)) {
    GE_TRY(at, position(t, 2, s.items.size(), true));
  }
  s.items.insert(s.items.begin() + static_cast<int64_t>(at), std::move(v));
  return t.give(0, std::move(s));
}

Status run_erase(TaskRun& t) {
  GE_TRY(Value s, sequence_in(t, 0));
  if (s.items.empty()) return t.fail("the sequence is empty");
  size_t at = s.items.size() - 1;
  if (t.has(1)) {
    GE_TRY(at, position(t, 1, s.items.size(), false));
  }
  s.items.erase(s.items.begin() + static_cast<int64_t>(at));
  return t.give(0, std::move(s));
}

Status run_at(TaskRun& t) {
  GE_TRY(Value s, sequence_in(t, 0));
  GE_TRY(size_t at, position(t, 1, s.items.size(), false));
  return t.give(0, std::move(s.items[at]));
}

Status run_length(TaskRun& t) {
  GE_TRY(Value s, sequence_in(t, 0));
  auto n = static_cast<int64_t>(s.items.size());
  return t.give(0, Value::tensor(DType::i64, {}, &n));
}

// Bytes before and after an axis: a tensor is `outer` runs of dims[axis] * inner bytes.
struct Runs {
  int64_t outer = 1, inner = 1;
  Runs(const Value& v, size_t axis) : inner(size_of(v.dtype)) {
    for (size_t k = 0; k < axis; ++k) outer *= v.dims[k];
    for (size_t k = axis + 1; k < v.dims.size(); ++k) inner *= v.dims[k];
  }
};

// ints [axis, new_axis]
Status run_concat(TaskRun& t) {
  GE_TRY(Value s, sequence_in(t, 0));
  if (s.items.empty()) return t.fail("the sequence is empty");
  bool stack = t.ints().size() > 1 && t.ints()[1] != 0;
  auto rank = static_cast<int64_t>(s.items[0].dims.size()) + stack;
  int64_t axis = t.ints().empty() ? 0 : t.ints()[0];
  if (axis < -rank || axis >= rank) return t.fail(format("axis {} is none of tensors with {} axes", axis, rank));
  auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  for (auto& v : s.items)
    if (stack && static_cast<int64_t>(v.dims.size()) == rank - 1) v.dims.insert(v.dims.begin() + static_cast<int64_t>(at), 1);
  auto dims = s.items[0].dims;
  dims[at] = 0;
  for (auto& v : s.items) {
    auto like = v.dims;
    if (like.size() != dims.size()) return t.fail(format("{} and {} do not go together", shape_text(s.items[0].dims), shape_text(v.dims)));
    like[at] = dims[at];
    if (like != dims) return t.fail(format("{} and {} do not go together", shape_text(s.items[0].dims), shape_text(v.dims)));
    dims[at] += v.dims[at];
  }
  GE_TRY(std::byte* to, t.out(0, s.dtype, dims));
  Runs runs(s.items[0], at);
  for (int64_t o = 0; o < runs.outer; ++o)
    for (auto& v : s.items) {
      auto n = static_cast<size_t>(v.dims[at] * runs.inner);
      if (n) std::memcpy(to, v.data + o * v.dims[at] * runs.inner, n);
      to += n;
    }
  return ok();
}

// The sizes of the pieces: one number cuts evenly (the last may be smaller), a list says all.
Status piece_sizes(TaskRun& t, int64_t size, std::vector<int64_t>& out) {
  if (!t.has(1)) {
    out.assign(static_cast<size_t>(size), 1);
    return ok();
  }
  GE_TRY(Value v, t.in(1));
  auto number = [&](int64_t i) { return v.dtype == DType::i32 ? int64_t{reinterpret_cast<const int32_t*>(v.data)[i]} : reinterpret_cast<const int64_t*>(v.data)[i]; };
  if (!v.is_tensor() || (v.dtype != DType::i32 && v.dtype != DType::i64) || v.dims.size() > 1) return t.fail("split is no list of integers");
  if (v.dims.empty()) {
    int64_t each = number(0);
    if (each <= 0) return t.fail(format("split is {}; pieces have 1 element or more", each));
    for (int64_t at = 0; at < size; at += each) out.push_back(std::min(each, size - at));
    return ok();
  }
  int64_t sum = 0;
  for (int64_t i = 0; i < v.dims[0]; ++i) {
    out.push_back(number(i));
    if (out.back() < 0 || out.back() > size) return t.fail(format("a piece of {} cannot be cut from an axis of {}", out.back(), size));
    if (sum > size - out.back()) return t.fail(format("the pieces add up to more than the {} that the axis has", size));
    sum += out.back();
  }
  return sum == size ? ok() : Status(t.fail(format("the pieces add up to {}, but the axis has {}", sum, size)));
}

// ints [axis, keepdims]; in: tensor, split (one number, a list, or none: pieces of 1)
Status run_split(TaskRun& t) {
  GE_TRY(Value v, t.in(0));
  if (!v.is_tensor() || t.ints().size() != 2) return t.fail("input 0 is no tensor");
  auto rank = static_cast<int64_t>(v.dims.size());
  int64_t axis = t.ints()[0];
  if (axis < -rank || axis >= rank) return t.fail(format("axis {} is none of a tensor with {} axes", axis, rank));
  auto at = static_cast<size_t>(axis < 0 ? axis + rank : axis);
  std::vector<int64_t> sizes;
  GE_RETURN_IF_ERROR(piece_sizes(t, v.dims[at], sizes));
  Value made;
  made.kind = Kind::sequence;
  made.dtype = v.dtype;
  Runs runs(v, at);
  int64_t begin = 0;
  for (int64_t size : sizes) {
    auto dims = v.dims;
    dims[at] = size;
    auto n = static_cast<size_t>(size * runs.inner);
    GE_TRY(auto block, t.blocks().take(runs.outer * static_cast<int64_t>(n)));
    for (int64_t o = 0; o < runs.outer && n; ++o)
      std::memcpy(block.get() + static_cast<size_t>(o) * n, v.data + (o * v.dims[at] + begin) * runs.inner, n);
    if (!t.has(1) && t.ints()[1] == 0) dims.erase(dims.begin() + static_cast<int64_t>(at));
    made.items.push_back(Value::tensor(v.dtype, dims, block.get(), block));
    begin += size;
  }
  return t.give(0, std::move(made));
}

Status run_make(TaskRun& t) {
  Value made;
  made.dtype = t.out_type(0);
  made.kind = t.out_kind(0);
  if (t.has(0)) {
    GE_TRY(Value v, t.in(0));
    made.kind = v.is_tensor() ? Kind::optional : Kind::optional_sequence;
    made.items.push_back(std::move(v));
  }
  return t.give(0, std::move(made));
}

Status run_has(TaskRun& t) {
  bool there = t.has(0);
  if (there) {
    GE_TRY(Value v, t.in(0));
    there = v.is_tensor() || v.kind == Kind::sequence || !v.items.empty();
  }
  return t.give(0, Value::tensor(DType::boolean, {}, &there));
}

Status run_get(TaskRun& t) {
  GE_TRY(Value v, t.in(0));
  if (v.kind != Kind::optional && v.kind != Kind::optional_sequence) return t.fail("input 0 is no optional");
  if (v.items.empty()) return t.fail("the optional has no value");
  return t.give(0, std::move(v.items[0]));
}

const RegisterHost registered[] = {
    {"value.squeeze", run_squeeze},
    {"value.copy", run_copy},          {"sequence.construct", run_construct}, {"sequence.insert", run_insert},
    {"sequence.erase", run_erase},     {"sequence.at", run_at},               {"sequence.length", run_length},
    {"sequence.concat", run_concat},   {"sequence.split", run_split},         {"optional.make", run_make},
    {"optional.has", run_has},         {"optional.get", run_get},
};

}  // namespace
}  // namespace ge::runtime
