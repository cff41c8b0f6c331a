//   Pad(x, zeros) -> AveragePool     becomes   AveragePool {pads + pads, count_include_pad}
//   Pad(x, -inf) -> MaxPool          becomes   MaxPool {pads + pads}
#include <algorithm>
#include <limits>

#include "base/text.h"
#include "passes/fusions/spatial_pads.h"

namespace ge::passes {
namespace {

Verdict neutral_around(const Match& m) {
  auto& pool = m.node("y");
  bool average = pool.op == "AveragePool";
  Verdict v = pads_spatial_axes(m, average ? 0 : -std::numeric_limits<double>::infinity());
  if (!v) return v;
  if (pool.outputs.size() > 1) return no("MaxPool's indices count the padding too");
  if (ir::attr_int(pool, "ceil_mode", 0)) return no("the pool rounds its size up");
  std::string auto_pad = ir::attr_string(pool, "auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID") return no(format("the pool pads by itself ({})", auto_pad), "give its padding as pads");
  auto own = ir::attr_ints(pool, "pads");
  bool padded = std::any_of(own.begin(), own.end(), [](int64_t p) { return p != 0; });
  if (average && padded && !ir::attr_int(pool, "count_include_pad", 0)) return no("the pool does not count its own padding");
  auto kernel = ir::attr_ints(pool, "kernel_shape"), pads = joint_pads(m, pool);
  for (size_t i = 0; i < pads.size(); ++i)
    if (kernel.empty() || pads[i] >= kernel[i % kernel.size()]) return no("some windows would lie in the padding alone");
  return yes();
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  ir::Attrs attrs = m.node("y").attrs;
  attrs["pads"] = joint_pads(m, m.node("y"));
  attrs.erase("auto_pad");
  if (m.node("y").op == "AveragePool") attrs["count_include_pad"] = int64_t(1);
  return replace_match(g, m, m.node("y").op, {m.value("x")}, std::move(attrs));
}

const RegisterFusion r(Fusion{.name = "pool_pad",
                              .doc = "a Pad goes into the pool after it",
                              .order = 0,
                              .patterns = {R"(%p = Pad(%x, %pads, %value?:const, %axes?)
                                              %y = AveragePool|MaxPool(%p))"},
                              .require = {neutral_around},
                              .build = build});

}  // namespace
}  // namespace ge::passes
