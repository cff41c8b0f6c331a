// Transpose: always a view; copied by move.copy where a dense tensor is wanted.
#include <algorithm>

#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

std::vector<int64_t> perm_of(const Node& n, int rank) {
  auto p = attr_ints(n, "perm");
  if (p.empty())
    for (int i = rank - 1; i >= 0; --i) p.push_back(i);
  return p;
}

Status infer(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  if (!c.ranked(0)) {
    auto p = attr_ints(c.node, "perm");
    if (p.empty() || p.size() > static_cast<size_t>(kMaxRank)) c.set_unranked(0, c.dtype(0));
    else c.set(0, c.dtype(0), fresh_dims(c, p.size()));
    return ok();
  }
  int rank = c.rank(0);
  auto p = perm_of(c.node, rank);
  if (p.size() != static_cast<size_t>(rank)) return c.fail(format("attribute perm has {} entries for the {} axes of its input; one for each axis is needed", p.size(), rank));
  std::vector<bool> seen(p.size());
  std::vector<Dim> out;
  for (int64_t a : p) {
    if (a < 0 || a >= rank || seen[static_cast<size_t>(a)]) return c.fail(format("attribute perm is not a permutation of {} axes: each of 0 to {} once", rank, rank - 1));
    seen[static_cast<size_t>(a)] = true;
    out.push_back(c.dims(0)[static_cast<size_t>(a)]);
  }
  c.set(0, c.dtype(0), std::move(out));
  auto e = known_elements(c, 0);
  if (e && rank <= 1) c.set_elements(0, e->values);
  return ok();
}

std::optional<Strided> view(const Graph&, const Node& n, int, const Strided& in) {
  Strided v;
  v.offset = in.offset;
  for (int64_t a : perm_of(n, static_cast<int>(in.dims.size()))) {
    v.dims.push_back(in.dims[static_cast<size_t>(a)]);
    v.strides.push_back(in.strides[static_cast<size_t>(a)]);
  }
  return v;
}

Status reference(LowerContext& c) {
  c.call("ref.Transpose", {c.in(0)}, {c.out()}, as_dims(perm_of(c.node, c.type(0).rank())));
  return ok();
}

const Register transpose(OpDef{.name = "Transpose",
                               .min_inputs = 1,
                               .max_inputs = 1,
                               .attrs = {{"perm", "Axis of the input for each axis of the output; default reversed."}},
                               .doc = "Permutes the axes.",
                               .infer = infer,
                               .reference = reference,
                               .lower = lower_views,
                               .view = view});

}  // namespace
}  // namespace ge::ops
