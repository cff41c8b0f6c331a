// ge.Rows: some rows of a value, as a view: `count` from `begin` on along `axis`, both as expressions that whoever made the node
// knows to lie inside.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

struct Rows {
  size_t axis;
  Dim begin, count;
};

Result<Rows> rows_of(const Node& n) {
  GE_TRY(Dim begin, Dim::parse(ir::attr_string(n, "begin", "0")));
  GE_TRY(Dim count, Dim::parse(ir::attr_string(n, "count", "0")));
  return Rows{static_cast<size_t>(ir::attr_int(n, "axis", 0)), begin, count};
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_TRY(Rows r, rows_of(c.node));
  auto& x = c.type(0);
  if (!x.ranked || r.axis >= x.dims.size()) return c.fail("its axis is none of its input's");
  auto dims = x.dims;
  dims[r.axis] = r.count;
  c.set(0, x.dtype, dims);
  return ok();
}

std::optional<Strided> view(const Graph&, const Node& n, int, const Strided& in) {
  auto r = rows_of(n);
  if (!r.ok() || r->axis >= in.dims.size()) return std::nullopt;
  Strided out = in;
  out.offset = in.offset + r->begin * in.strides[r->axis];
  out.dims[r->axis] = r->count;
  return out;
}

const Register r(OpDef{.name = "ge.Rows",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .attrs = {{"axis", "that the rows lie along"}, {"begin", "an expression"}, {"count", "an expression"}},
                       .doc = "some rows of a value",
                       .infer = infer,
                       .lower = lower_views,
                       .view = view,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
