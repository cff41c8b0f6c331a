#include "ops/subgraph.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "ops/shape_util.h"
#include "ops/size_condition.h"

namespace ge::ops {

std::shared_ptr<Graph> nested(const Node& n, std::string_view attr) {
  auto it = n.attrs.find(attr);
  if (it == n.attrs.end()) return nullptr;
  auto* p = std::get_if<std::shared_ptr<Graph>>(&it->second);
  return p ? *p : nullptr;
}

Result<std::shared_ptr<Graph>> require_nested(const InferContext& c, std::string_view attr) {
  auto g = nested(c.node, attr);
  if (!g) return c.fail(format("attribute '{}' holds no graph", attr));
  if (g->scope.empty()) g->scope = own_symbol(c.graph, c.node, attr) + ".";
  return g;
}

Dim Border::enter(const Dim& d, const std::string& name) {
  if (d.known()) return d;
  std::string symbol(d.symbol_name());
  ir::SymbolInfo info;
  if (!symbol.empty()) {
    auto it = outer_.symbols.find(symbol);
    if (it != outer_.symbols.end()) info = it->second;
    info.data = false;
  } else {
    auto known = by_text_.find(d.text());
    symbol = known != by_text_.end() ? known->second : inner_.scope + name;
    for (int i = 1; known == by_text_.end() && back_.count(symbol); ++i) symbol = format("{}{}.{}", inner_.scope, name, i);
    by_text_.emplace(d.text(), symbol);
    info.min = std::max<int64_t>(0, lower_bound(outer_, d));
  }
  inner_.symbols[symbol] = info;
  back_[symbol] = d;
  return Dim::symbol(symbol);
}

Type Border::enter(const Type& t, size_t input) {
  Type out = t;
  if (t.kind != ir::TypeKind::tensor) return out;
  const ValueId in = inner_.inputs[input];
  const Type before = inner_.value(in).type;
  const std::string own = inner_.scope + "in";
  for (size_t k = 0; k < out.dims.size(); ++k) {
    std::string name = format("in{}.d{}", in.v, k);
    if (before.dims.size() == out.dims.size())
      if (auto had = before.dims[k].symbol_name(); had.starts_with(own) && !back_.count(std::string(had))) name = had.substr(inner_.scope.size());
    out.dims[k] = enter(t.dims[k], name);
  }
  return out;
}

bool Border::same(const Dim& d) const {
  std::vector<std::string> names;
  d.symbols(names);
  return std::all_of(names.begin(), names.end(), [&](auto& s) {
    auto it = back_.find(s);
    return it != back_.end() && it->second.symbol_name() == s;
  });
}

std::optional<Dim> Border::leave(const Dim& d) const {
  if (d.known()) return d;
  std::vector<std::string> names;
  d.symbols(names);
  for (auto& s : names)
    if (!back_.count(s)) return std::nullopt;
  return d.substitute([&](std::string_view s) -> std::optional<Dim> { return back_.at(std::string(s)); });
}

// Where a size is said otherwise outside by now and no input bears its name any more, shapes that were written down inside
// say it so, too.
static void settle(Graph& inner, std::map<std::string, Dim, std::less<>> sizes_now) {
  for (ValueId v : inner.inputs)
    for (auto& d : inner.value(v).type.dims) sizes_now.erase(std::string(d.symbol_name()));
  if (sizes_now.empty()) return;
  for (NodeId id : inner.order()) {
    if (inner.node(id).op != "ge.Sizes") continue;
    auto sizes = ir::attr_strings(inner.node(id), "sizes");
    for (auto& text : sizes) {
      auto d = Dim::parse(text);
      if (!d.ok()) continue;
      text = d->substitute([&](std::string_view s) -> std::optional<Dim> {
        auto it = sizes_now.find(s);
        return it == sizes_now.end() ? std::nullopt : std::optional(it->second);
      }).text();
    }
    inner.node(id).attrs["sizes"] = std::move(sizes);
  }
}

void set_captures(InferContext& c, Border& border, Graph& inner, size_t first, size_t from) {
  const size_t begin = from;
  std::map<std::string, Dim, std::less<>> sizes_now;
  for (size_t i = first; i < inner.inputs.size() && from < c.node.inputs.size(); ++i, ++from) {
    ValueId outer = c.node.inputs[from], in = inner.inputs[i];
    if (!outer) continue;
    auto& value = c.graph.value(outer);
    const Type before = std::exchange(inner.value(in).type, border.enter(value.type, i));
    const Type& now = inner.value(in).type;
    for (size_t k = 0; k < now.dims.size() && before.dims.size() == now.dims.size(); ++k)
      if (auto had = before.dims[k].symbol_name(); !had.empty() && now.dims[k].symbol_name() != had) sizes_now.emplace(had, now.dims[k]);
    if (!value.constant || inner.reader_count(in) == 0) continue;
    inner.replace_uses(in, inner.add_constant(*value.constant, value.name));
  }
  if (!sizes_now.empty()) settle(inner, std::move(sizes_now));
  // When all sizes have come in.
  for (size_t i = first, at = begin; i < inner.inputs.size() && at < c.node.inputs.size(); ++i, ++at) {
    ValueId outer = c.node.inputs[at];
    auto elements = outer ? c.graph.elements(outer) : std::nullopt;
    if (elements && !std::all_of(elements->begin(), elements->end(), [&](auto& d) { return border.same(d); })) elements.reset();
    inner.value(inner.inputs[i]).content = std::move(elements);
  }
}

// A branch runs only for sizes that the condition sends there.
static void narrow(const Graph& outer, const Dim& condition, bool holds, Graph& branch) {
  auto where = narrowed(outer, condition, holds);
  if (!where) return;
  auto it = branch.symbols.find(where->symbol);
  if (it != branch.symbols.end()) it->second.min = where->range.min, it->second.max = where->range.max;
}

void enter_branch(InferContext& c, Border& border, Graph& branch, bool taken) {
  set_captures(c, border, branch, 0, 1);
  auto condition = c.elements(0);
  if (condition && condition->size() == 1) narrow(c.graph, (*condition)[0], taken, branch);
  for (size_t i = 0; i < branch.inputs.size() && i + 1 < c.node.inputs.size(); ++i) {
    ValueId outer = c.node.inputs[i + 1], in = branch.inputs[i];
    if (!outer || branch.reader_count(in) == 0 || c.graph.value(outer).type.dtype != DType::boolean) continue;
    bool same = outer == c.node.inputs[0];
    if (!same && condition) same = c.graph.elements(outer) == condition && c.graph.value(outer).type == c.type(0);
    if (!same || !c.graph.value(outer).type.is_static() || !product(c.graph.value(outer).type.dims).is(1)) continue;
    std::vector<int64_t> ones(c.graph.value(outer).type.dims.size(), 1);
    Tensor known(DType::boolean, ones);
    *known.mutable_data() = static_cast<std::byte>(taken);
    branch.replace_uses(in, branch.add_constant(std::move(known), "condition"));
  }
}

std::vector<ValueId> put_in(Graph& g, const Graph& inner, const std::vector<ValueId>& inputs, NodeId at) {
  std::map<int32_t, ValueId> there;
  for (size_t i = 0; i < inner.inputs.size(); ++i) there[inner.inputs[i].v] = inputs[i];
  auto value = [&](ValueId v) -> ValueId {
    if (!v) return {};
    auto it = there.find(v.v);
    if (it != there.end()) return it->second;
    auto& x = inner.value(v);
    ValueId made = x.constant ? g.add_constant(*x.constant, x.name) : g.add_value(x.name, x.type);
    there[v.v] = made;
    return made;
  };
  for (NodeId id : inner.order()) {
    auto& n = inner.node(id);
    std::vector<ValueId> in, out;
    for (ValueId v : n.inputs) in.push_back(value(v));
    for (ValueId v : n.outputs) out.push_back(value(v));
    NodeId made = g.add_node(n.op, std::move(in), std::move(out), n.attrs, n.name);
    g.node(made).rank = g.node(at).rank;
    g.node(made).origin = n.origin;
  }
  std::vector<ValueId> outputs;
  for (ValueId v : inner.outputs) outputs.push_back(value(v));
  return outputs;
}

}  // namespace ge::ops
