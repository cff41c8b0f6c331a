#include "ir/print.h"

#include <cmath>

#include "base/hash.h"
#include "base/text.h"

namespace ge::ir {
namespace {

std::string number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  std::string s = format("{}", v);
  return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
}

std::string elements(const Tensor& t) {
  std::vector<std::string> parts;
  for (int64_t i = 0; i < t.count(); ++i) {
    if (t.dtype() == DType::string) parts.push_back(quote(t.strings()[static_cast<size_t>(i)]));
    else if (t.dtype() == DType::f32) parts.push_back(format("{}", t.as<float>()[i]));
    else parts.push_back(is_float(t.dtype()) ? format("{}", t.at(i)) : format("{}", t.at_int(i)));
  }
  return "[" + join(parts, ", ") + "]";
}

std::string constant(const Tensor& t) {
  const bool complex = t.dtype() == DType::c64 || t.dtype() == DType::c128;
  if (!complex && (t.count() <= 16 || t.dtype() == DType::string)) return elements(t);
  return format("data({:016x})", hash64(t.raw()));
}

template <class T, class F>
std::string list(const std::vector<T>& v, F f) {
  std::vector<std::string> parts;
  for (auto& x : v) parts.push_back(f(x));
  return "[" + join(parts, ", ") + "]";
}

std::string indent(const std::string& text) {
  std::string out;
  for (auto& line : split(text, '\n'))
    if (!line.empty()) out += "  " + line + "\n";
  return out;
}

struct AttrPrinter {
  std::string operator()(int64_t v) const { return format("{}", v); }
  std::string operator()(double v) const { return number(v); }
  std::string operator()(const std::string& v) const { return quote(v); }
  std::string operator()(const std::vector<int64_t>& v) const { return list(v, [](int64_t x) { return format("{}", x); }); }
  std::string operator()(const std::vector<double>& v) const { return list(v, number); }
  std::string operator()(const std::vector<std::string>& v) const { return list(v, [](auto& x) { return quote(x); }); }
  std::string operator()(const Tensor& t) const {
    std::vector<Dim> dims(t.dims().begin(), t.dims().end());
    return "tensor " + text(Type::tensor(t.dtype(), dims)) + " " + constant(t);
  }
  std::string operator()(const std::shared_ptr<Graph>& g) const { return "{\n" + indent(indent(print(*g))) + "  }"; }
  std::string operator()(const std::vector<std::shared_ptr<Graph>>& v) const { return list(v, [this](auto& g) { return (*this)(g); }); }
};

std::string value_text(const Graph& g, ValueId v) { return v ? "%" + g.value(v).name : "-"; }
std::string typed(const Graph& g, ValueId v) { return v ? "%" + g.value(v).name + ": " + text(g.value(v).type) : "-"; }

std::string node_text(const Graph& g, const Node& n) {
  std::vector<std::string> outs, ins, attrs;
  for (ValueId v : n.outputs) outs.push_back(typed(g, v));
  for (ValueId v : n.inputs) ins.push_back(value_text(g, v));
  std::string s = format("{} = {}({})", join(outs, ", "), n.op, join(ins, ", "));
  for (auto& [k, v] : n.attrs) attrs.push_back(k + "=" + std::visit(AttrPrinter(), v));
  if (!attrs.empty()) s += " {" + join(attrs, ", ") + "}";
  if (!n.outputs.empty() && n.outputs[0] && !g.value(n.outputs[0]).layout.empty())
    s += " layout " + list(g.value(n.outputs[0]).layout, [](int x) { return format("{}", x); });
  return s + " @" + quote(n.name);
}

}  // namespace

std::string print(const Graph& g) {
  std::vector<std::string> ins, outs;
  for (ValueId v : g.inputs) ins.push_back(typed(g, v));
  for (ValueId v : g.outputs) outs.push_back(value_text(g, v));
  std::string s = format("graph {}({}) -> ({}) {{\n", g.name.empty() ? "main" : g.name, join(ins, ", "), join(outs, ", "));
  for (auto& [name, info] : g.symbols)
    if (info.min != 0 || info.max != INT64_MAX) s += format("  symbol {} {}..{}\n", name, info.min, info.max);
  for (auto& d : g.facts.demands()) s += format("  equal {} {} {}\n", quote(d.a.text()), quote(d.b.text()), quote(d.who));
  for (auto& x : g.states)
    s += format("  state {} {} {} axis {} capacity {}\n", quote(x.name), x.input < 0 ? "-" : value_text(g, g.inputs[static_cast<size_t>(x.input)]),
                x.output < 0 ? "-" : value_text(g, g.outputs[static_cast<size_t>(x.output)]), x.axis, x.capacity);
  std::vector<bool> shown(g.value_capacity());
  auto show_constant = [&](ValueId v) {
    if (!v || !g.is_constant(v) || shown[static_cast<size_t>(v.v)]) return;
    shown[static_cast<size_t>(v.v)] = true;
    s += "  " + typed(g, v) + " = " + constant(*g.value(v).constant) + "\n";
  };
  for (NodeId id : g.order()) {
    for (ValueId v : g.node(id).inputs) show_constant(v);
    s += "  " + node_text(g, g.node(id)) + "\n";
  }
  for (ValueId v : g.outputs) show_constant(v);
  return s + "}\n";
}

}  // namespace ge::ir
