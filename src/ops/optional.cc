// Optional, OptionalHasElement, OptionalGetElement: a value that may be absent.
#include "base/text.h"
#include "ops/sequence.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

using ir::TypeKind;

bool is_optional(const Type& t) { return t.kind == TypeKind::optional || t.kind == TypeKind::optional_sequence; }

// The type attribute of an absent one, in the importer's spelling: "f32[?]", "seq(f32[?])".
Result<Type> spelt(const InferContext& c) {
  std::string s = attr_string(c.node, "type", "");
  bool sequence = s.starts_with("seq(");
  std::string_view element = std::string_view(s).substr(sequence ? 4 : 0);
  auto dtype = dtype_from_name(element.substr(0, element.find('[')));
  if (!dtype) return c.fail(s.empty() ? "it has neither an input nor a type" : format("type '{}' is not supported", s));
  return Type{*dtype, false, {}, sequence ? TypeKind::optional_sequence : TypeKind::optional};
}

Status infer_make(InferContext& c) {
  if (!c.has(0)) {
    GE_TRY(c.out[0], spelt(c));
    return ok();
  }
  Type t = c.type(0);
  if (is_optional(t)) return c.fail("an optional of an optional is not supported");
  t.kind = t.kind == TypeKind::sequence ? TypeKind::optional_sequence : TypeKind::optional;
  c.out[0] = std::move(t);
  return ok();
}

Status infer_has(InferContext& c) {
  c.set(0, DType::boolean, {});
  // What is no optional is there.
  if (!c.has(0)) c.set_elements(0, {0});
  else if (!is_optional(c.type(0))) c.set_elements(0, {1});
  return ok();
}

Status infer_get(InferContext& c) {
  if (!c.has(0)) return c.fail("input 0 is missing");
  Type t = c.type(0);
  if (t.kind == TypeKind::optional_sequence) t.kind = TypeKind::sequence;
  else if (t.kind == TypeKind::optional) t = element_of(t, [&](size_t k) { return c.fresh(format("d{}", k)); });
  c.out[0] = std::move(t);
  return ok();
}

Status emit(LowerContext& c, const char* kernel) {
  c.call(kernel, {c.has(0) ? c.in(0) : Arg{}}, {c.out()});
  return ok();
}
Status lower_make(LowerContext& c) { return emit(c, "optional.make"); }
Status lower_has(LowerContext& c) { return emit(c, "optional.has"); }
// Of what is no optional it is the thing itself.
Status lower_get(LowerContext& c) { return emit(c, is_optional(c.type(0)) ? "optional.get" : "value.copy"); }

OpDef optional(const char* op, int min_inputs, int since, const char* doc, Status (*infer)(InferContext&), Status (*lower)(LowerContext&)) {
  OpDef d = executor_op(op, min_inputs, 1, since, doc, infer, lower);
  d.foldable = true;
  return d;
}

OpDef with_type(OpDef d) {
  d.attrs = {{"type", "Of what is absent."}};
  return d;
}

const Register registered[] = {
    Register(with_type(optional("Optional", 0, 15, "A value, or none of a type.", infer_make, lower_make))),
    Register(optional("OptionalHasElement", 0, 15, "Whether there is a value.", infer_has, lower_has)),
    Register(optional("OptionalGetElement", 1, 15, "The value that is there.", infer_get, lower_get)),
};

}  // namespace
}  // namespace ge::ops
