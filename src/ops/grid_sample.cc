// GridSample and AffineGrid.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

// "bilinear" and "bicubic" are the names before opset 20.
int64_t mode_of(const Node& n) {
  std::string m = attr_string(n, "mode", "linear");
  return m == "nearest" ? 0 : m == "linear" || m == "bilinear" ? 1 : m == "cubic" || m == "bicubic" ? 2 : -1;
}
int64_t padding_of(const Node& n) {
  std::string p = attr_string(n, "padding_mode", "zeros");
  return p == "zeros" ? 0 : p == "border" ? 1 : p == "reflection" ? 2 : -1;
}

Status infer_sample(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  if (mode_of(c.node) < 0 || padding_of(c.node) < 0)
    return c.fail(format("mode '{}' with padding_mode '{}' is not known; modes are 'linear', 'nearest' and 'cubic', paddings 'zeros', 'border' and 'reflection'", attr_string(c.node, "mode", ""), attr_string(c.node, "padding_mode", "")));
  if (!c.ranked(0) || !c.ranked(1)) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  auto &x = c.dims(0), &g = c.dims(1);
  if (x.size() < 3 || x.size() > 5 || g.size() != x.size()) return c.fail(format("grid {} does not fit the input {}", text(g), text(x)));
  if (g.back().known() && !g.back().is(static_cast<int64_t>(x.size()) - 2))
    return c.fail(format("the grid {} has not {} coordinates", text(g), x.size() - 2));
  GE_TRY(Dim batch, unify(c, x[0], g[0], "the batch"));
  std::vector<Dim> out{batch, x[1]};
  out.insert(out.end(), g.begin() + 1, g.end() - 1);
  c.set(0, c.dtype(0), std::move(out));
  return ok();
}

Status reference_sample(LowerContext& c) {
  c.call("ref.GridSample", {c.in(0), c.in(1)}, {c.out()},
         {mode_of(c.node), padding_of(c.node), attr_int(c.node, "align_corners", 0) != 0});
  return ok();
}

Status infer_affine(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 2));
  GE_RETURN_IF_ERROR(require_index(c, 1));
  auto size = c.elements(1);
  size_t count = size ? size->size() : 0;
  if (auto n = listed_rank(c, 1); !size && n) count = *n;
  if (count == 0) {
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  if (count != 4 && count != 5) return c.fail(format("size has {} numbers, not 4 or 5", count));
  if (!size) size = fresh_dims(c, count);
  std::vector<Dim> out{(*size)[0]};
  out.insert(out.end(), size->begin() + 2, size->end());
  out.push_back(Dim(static_cast<int64_t>(count) - 2));
  c.set(0, c.dtype(0), std::move(out));
  return ok();
}

Status reference_affine(LowerContext& c) {
  c.call("ref.AffineGrid", {c.in(0)}, {c.out()}, {attr_int(c.node, "align_corners", 0) != 0});
  return ok();
}

const Register r1(OpDef{.name = "GridSample", .min_inputs = 2, .max_inputs = 2, .since = 16,
                        .attrs = {{"mode", "linear, nearest or cubic."}, {"padding_mode", "zeros, border or reflection."},
                                  {"align_corners", "-1 and 1 are the outer pixels' centres (1) or edges."}},
                        .doc = "The input at the places that a grid names.", .types = types::numbers | types::boolean | types::complex, .infer = infer_sample, .reference = reference_sample});
const Register r2(OpDef{.name = "AffineGrid", .min_inputs = 2, .max_inputs = 2, .since = 20,
                        .attrs = {{"align_corners", "-1 and 1 are the outer pixels' centres (1) or edges."}},
                        .doc = "The grid of an affine map of the unit square or cube.", .types = types::floats, .infer = infer_affine,
                        .reference = reference_affine, .sizes = 1u << 1});

}  // namespace
}  // namespace ge::ops
