// Sequences: lists of tensors of one element type. They run as executor tasks, which share tensors and copy
// none that a sequence holds already.
#include "ops/sequence.h"

#include "base/text.h"
#include "ops/shape_util.h"
#include "ops/subgraph.h"

namespace ge::ops {

Type empty_sequence(DType t) { return {t, false, {Dim::symbol("none")}, ir::TypeKind::sequence}; }
bool is_empty_sequence(const Type& t) { return !t.ranked && !t.dims.empty(); }

Type either_element(const Type& a, const Type& b) {
  Type out = a;
  if (is_empty_sequence(b)) return out;
  if (is_empty_sequence(a)) {
    out.ranked = b.ranked;
    out.dims = b.dims;
  } else if (!a.ranked || !b.ranked || a.rank() != b.rank()) {
    out.ranked = false;
    out.dims.clear();
    return out;
  }
  // Only numbers are kept: a symbol would bind all elements to one size.
  for (size_t k = 0; k < out.dims.size(); ++k)
    if (!out.dims[k].known() || !(out.dims[k] == b.dims[k])) out.dims[k] = Dim::symbol("any");
  return out;
}

namespace {

Status require_sequence(const InferContext& c) {
  if (!c.has(0)) return c.fail("input 0 is missing");
  if (c.type(0).kind != ir::TypeKind::sequence) return c.fail(format("input 0 is {}, no sequence", text(c.type(0))));
  return ok();
}

Status require_tensor(const InferContext& c, int i, DType t) {
  if (!c.has(i)) return c.fail(format("input {} is missing", i));
  if (c.type(i).kind != ir::TypeKind::tensor) return c.fail(format("input {} is {}, no tensor", i, text(c.type(i))));
  if (c.dtype(i) != t) return c.fail(format("a tensor of {} cannot lie in a sequence of {}", name(c.dtype(i)), name(t)));
  return ok();
}

Status infer_empty(InferContext& c) {
  int64_t t = attr_int(c.node, "dtype", 1);
  if (t <= 0 || t >= kDTypeCount) return c.fail(format("attribute dtype = {} is no type", t));
  c.out[0] = empty_sequence(static_cast<DType>(t));
  return ok();
}

Status infer_construct(InferContext& c) {
  if (c.inputs() == 0) return c.fail("it has no inputs");
  c.out[0] = empty_sequence(c.dtype(0));
  for (int i = 0; i < c.inputs(); ++i) {
    GE_RETURN_IF_ERROR(require_tensor(c, i, c.dtype(0)));
    c.out[0] = either_element(c.out[0], c.type(i));
  }
  return ok();
}

Status infer_insert(InferContext& c) {
  GE_RETURN_IF_ERROR(require_sequence(c));
  GE_RETURN_IF_ERROR(require_tensor(c, 1, c.dtype(0)));
  GE_RETURN_IF_ERROR(require_index(c, 2));
  c.out[0] = either_element(c.type(0), c.type(1));
  return ok();
}

Status infer_erase(InferContext& c) {
  GE_RETURN_IF_ERROR(require_sequence(c));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  c.out[0] = c.type(0);
  return ok();
}

Status infer_at(InferContext& c) {
  GE_RETURN_IF_ERROR(require_sequence(c));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  c.out[0] = element_of(c.type(0), [&](size_t k) { return c.fresh(format("d{}", k)); });
  return ok();
}

Status infer_length(InferContext& c) {
  GE_RETURN_IF_ERROR(require_sequence(c));
  c.set(0, DType::i64, {});
  return ok();
}

Status infer_concat(InferContext& c) {
  GE_RETURN_IF_ERROR(require_sequence(c));
  bool stack = attr_int(c.node, "new_axis", 0) != 0;
  const Type& t = c.type(0);
  if (!t.ranked) {
    c.set_unranked(0, t.dtype);
    return ok();
  }
  if (!has_attr(c.node, "axis")) return c.fail("attribute axis is missing");
  GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), t.rank() + stack));
  auto dims = element_of(t, [&](size_t k) { return c.fresh(format("d{}", k)); }).dims;
  if (stack) dims.insert(dims.begin() + axis, c.fresh("count"));
  else dims[static_cast<size_t>(axis)] = c.fresh("count");
  c.set(0, t.dtype, std::move(dims));
  return ok();
}

Status infer_split(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  Type t = c.type(0);
  t.kind = ir::TypeKind::sequence;
  if (t.ranked) {
    GE_TRY(int axis, normalize_axis(c, attr_int(c.node, "axis", 0), t.rank()));
    t.dims[static_cast<size_t>(axis)] = Dim::symbol("any");
    for (auto& d : t.dims)
      if (!d.known()) d = Dim::symbol("any");
    // Pieces of one entry each may lose the axis.
    if (!c.has(1) && attr_int(c.node, "keepdims", 1) == 0) t.dims.erase(t.dims.begin() + axis);
  }
  c.out[0] = std::move(t);
  return ok();
}

Status emit(LowerContext& c, const char* kernel, std::vector<Dim> ints = {}) {
  std::vector<Arg> in;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.in(i));
  c.call(kernel, std::move(in), {c.out()}, std::move(ints));
  return ok();
}
Status lower_construct(LowerContext& c) { return emit(c, "sequence.construct"); }
Status lower_insert(LowerContext& c) { return emit(c, "sequence.insert"); }
Status lower_erase(LowerContext& c) { return emit(c, "sequence.erase"); }
Status lower_at(LowerContext& c) { return emit(c, "sequence.at"); }
Status lower_length(LowerContext& c) { return emit(c, "sequence.length"); }
Status lower_concat(LowerContext& c) { return emit(c, "sequence.concat", {attr_int(c.node, "axis", 0), attr_int(c.node, "new_axis", 0)}); }
Status lower_split(LowerContext& c) { return emit(c, "sequence.split", {attr_int(c.node, "axis", 0), attr_int(c.node, "keepdims", 1)}); }

OpDef sequence(const char* op, int min_inputs, int max_inputs, std::vector<AttrDef> attrs, const char* doc,
               Status (*infer)(InferContext&), Status (*lower)(LowerContext&)) {
  OpDef d = executor_op(op, min_inputs, max_inputs, 11, doc, infer, lower);
  d.attrs = std::move(attrs);
  return d;
}

const Register registered[] = {
    Register(sequence("SequenceEmpty", 0, 0, {{"dtype", "Of the elements; default f32."}}, "A sequence of nothing.", infer_empty, lower_construct)),
    Register(sequence("SequenceConstruct", 1, -1, {}, "A sequence of the inputs.", infer_construct, lower_construct)),
    Register(sequence("SequenceInsert", 2, 3, {}, "One tensor more.", infer_insert, lower_insert)),
    Register(sequence("SequenceErase", 1, 2, {}, "One tensor less.", infer_erase, lower_erase)),
    Register(sequence("SequenceAt", 2, 2, {}, "One tensor of a sequence.", infer_at, lower_at)),
    Register(sequence("SequenceLength", 1, 1, {}, "How many tensors it holds.", infer_length, lower_length)),
    Register(sequence("ConcatFromSequence", 1, 1, {{"axis", "Along which."}, {"new_axis", "1: along an axis that is added."}},
                      "Its tensors one after the other.", infer_concat, lower_concat)),
    Register(sequence("SplitToSequence", 1, 2, {{"axis", "Along which it is cut."}, {"keepdims", "0: pieces of one entry lose the axis."}},
                      "Cuts a tensor into a sequence.", infer_split, lower_split)),
};

}  // namespace
}  // namespace ge::ops
