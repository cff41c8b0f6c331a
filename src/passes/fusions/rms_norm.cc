//   x / sqrt(mean(x^2) + eps) * scale   becomes   RMSNormalization(x, scale)     over the last axis
#include "base/text.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

Verdict last_axis(const Match& m) {
  auto& x = m.type("x");
  if (!x.ranked || x.rank() < 1) return no("the shape of x is not known", "give the inputs' shapes with --input_shape");
  auto& mean = m.node("mean");
  if (ir::attr_int(mean, "keepdims", 1) != 1) return no("the mean does not keep its axis", "let it keep the axis (keepdims=1)", mean.name);
  auto axes = m.g->elements(m.value("axes"));
  if (!axes || axes->size() != 1 || !((*axes)[0].is(-1) || (*axes)[0].is(x.rank() - 1)))
    return no("the mean is taken over other axes than the last", "RMSNormalization over the last axis alone is fused", mean.name);
  if (m.has("two")) {
    auto two = scalar_constant(*m.g, m.value("two"));
    if (!two || *two != 2) return no("the exponent is not 2", "write 2 there if RMSNormalization is meant", m.reader_of("two"));
  }
  auto& scale = m.type("scale");
  if (scale.dtype != x.dtype || scale.rank() != 1 || !(scale.dims[0] == x.dims.back()))
    return no(format("%scale has shape {}, [{}] is expected", ir::text(scale), x.dims.back().text()), "give it that shape", m.reader_of("scale"));
  if (m.has("one")) {
    auto one = scalar_constant(*m.g, m.value("one"));
    if (!one || *one != 1) return no("the numerator is not 1", "write 1 there if RMSNormalization is meant", m.reader_of("one"));
  }
  if (!scalar_constant(*m.g, m.value("eps"))) return no("epsilon is not one number", "make it one constant number", m.reader_of("eps"));
  return m.type("y").dims == x.dims ? yes() : no("a constant makes the result larger than x", "give the constants no more axes than x has");
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  ir::Attrs attrs = {{"axis", int64_t(-1)}, {"epsilon", *scalar_constant(g, m.value("eps"))}};
  return replace_match(g, m, "RMSNormalization", {m.value("x"), m.value("scale")}, std::move(attrs));
}

std::vector<std::string> patterns() {
  std::vector<std::string> out;
  for (const char* square : {"%p = Pow(%x, %two:const)\n", "%p = Mul(%x, %x)\n"})
    for (const char* norm : {"%n = Div(%x, %s)\n", "%r = Reciprocal(%s)\n%n = Mul(%x, %r)\n", "%r = Div(%one:const, %s)\n%n = Mul(%x, %r)\n"})
      out.push_back(std::string(square) + "%mean = ReduceMean(%p, %axes:const)\n%e = Add(%mean, %eps:const)\n%s = Sqrt(%e)\n" + norm + "%y = Mul(%n, %scale:const)");
  return out;
}

const RegisterFusion r(Fusion{.name = "rms_norm",
                              .doc = "RMSNormalization spelt out",
                              .order = 0,
                              .patterns = patterns(),
                              .require = {last_axis},
                              .build = build});

}  // namespace
}  // namespace ge::passes
