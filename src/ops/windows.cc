// HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Result<DType> output_type(const InferContext& c) {
  int64_t t = attr_int(c.node, "output_datatype", 1);
  auto d = static_cast<DType>(t);
  if (t <= 0 || t >= kDTypeCount || bits(d) < 8 || !(is_float(d) || is_integer(d))) return c.fail(format("attribute output_datatype = {} is no type of numbers", t));
  return d;
}

// Integer input i as a size.
Result<Dim> size_of_input(InferContext& c, int i) {
  GE_RETURN_IF_ERROR(require_one(c, i));
  auto e = c.elements(i);
  if (!e || e->size() != 1) return c.fresh("size");
  if ((*e)[0].known() && (*e)[0].value() < 0) return c.fail(format("input {} is {}; it must be 0 or more", i, (*e)[0].value()));
  return (*e)[0];
}

Status infer_window(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_RETURN_IF_ERROR(require_index(c, 0));
  GE_TRY(DType t, output_type(c));
  GE_TRY(Dim n, size_of_input(c, 0));
  c.set(0, t, {n});
  return ok();
}

Status reference_window(LowerContext& c) {
  int64_t kind = c.node.op == "HannWindow" ? 0 : c.node.op == "HammingWindow" ? 1 : 2;
  c.call("ref.Window", {}, {c.out()}, {kind, attr_int(c.node, "periodic", 1) != 0});
  return ok();
}

Status infer_mel(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 5));
  for (int i = 0; i < 3; ++i) GE_RETURN_IF_ERROR(require_index(c, i));
  GE_TRY(DType t, output_type(c));
  GE_TRY(Dim bins, size_of_input(c, 0));
  GE_TRY(Dim length, size_of_input(c, 1));
  c.set(0, t, {floordiv(length, 2) + Dim(1), bins});
  return ok();
}

Status reference_mel(LowerContext& c) {
  c.call("ref.MelWeightMatrix", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}, {c.out()});
  return ok();
}

OpDef window(const char* name) {
  OpDef d;
  d.name = name;
  d.min_inputs = d.max_inputs = 1;
  d.since = 17;
  d.types = types::indices;
  d.attrs = {{"periodic", "The next period begins after the last element."}, {"output_datatype", "Type of the output."}};
  d.doc = "Weights of a window of that size.";
  d.infer = infer_window;
  d.reference = reference_window;
  d.sizes = 1u << 0;
  return d;
}

const Register r1(window("HannWindow"));
const Register r2(window("HammingWindow"));
const Register r3(window("BlackmanWindow"));
const Register r4(OpDef{.name = "MelWeightMatrix", .min_inputs = 5, .max_inputs = 5, .since = 17,
                        .attrs = {{"output_datatype", "Type of the output."}},
                        .doc = "Weights from a spectrum to mel bins.", .types = types::indices, .infer = infer_mel, .reference = reference_mel, .sizes = 1u << 0 | 1u << 1});

}  // namespace
}  // namespace ge::ops
