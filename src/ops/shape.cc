// Shape, Size, Constant, ConstantOfShape, Range: tensors made from sizes and parameters.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// ---- Shape, Size: their elements are expressions; lowering makes a tensor of them when one is needed.

Status infer_shape(InferContext& c) {
  if (!c.has(0)) return c.fail("input 0 is missing");
  if (!c.ranked(0)) {
    c.set(0, DType::i64, {c.fresh("rank")});
    return ok();
  }
  int64_t rank = c.rank(0), start = attr_int(c.node, "start", 0), end = attr_int(c.node, "end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  start = clamp(start), end = std::max(start, clamp(end));
  std::vector<Dim> e(c.dims(0).begin() + start, c.dims(0).begin() + end);
  c.set(0, DType::i64, {end - start});
  c.set_elements(0, std::move(e));
  return ok();
}

Status infer_size(InferContext& c) {
  if (!c.has(0)) return c.fail("input 0 is missing");
  c.set(0, DType::i64, {});
  if (c.ranked(0)) c.set_elements(0, {product(c.dims(0))});
  return ok();
}

Status emit_sizes(LowerContext& c) {
  auto& dims = c.type(0).dims;
  if (!c.type(0).ranked) return c.fail("the rank of its input is not known");
  std::vector<Dim> e;
  if (c.node.op == "Size") {
    e = {product(dims)};
  } else {
    int64_t rank = static_cast<int64_t>(dims.size());
    auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
    int64_t start = clamp(attr_int(c.node, "start", 0)), end = clamp(attr_int(c.node, "end", rank));
    for (int64_t i = start; i < end; ++i) e.push_back(dims[static_cast<size_t>(i)]);
  }
  c.call("move.elements", {}, {c.out()}, std::move(e));
  return ok();
}

// ---- Constant: the importer turns it into a constant; the op serves graphs built by hand.

Result<Tensor> constant_value(const Node& n) {
  if (auto* t = attr_tensor(n, "value")) return *t;
  if (has_attr(n, "value_int")) return Tensor::scalar_i64(attr_int(n, "value_int", 0));
  if (has_attr(n, "value_ints")) return Tensor::vector_i64(attr_ints(n, "value_ints"));
  if (has_attr(n, "value_float")) return Tensor::scalar_f32(static_cast<float>(attr_float(n, "value_float", 0)));
  if (has_attr(n, "value_floats")) {
    auto d = attr_floats(n, "value_floats");
    std::vector<float> f(d.begin(), d.end());
    return Tensor::of<float>(DType::f32, {static_cast<int64_t>(f.size())}, std::span<const float>(f));
  }
  return node_error(code::kBadOp, n.name, "Constant: no value of a supported kind");
}

Status infer_constant(InferContext& c) {
  GE_TRY(Tensor t, constant_value(c.node));
  c.set(0, t.dtype(), as_dims(t.dims()));
  if ((is_integer(t.dtype()) || t.dtype() == DType::boolean) && t.count() <= kMaxElements) {
    std::vector<Dim> e;
    for (int64_t i = 0; i < t.count(); ++i) e.push_back(t.at_int(i));
    c.set_elements(0, std::move(e));
  }
  return ok();
}

Status lower_constant(LowerContext& c) {
  GE_TRY(Tensor t, constant_value(c.node));
  c.call("move.copy", {c.weight(t)}, {c.out()});
  return ok();
}

// ---- ConstantOfShape

Tensor fill_value(const Node& n) {
  auto* t = attr_tensor(n, "value");
  return t ? *t : Tensor::scalar_f32(0);
}

Status infer_constant_of_shape(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_RETURN_IF_ERROR(require_index(c, 0));
  Tensor value = fill_value(c.node);
  if (value.count() != 1) return c.fail(format("the value has {} elements, not one", value.count()));
  DType t = value.dtype();
  if (size_of(t) == 0 || t == DType::string) return c.fail(format("a value of type {} is not supported", name(t)));
  auto e = c.elements(0);
  if (!e) {
    if (auto n = listed_rank(c, 0)) c.set(0, t, fresh_dims(c, *n));
    else c.set_unranked(0, t);
    return ok();
  }
  for (auto& d : *e)
    if (d.known() && d.value() < 0) return c.fail(format("shape {} has a negative size", text(*e)));
  Dim count = product(*e);
  if (count.known() && count.value() >= 0 && count.value() <= kMaxElements && (is_integer(t) || t == DType::boolean))
    c.set_elements(0, std::vector<Dim>(static_cast<size_t>(count.value()), Dim(value.at_int(0))));
  c.set(0, t, std::move(*e));
  return ok();
}

Status emit_fill(LowerContext& c) {
  Tensor value = fill_value(c.node);
  auto raw = value.raw();
  c.call("move.fill", {}, {c.out()}, {}, {}, {raw.begin(), raw.end()});
  return ok();
}

// ---- Range

bool range_type(DType t) {
  return t == DType::f32 || t == DType::f64 || t == DType::i16 || t == DType::i32 || t == DType::i64 ||
         t == DType::f16 || t == DType::bf16;
}

// Elements of a range over constants; as ONNX counts them.
std::optional<double> float_count(const InferContext& c) {
  double v[3];
  for (int i = 0; i < 3; ++i) {
    auto* t = c.constant(i);
    if (!t || t->count() != 1) return std::nullopt;
    v[i] = t->at(0);
  }
  if (v[2] == 0) return std::nullopt;
  // In the precision of the type, as the other runtimes compute it.
  bool wide = c.dtype(0) == DType::f64;
  double n = wide ? std::ceil((v[1] - v[0]) / v[2])
                  : std::ceil((static_cast<float>(v[1]) - static_cast<float>(v[0])) / static_cast<float>(v[2]));
  return std::max(n, 0.0);
}

std::optional<std::array<Dim, 3>> range_elements(const Graph& g, const Node& n) {
  std::array<Dim, 3> out;
  for (size_t i = 0; i < 3; ++i) {
    auto e = g.elements(n.inputs[i]);
    if (!e || e->size() != 1) return std::nullopt;
    out[i] = (*e)[0];
  }
  return out;
}

// A float input that is a whole number known as an expression: a constant, or a size that was cast. Numbers
// of f32 up to 2^24 are exact; sizes beyond that have no float ranges.
std::optional<Dim> whole_float(const Graph& g, ValueId v) {
  auto& x = g.value(v);
  if (x.constant) {
    if (x.constant->count() != 1) return std::nullopt;
    double d = x.constant->at(0);
    if (!(std::abs(d) <= 0x1p24) || d != std::floor(d)) return std::nullopt;
    return Dim(static_cast<int64_t>(d));
  }
  if (!x.producer || g.node(x.producer).op != "Cast") return std::nullopt;
  ValueId from = g.node(x.producer).inputs[0];
  auto e = is_integer(g.value(from).type.dtype) ? g.elements(from) : std::nullopt;
  return e && e->size() == 1 ? std::optional((*e)[0]) : std::nullopt;
}

std::optional<Dim> float_range_count(const Graph& g, const Node& n) {
  auto start = whole_float(g, n.inputs[0]), limit = whole_float(g, n.inputs[1]), delta = whole_float(g, n.inputs[2]);
  if (!start || !limit || !delta || !delta->known() || delta->is(0)) return std::nullopt;
  Dim count = delta->value() > 0 ? ceildiv(*limit - *start, *delta) : ceildiv(*start - *limit, Dim(0) - *delta);
  return max_of(g, count, 0);
}

Status infer_range(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  DType t = c.dtype(0);
  if (!range_type(t)) return c.fail(format("{} is not a type of Range", name(t)));
  for (int i = 0; i < 3; ++i) GE_RETURN_IF_ERROR(require_one(c, i));
  for (int i = 1; i < 3; ++i)
    if (c.dtype(i) != t) return c.fail("start, limit and delta differ in type; they need one");
  if (auto e = range_elements(c.graph, c.node); e && is_integer(t) && (*e)[2].known()) {
    auto& [start, limit, delta] = *e;
    if (delta.is(0)) return c.fail("delta is 0; with it the limit is never reached");
    Dim count = delta.value() > 0 ? ceildiv(limit - start, delta)
                                  : delta.is(INT64_MIN) ? select(Dim::call(DimCall::less, {limit, start}), 1, 0)
                                                        : ceildiv(start - limit, Dim(0) - delta);
    count = max_of(c.graph, count, 0);
    c.set(0, t, {count});
    if (count.known() && count.value() <= kMaxElements) {
      std::vector<Dim> values;
      for (int64_t i = 0; i < count.value(); ++i) values.push_back(start + Dim(i) * delta);
      c.set_elements(0, std::move(values));
    }
    return ok();
  }
  if (auto n = is_float(t) ? float_count(c) : std::nullopt) {
    if (!(*n <= 1e15)) return c.fail(format("it would have {} elements, which is more than a tensor can hold", *n));
    c.set(0, t, {static_cast<int64_t>(*n)});
    return ok();
  }
  if (auto count = is_float(t) ? float_range_count(c.graph, c.node) : std::nullopt) {
    c.set(0, t, {*count});
    return ok();
  }
  c.set(0, t, {c.fresh("count")});
  return ok();
}

Status emit_range(LowerContext& c) {
  const Dim& count = c.out_type().dims[0];
  if (count == c.own("count")) {
    Arg counted = c.temp(DType::i64, {1});
    c.call("host.range_count", {c.in(0), c.in(1), c.in(2)}, {counted});
    c.size(count, counted, 0);
  }
  auto e = range_elements(c.graph, c.node);
  if (e && is_integer(c.type(0).dtype)) c.call("move.range", {}, {c.out()}, {(*e)[0], (*e)[2]});
  else c.call("move.range", {c.in(0), c.in(2)}, {c.out()});
  return ok();
}

const Register registered[] = {
    Register(OpDef{.name = "Shape", .min_inputs = 1, .max_inputs = 1,
                   .attrs = {{"start", "First axis."}, {"end", "Axis after the last."}},
                   .unit = kernels::Unit::host, .doc = "The sizes of the input.", .infer = infer_shape,
                   .reference = emit_sizes, .lower = emit_sizes}),
    Register(OpDef{.name = "Size", .min_inputs = 1, .max_inputs = 1, .unit = kernels::Unit::host,
                   .doc = "The number of elements of the input.", .infer = infer_size, .reference = emit_sizes,
                   .lower = emit_sizes}),
    Register(OpDef{.name = "Constant", .min_inputs = 0, .max_inputs = 0,
                   .attrs = {{"value", "The tensor."}, {"value_int", ""}, {"value_ints", ""}, {"value_float", ""}, {"value_floats", ""}},
                   .doc = "A tensor that the model holds.", .infer = infer_constant, .reference = lower_constant}),
    Register(OpDef{.name = "ConstantOfShape", .min_inputs = 1, .max_inputs = 1, .since = 9,
                   .attrs = {{"value", "One element; default f32 0."}}, .doc = "A tensor of the given sizes, all elements alike.",
                   .types = types::indices,
                   .infer = infer_constant_of_shape, .reference = emit_fill, .lower = emit_fill, .sizes = 1u << 0}),
    Register(OpDef{.name = "Range", .min_inputs = 3, .max_inputs = 3, .since = 11,
                   .doc = "start, start + delta, ... before limit.", .types = types::floats | Types{DType::i16, DType::i32, DType::i64}, .infer = infer_range, .reference = emit_range,
                   .lower = emit_range}),
};

}  // namespace
}  // namespace ge::ops
