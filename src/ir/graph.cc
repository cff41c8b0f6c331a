#include "ir/graph.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/text.h"
#include "ir/attribute_fault.h"
#include "tensor/pages.h"

namespace ge::ir {

bool Type::is_static() const {
  return ranked && std::all_of(dims.begin(), dims.end(), [](auto& d) { return d.known(); });
}

std::string text(const Type& t) {
  std::string s = std::string(name(t.dtype)) + (t.ranked ? ge::text(t.dims) : "[?]");
  if (t.kind == TypeKind::sequence) return "seq(" + s + ")";
  if (t.kind == TypeKind::optional_sequence) return "optional(seq(" + s + "))";
  if (t.kind == TypeKind::optional) return "optional(" + s + ")";
  if (is_map(t) || is_map_sequence(t)) {
    std::string m = format("map({},{})", name(key_of(t)), name(t.dtype));
    return is_map(t) ? m : "seq(" + m + ")";
  }
  return s;
}

Graph::Graph(const Graph& o)
    : name(o.name), scope(o.scope), symbols(o.symbols), facts(o.facts), gears(o.gears), states(o.states), inputs(o.inputs), outputs(o.outputs), files(o.files), output_names(o.output_names),
      nodes_(o.nodes_), values_(o.values_), value_names_(o.value_names_), node_names_(o.node_names_) {
  for (auto& n : nodes_)
    for (auto& [key, attr] : n.attrs) {
      if (auto* one = std::get_if<std::shared_ptr<Graph>>(&attr)) *one = std::make_shared<Graph>(**one);
      if (auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attr))
        for (auto& g : *many) g = std::make_shared<Graph>(*g);
    }
}

Graph& Graph::operator=(const Graph& other) {
  if (this != &other) *this = Graph(other);
  return *this;
}

size_t Graph::node_count() const {
  return static_cast<size_t>(std::count_if(nodes_.begin(), nodes_.end(), [](auto& n) { return !n.dead; }));
}

