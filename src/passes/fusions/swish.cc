//   x * Sigmoid(alpha * x)      becomes   Swish(x) {alpha}     also as x / (1 + Exp(-x)); SiLU is alpha 1
// One operator, so that a product or convolution before it has one reader and takes it up.
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

Verdict numbers(const Match& m) {
  if (m.has("alpha") && !scalar_constant(*m.g, m.value("alpha"))) return no("the factor of x is not one constant number", "make it one constant number", m.reader_of("alpha"));
  if (m.has("one") && scalar_constant(*m.g, m.value("one")) != 1.0) return no("what is added to the exponential is not 1", "write 1 there if Swish is meant", m.reader_of("one"));
  return m.type("y").dims == m.type("x").dims ? yes() : no("a constant makes the result larger than x", "give the constants no more axes than x has");
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  double alpha = m.has("alpha") ? *scalar_constant(g, m.value("alpha")) : 1;
  return replace_match(g, m, "Swish", {m.value("x")}, {{"alpha", alpha}});
}

const RegisterFusion r(Fusion{.name = "swish",
                              .doc = "Swish (SiLU) spelt out",
                              .order = 0,
                              .patterns = {R"(%s = Sigmoid(%x)
                                              %y = Mul(%x, %s))",
                                           R"(%a = Mul(%x, %alpha:const)
                                              %s = Sigmoid(%a)
                                              %y = Mul(%x, %s))",
                                           R"(%n = Neg(%x)
                                              %e = Exp(%n)
                                              %d = Add(%e, %one:const)
                                              %y = Div(%x, %d))"},
                              .require = {numbers},
                              .build = build});

}  // namespace
}  // namespace ge::passes
