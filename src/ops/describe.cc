#include "ops/describe.h"

#include <algorithm>

#include "base/text.h"

namespace ge::ops {
namespace {

constexpr size_t kShown = 8;        // inputs, numbers of one, and attributes that are listed
constexpr size_t kLetters = 64;     // of a name or text

std::string cut(const std::string& s) { return s.size() <= kLetters ? s : s.substr(0, kLetters) + "..."; }

template <class T, class F>
std::string list(const std::vector<T>& v, F f) {
  std::vector<std::string> parts;
  for (auto& x : v) parts.push_back(f(x));
  if (parts.size() > kShown) parts.resize(kShown), parts.push_back(format("{} more", v.size() - kShown));
  return "[" + join(parts, ",") + "]";
}

struct AttrText {
  std::string operator()(int64_t v) const { return format("{}", v); }
  std::string operator()(double v) const { return format("{:g}", v); }
  std::string operator()(const std::string& v) const { return quote(cut(v)); }
  std::string operator()(const std::vector<int64_t>& v) const { return list(v, [](int64_t x) { return format("{}", x); }); }
  std::string operator()(const std::vector<double>& v) const { return list(v, [](double x) { return format("{:g}", x); }); }
  std::string operator()(const std::vector<std::string>& v) const { return list(v, [](auto& x) { return quote(cut(x)); }); }
  std::string operator()(const Tensor& t) const { return format("a tensor {}{}", name(t.dtype()), list(t.dims(), [](int64_t x) { return format("{}", x); })); }
  std::string operator()(const std::shared_ptr<ir::Graph>&) const { return "a graph"; }
  std::string operator()(const std::vector<std::shared_ptr<ir::Graph>>&) const { return "graphs"; }
};

std::string input_text(const ir::Graph& g, ir::ValueId v) {
  if (!v) return "nothing";
  auto& value = g.value(v);
  std::string out = cut(value.name) + " " + cut(text(value.type));
  if (auto known = g.elements(v); known && !known->empty() && known->size() <= kShown) out += " = " + cut(text(*known));
  return out;
}

}  // namespace

std::string describe(const ir::Graph& g, const ir::Node& n) {
  std::vector<std::string> in, attrs;
  for (size_t i = 0; i < n.inputs.size() && i < kShown; ++i) in.push_back(input_text(g, n.inputs[i]));
  if (n.inputs.size() > kShown) in.push_back(format("{} more", n.inputs.size() - kShown));
  for (auto& [key, value] : n.attrs)
    if (attrs.size() < kShown) attrs.push_back(key + "=" + std::visit(AttrText(), value));
  std::string out = n.op;
  if (!in.empty()) out += " of " + join(in, ", ");
  if (!attrs.empty()) out += (in.empty() ? " with " : "; ") + join(attrs, ", ");
  return out;
}

}  // namespace ge::ops
