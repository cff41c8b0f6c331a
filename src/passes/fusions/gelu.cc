//   0.5 * x * (1 + erf(x / sqrt 2))                              becomes  Gelu(x)
//   0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))        becomes  Gelu(x) {approximate=tanh}
#include <cmath>

#include "base/text.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

// The exporters' constants are rounded to f32 or f16.
Verdict near(const Match& m, std::string_view name, double want) {
  if (!m.has(name)) return yes();
  auto v = scalar_constant(*m.g, m.value(name));
  if (v && std::abs(*v - want) <= 1e-3 * want) return yes();
  return no(v ? format("%{} is {}, {} is expected", name, *v, want) : format("%{} is not one number", name), format("write {} there if Gelu is meant", want), m.reader_of(name));
}

Verdict constants(const Match& m) {
  const double kRoot2 = std::sqrt(2.0);
  auto first = [](Verdict a, Verdict b) { return a.holds ? b : a; };
  Verdict v = first(first(near(m, "one", 1), near(m, "unit", 1)), near(m, "half", 0.5));
  v = first(v, near(m, "root", m.nodes.count("d") && m.node("d").op == "Div" ? kRoot2 : 1 / kRoot2));
  v = first(v, first(near(m, "three", 3), near(m, "cubic", 0.044715)));
  v = first(v, near(m, "k", std::sqrt(2 / M_PI)));
  return first(v, m.type("y").dims == m.type("x").dims ? yes() : no("a constant makes the result larger than x", "give the constants no more axes than x has"));
}

Result<ir::NodeId> build(ir::Graph& g, const Match& m) {
  ir::Attrs attrs;
  if (m.nodes.count("tanh")) attrs["approximate"] = std::string("tanh");
  return replace_match(g, m, "Gelu", {m.value("x")}, std::move(attrs));
}

constexpr const char* kErf = R"(%d = Div|Mul(%x, %root:const)
                                %e = Erf(%d)
                                %o = Add(%e, %one:const)
)";
// x + 0.044715 x^3, in the ways in which exporters write it, and the last with sqrt(2/pi) x taken out.
constexpr const char* kCubic[] = {R"(%p = Pow(%x, %three:const)
                                     %q = Mul(%p, %cubic:const)
                                     %s = Add(%x, %q)
                                     %u = Mul(%s, %k:const)
)",
                                  R"(%a = Mul(%x, %x)
                                     %p = Mul(%a, %x)
                                     %q = Mul(%p, %cubic:const)
                                     %s = Add(%x, %q)
                                     %u = Mul(%s, %k:const)
)",
                                  R"(%a = Mul(%x, %cubic:const)
                                     %p = Mul(%x, %a)
                                     %q = Mul(%x, %p)
                                     %s = Add(%x, %q)
                                     %u = Mul(%s, %k:const)
)",
                                  R"(%a = Mul(%x, %cubic:const)
                                     %p = Mul(%x, %a)
                                     %s = Add(%p, %unit:const)
                                     %q = Mul(%x, %k:const)
                                     %u = Mul(%q, %s)
)"};
constexpr const char* kTanh = R"(%tanh = Tanh(%u)
                                 %o = Add(%tanh, %one:const)
)";
constexpr const char* kTails[] = {"%m = Mul(%x, %o)\n%y = Mul(%m, %half:const)",
                                  "%m = Mul(%x, %half:const)\n%y = Mul(%m, %o)",
                                  "%m = Mul(%o, %half:const)\n%y = Mul(%x, %m)"};

std::vector<std::string> patterns() {
  std::vector<std::string> out;
  std::vector<std::string> heads{kErf};
  for (const char* cubic : kCubic) heads.push_back(std::string(cubic) + kTanh);
  for (auto& head : heads)
    for (const char* tail : kTails) out.push_back(head + tail);
  return out;
}

const RegisterFusion r(Fusion{.name = "gelu",
                              .doc = "Gelu spelt out, with erf or tanh",
                              .order = 0,
                              .patterns = patterns(),
                              .require = {constants},
                              .build = build});

}  // namespace
}  // namespace ge::passes
