//   (x - mean(x)) / sqrt(mean((x - mean(x))^2) + eps) * scale + shift   becomes  LayerNormalization
// over the last axis.
#include "base/text.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

Verdict last_axis(const Match& m) {
  auto& x = m.type("x");
  if (!x.ranked || x.rank() < 1) return no("the shape of x is not known", "give the inputs' shapes with --input_shape");
  for (const char* name : {"mean", "var"}) {
    auto& n = m.node(name);
    if (ir::attr_int(n, "keepdims", 1) != 1) return no("a mean does not keep its axis", "let it keep the axis (keepdims=1)", n.name);
    auto axes = n.inputs.size() > 1 ? m.g->elements(n.inputs[1]) : std::nullopt;
    bool last = axes && axes->size() == 1 && ((*axes)[0].is(-1) || (*axes)[0].is(x.rank() - 1));
    if (!last) return no("a mean is taken over other axes than the last", "LayerNormalization over the last axis alone is fused", n.name);
  }
  auto& width = x.dims.back();
  for (const char* name : {"scale", "shift"}) {
    if (!m.has(name)) continue;
    auto& t = m.type(name);
    if (t.rank() != 1 || !(t.dims[0] == width)) return no(format("%{} has shape {}, [{}] is expected", name, ir::text(t), width.text()), "give it that shape", m.reader_of(name));
  }
  auto two = m.has("two") ? scalar_constant(*m.g, m.value("two")) : 2.0;
  if (!two || *two != 2) return no("the exponent is not 2", "write 2 there if LayerNormalization is meant", m.reader_of("two"));
  if (!scalar_constant(*m.g, m.value("eps"))) return no("epsilon is not one number", "make it one constant number", m.reader_of("eps"));
  return m.type("y").dims == x.dims ? yes() : no("a constant makes the result larger than x", "give the constants no more axes than x has");
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  ir::Attrs attrs;
  attrs["axis"] = int64_t(-1);
  attrs["epsilon"] = *scalar_constant(g, m.value("eps"));
  return replace_match(g, m, "LayerNormalization", {m.value("x"), m.value("scale"), m.value("shift")}, std::move(attrs));
}

std::vector<std::string> patterns() {
  std::vector<std::string> out;
  for (const char* square : {"%p = Pow(%d, %two:const)", "%p = Mul(%d, %d)"})
    out.push_back(std::string("%mean = ReduceMean(%x, %axes:const)\n%d = Sub(%x, %mean)\n") + square + R"(
                  %var = ReduceMean(%p, %axes2:const)
                  %e = Add(%var, %eps:const)
                  %s = Sqrt(%e)
                  %n = Div(%d, %s)
                  %g = Mul(%n, %scale:const)
                  %y = Add(%g, %shift:const))");
  return out;
}

const RegisterFusion r(Fusion{.name = "layer_norm",
                              .doc = "LayerNormalization spelt out",
                              .order = 0,
                              .patterns = patterns(),
                              .require = {last_axis},
                              .build = build});

}  // namespace
}  // namespace ge::passes
