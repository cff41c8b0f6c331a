//   x * Tanh(Softplus(x))      becomes   Mish(x)
#include "passes/fusion.h"

namespace ge::passes {
namespace {

Result<ir::NodeId> build(ir::Graph& g, const Match& m) { return replace_match(g, m, "Mish", {m.value("x")}, {}); }

const RegisterFusion r(Fusion{.name = "mish",
                              .doc = "Mish spelt out",
                              .order = 0,
                              .patterns = {R"(%p = Softplus(%x)
                                              %t = Tanh(%p)
                                              %y = Mul(%x, %t))"},
                              .build = build});

}  // namespace
}  // namespace ge::passes
