//   x * HardSigmoid(x) {1/6, 1/2}, x * Clip(x + 3, 0, 6) / 6      becomes   HardSwish(x)
#include <cmath>

#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

bool close(std::optional<double> v, double want) { return v && std::abs(*v - want) < 1e-6; }

Verdict numbers(const Match& m) {
  auto number = [&](const char* name) { return m.has(name) ? scalar_constant(*m.g, m.value(name)) : std::nullopt; };
  if (m.nodes.count("h")) {
    auto& h = m.node("h");
    if (!close(ir::attr_float(h, "alpha", 0.2), 1.0 / 6) || !close(ir::attr_float(h, "beta", 0.5), 0.5)) return no("HardSigmoid has other numbers than 1/6 and 1/2", "write these if HardSwish is meant", h.name);
  } else {
    bool divides = m.node(m.nodes.count("q") ? "q" : "y").op == "Div";
    if (!close(number("three"), 3)) return no("what is added to x is not 3", "write 3 there if HardSwish is meant", m.reader_of("three"));
    if (!close(number("low"), 0) || !close(number("high"), 6)) return no("Clip has other bounds than 0 and 6", "write these if HardSwish is meant", m.node("c").name);
    if (!close(number("six"), divides ? 6 : 1.0 / 6)) return no("the result is not divided by 6", "write 6 there if HardSwish is meant", m.reader_of("six"));
  }
  return m.type("y").dims == m.type("x").dims ? yes() : no("a constant makes the result larger than x", "give the constants no more axes than x has");
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) { return replace_match(g, m, "HardSwish", {m.value("x")}, {}); }

const RegisterFusion r(Fusion{.name = "hard_swish",
                              .doc = "HardSwish spelt out",
                              .order = 0,
                              .patterns = {R"(%h = HardSigmoid(%x)
                                              %y = Mul(%x, %h))",
                                           R"(%a = Add(%x, %three:const)
                                              %c = Clip(%a, %low:const, %high:const)
                                              %m = Mul(%x, %c)
                                              %y = Div|Mul(%m, %six:const))",
                                           R"(%a = Add(%x, %three:const)
                                              %c = Clip(%a, %low:const, %high:const)
                                              %q = Div|Mul(%c, %six:const)
                                              %y = Mul(%x, %q))"},
                              .require = {numbers},
                              .build = build});

}  // namespace
}  // namespace ge::passes
