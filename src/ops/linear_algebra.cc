// Det and com.microsoft.Inverse.
#include "base/text.h"
#include "ops/op.h"

namespace ge::ops {
namespace {

Status infer(InferContext& c) {
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  auto dims = c.dims(0);
  size_t n = dims.size();
  if (n < 2 || (dims[n - 1].known() && dims[n - 2].known() && !(dims[n - 1] == dims[n - 2])))
    return c.fail(format("the last two axes of {} are no square matrix", text(dims)));
  if (c.node.op == "Det") dims.resize(n - 2);
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status reference(LowerContext& c) {
  c.call(c.node.op == "Det" ? "ref.Det" : "ref.Inverse", {c.in(0)}, {c.out()});
  return ok();
}

OpDef define(const char* name, int since) {
  OpDef d;
  d.name = name;
  d.min_inputs = d.max_inputs = 1;
  d.since = since;
  d.types = types::floats;
  d.unit = kernels::Unit::host;
  d.doc = "of square matrices";
  d.infer = infer;
  d.reference = reference;
  return d;
}

const Register r1(define("Det", 11));
const Register r2(define("com.microsoft.Inverse", 1));

}  // namespace
}  // namespace ge::ops