namespace {

// By rank, then id, where that is an order in which every node comes after what it reads: nearly always.
std::vector<NodeId> sort_by_rank(const Graph& g) {
  std::vector<std::pair<int64_t, int32_t>> ranked;
  ranked.reserve(g.node_capacity());
  for (size_t i = 0; i < g.node_capacity(); ++i) {
    auto& n = g.node(NodeId{static_cast<int32_t>(i)});
    if (!n.dead) ranked.push_back({n.rank, static_cast<int32_t>(i)});
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<bool> done(g.node_capacity());
  std::vector<NodeId> out;
  out.reserve(ranked.size());
  for (auto [rank, i] : ranked) {
    for (ValueId v : g.node(NodeId{i}).inputs)
      if (v && g.value(v).producer && !done[static_cast<size_t>(g.value(v).producer.v)]) return {};
    done[static_cast<size_t>(i)] = true;
    out.push_back(NodeId{i});
  }
  return out;
}

// Kahn's algorithm, smallest rank first.
std::vector<NodeId> sort_nodes(const Graph& g) {
  if (auto ranked = sort_by_rank(g); !ranked.empty()) return ranked;
  std::vector<int> waiting(g.node_capacity());
  using Entry = std::pair<int64_t, int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (size_t i = 0; i < g.node_capacity(); ++i) {
    auto& n = g.node(NodeId{static_cast<int32_t>(i)});
    if (n.dead) continue;
    for (ValueId v : n.inputs)
      if (v && g.value(v).producer) ++waiting[i];
    if (!waiting[i]) ready.push({n.rank, static_cast<int32_t>(i)});
  }
  std::vector<NodeId> out;
  while (!ready.empty()) {
    NodeId id{ready.top().second};
    ready.pop();
    out.push_back(id);
    for (ValueId v : g.node(id).outputs) {
      if (!v) continue;
      for (auto& u : g.value(v).uses)
        if (--waiting[static_cast<size_t>(u.node.v)] == 0) ready.push({g.node(u.node).rank, u.node.v});
    }
  }
  return out;
}

}  // namespace

std::vector<NodeId> Graph::order() const {
  auto out = sort_nodes(*this);
  GE_CHECK(out.size() == node_count(), "the graph has a cycle");
  return out;
}

bool Graph::has_cycle() const { return sort_nodes(*this).size() != node_count(); }

ValueId Graph::find_value(std::string_view wanted) const {
  for (size_t i = 0; i < values_.size(); ++i)
    if (values_[i].name == wanted) return ValueId{static_cast<int32_t>(i)};
  return {};
}

namespace {
std::string unique_name(std::map<std::string, int, std::less<>>& taken, std::string_view base) {
  auto it = taken.find(base);
  if (it == taken.end()) {
    taken.emplace(base, 0);
    return std::string(base);
  }
  for (;;) {
    std::string s = format("{}.{}", base, ++it->second);
    if (taken.emplace(s, 0).second) return s;
    it = taken.find(base);
  }
}
}  // namespace

Dim Graph::fresh_symbol(std::string_view base) {
  std::string s(base);
  for (int i = 0; symbols.count(s); ++i) s = format("{}{}", base, i);
  symbols.emplace(s, SymbolInfo{});
  return Dim::symbol(s);
}

bool Graph::is_input(ValueId v) const { return std::find(inputs.begin(), inputs.end(), v) != inputs.end(); }
bool Graph::is_output(ValueId v) const { return std::find(outputs.begin(), outputs.end(), v) != outputs.end(); }

int Graph::reader_count(ValueId v) const {
  return static_cast<int>(value(v).uses.size()) +
         static_cast<int>(std::count(outputs.begin(), outputs.end(), v));
}

NodeId Graph::only_reader(ValueId v) const {
  auto& u = value(v).uses;
  return u.size() == 1 && !is_output(v) ? u[0].node : NodeId{};
}

bool Graph::decided_by_data(const Dim& d) const {
  if (d.known()) return false;
  std::vector<std::string> names;
  d.symbols(names);
  return std::any_of(names.begin(), names.end(), [&](auto& s) {
    auto it = symbols.find(s);
    return it != symbols.end() && it->second.data;
  });
}

std::optional<std::vector<Dim>> Graph::elements(ValueId v) const {
  if (!v) return std::nullopt;
  auto& x = value(v);
  if (x.content) return x.content;
  if (!x.constant || x.constant->count() > 1024) return std::nullopt;
  DType t = x.constant->dtype();
  if (!is_integer(t) && t != DType::boolean) return std::nullopt;
  std::vector<Dim> out;
  for (int64_t i = 0; i < x.constant->count(); ++i) out.push_back(x.constant->at_int(i));
  return out;
}

ValueId Graph::add_value(std::string n, Type type) {
  ValueId id{static_cast<int32_t>(values_.size())};
  Value v;
  v.name = unique_name(value_names_, n);
  v.type = std::move(type);
  values_.push_back(std::move(v));
  return id;
}

ValueId Graph::add_input(std::string n, Type type) {
  ValueId id = add_value(std::move(n), std::move(type));
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(Tensor t, std::string_view n) {
  std::vector<Dim> dims(t.dims().begin(), t.dims().end());
  ValueId id = add_value(std::string(n), Type::tensor(t.dtype(), std::move(dims)));
  rest(t);
  value(id).constant = std::make_shared<const Tensor>(std::move(t));
  return id;
}

NodeId Graph::add_node(std::string op, std::vector<ValueId> ins, std::vector<ValueId> outs, Attrs attrs,
                       std::string_view node_name) {
  NodeId id{static_cast<int32_t>(nodes_.size())};
  Node n;
  n.name = unique_name(node_names_, node_name.empty() ? std::string_view(op) : node_name);
  n.op = std::move(op);
  n.attrs = std::move(attrs);
  n.rank = static_cast<int64_t>(nodes_.size());
  n.inputs.resize(ins.size());
  n.outputs.resize(outs.size());
  nodes_.push_back(std::move(n));
  for (size_t i = 0; i < ins.size(); ++i) set_input(id, static_cast<int>(i), ins[i]);
  for (size_t i = 0; i < outs.size(); ++i) set_output(id, static_cast<int>(i), outs[i]);
  return id;
}

NodeId Graph::insert(std::string op, std::vector<ValueId> ins, std::vector<Type> outs, Attrs attrs, NodeId like) {
  std::vector<ValueId> values;
  std::string base = like ? node(like).name : op;
  if (like) node_names_.emplace(base, 0);   // a pass may have named it
  for (auto& t : outs) values.push_back(add_value(base + ".out", std::move(t)));
  NodeId id = add_node(std::move(op), std::move(ins), std::move(values), std::move(attrs), base);
  if (like) {
    node(id).rank = node(like).rank;
    node(id).origin = node(like).origin.empty() ? std::vector{node(like).name} : node(like).origin;
  }
  return id;
}

void Graph::drop_use(ValueId v, NodeId n, int index) {
  auto& uses = value(v).uses;
  auto it = std::find(uses.begin(), uses.end(), Use{n, index});
  if (it != uses.end()) uses.erase(it);
}

void Graph::set_input(NodeId n, int index, ValueId v) {
  auto& slot = node(n).inputs[static_cast<size_t>(index)];
  if (slot) drop_use(slot, n, index);
  slot = v;
  if (v) value(v).uses.push_back({n, index});
}

void Graph::add_node_input(NodeId n, ValueId v) {
  node(n).inputs.push_back({});
  set_input(n, static_cast<int>(node(n).inputs.size()) - 1, v);
}

void Graph::remove_input(NodeId n, size_t index) {
  auto& operands = node(n).inputs;
  const std::vector<ValueId> rest(operands.begin() + static_cast<std::ptrdiff_t>(index) + 1, operands.end());
  for (size_t i = index; i < operands.size(); ++i) set_input(n, static_cast<int>(i), {});
  operands.resize(index);
  for (ValueId v : rest) add_node_input(n, v);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  auto uses = value(from).uses;
  for (auto& u : uses) set_input(u.node, u.index, to);
  std::replace(outputs.begin(), outputs.end(), from, to);
}

void Graph::set_output(NodeId n, int index, ValueId v) {
  if (v && value(v).producer) {
    auto& p = node(value(v).producer);
    std::replace(p.outputs.begin(), p.outputs.end(), v, ValueId{});
  }
  auto& slot = node(n).outputs[static_cast<size_t>(index)];
  if (slot && slot != v) value(slot).producer = NodeId{};
  slot = v;
  if (v) {
    value(v).producer = n;
    value(v).output_index = index;
  }
}

void Graph::make_constant(ValueId v, Tensor t) {
  auto& x = value(v);
  if (x.producer) {
    auto& p = node(x.producer);
    std::replace(p.outputs.begin(), p.outputs.end(), v, ValueId{});
    x.producer = {};
  }
  x.type = Type::tensor(t.dtype(), std::vector<Dim>(t.dims().begin(), t.dims().end()));
  x.content.reset();
  x.layout.clear();
  rest(t);
  x.constant = std::make_shared<const Tensor>(std::move(t));
}

void Graph::set_graph_output(size_t index, ValueId v) { outputs[index] = v; }

void Graph::add_graph_output(ValueId v, std::string n) {
  outputs.push_back(v);
  output_names.push_back(std::move(n));
}

void Graph::erase(NodeId id) {
  for (size_t i = 0; i < node(id).inputs.size(); ++i) set_input(id, static_cast<int>(i), {});
  for (ValueId v : node(id).outputs) {
    if (!v) continue;
    GE_CHECK(reader_count(v) == 0, "an erased node's output is still read: " + value(v).name);
    value(v).producer = {};
  }
  node(id).inputs.clear();
  node(id).outputs.clear();
  node(id).dead = true;
}

namespace {

thread_local std::optional<Error> fault;

constexpr std::string_view kKinds[] = {"an integer", "a float", "a string", "a list of integers", "a list of floats",
                                       "a list of strings", "a tensor", "a graph", "a list of graphs"};

template <class T>
const T* get(const Node& n, std::string_view key) {
  auto it = n.attrs.find(key);
  if (it == n.attrs.end()) return nullptr;
  auto* held = std::get_if<T>(&it->second);
  if (!held && !fault)
    fault = node_error(code::kBadOp, n.name, format("{}: attribute '{}' is {} where {} is needed", n.op, key, kKinds[it->second.index()], kKinds[Attr(T{}).index()]));
  return held;
}

}  // namespace

Status take_attribute_fault() {
  if (!fault) return ok();
  return *std::exchange(fault, std::nullopt);
}

int64_t attr_int(const Node& n, std::string_view key, int64_t otherwise) {
  auto* p = get<int64_t>(n, key);
  return p ? *p : otherwise;
}
double attr_float(const Node& n, std::string_view key, double otherwise) {
  auto* p = get<double>(n, key);
  return p ? *p : otherwise;
}
std::string attr_string(const Node& n, std::string_view key, std::string_view otherwise) {
  auto* p = get<std::string>(n, key);
  return p ? *p : std::string(otherwise);
}
std::vector<int64_t> attr_ints(const Node& n, std::string_view key) {
  auto* p = get<std::vector<int64_t>>(n, key);
  return p ? *p : std::vector<int64_t>{};
}
std::vector<double> attr_floats(const Node& n, std::string_view key) {
  auto* p = get<std::vector<double>>(n, key);
  return p ? *p : std::vector<double>{};
}
std::vector<std::string> attr_strings(const Node& n, std::string_view key) {
  auto* p = get<std::vector<std::string>>(n, key);
  return p ? *p : std::vector<std::string>{};
}
const Tensor* attr_tensor(const Node& n, std::string_view key) { return get<Tensor>(n, key); }
const Graph* attr_graph(const Node& n, std::string_view key) {
  auto* p = get<std::shared_ptr<Graph>>(n, key);
  return p ? p->get() : nullptr;
}
bool has_attr(const Node& n, std::string_view key) { return n.attrs.find(key) != n.attrs.end(); }

bool same(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (auto* t = std::get_if<Tensor>(&a)) return t->same_bytes(std::get<Tensor>(b));
  return std::visit(
      [&](auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, Tensor>) return false;
        else return x == std::get<T>(b);
      },
      a);
}

}  // namespace ge::ir
