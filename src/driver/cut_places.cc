// Where a model is cut: at nodes that the user names, or where few bytes cross and parts cost the same.
#include <algorithm>
#include <charconv>
#include <set>

#include "base/text.h"
#include "driver/cut.h"
#include "ops/op.h"

namespace ge {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr double kNodeCost = 65536;       // compiling a node takes about as long as laying out so many bytes of weights
constexpr int64_t kOpenSize = 32;         // what a size counts that is not known
constexpr double kNoTensor = 1 << 30;     // what is no tensor should not cross
constexpr double kFusable = 1.5;          // a cut between nodes that fuse costs more than the bytes
constexpr double kSlack = 0.25;           // how far from equal cost a cut may be, in parts

Error invalid(const std::string& value, std::string reason, std::string fix = "") {
  return error(code::kInvalidValue, format("Value {} for parameter --split is invalid. Reason: {}.", value, reason), "", std::move(fix));
}

double bytes_of(const ir::Graph& typed, ValueId v) {
  auto& x = typed.value(v);
  if (x.content || x.constant) return 0;
  if (x.type.kind != ir::TypeKind::tensor || !x.type.ranked) return kNoTensor;
  double bytes = static_cast<double>(std::max<int64_t>(size_of(x.type.dtype), 1));
  for (auto& d : x.type.dims) {
    auto n = d.known() ? Result<int64_t>(d.value()) : d.eval([&](std::string_view name) -> std::optional<int64_t> {
      auto it = typed.symbols.find(name);
      return it == typed.symbols.end() ? kOpenSize : std::clamp(kOpenSize, it->second.min, it->second.max);
    });
    bytes *= n.ok() ? static_cast<double>(std::max<int64_t>(*n, 0)) : static_cast<double>(kOpenSize);
  }
  return bytes;
}

bool on_cube(const ir::Graph& g, NodeId id) {
  auto* def = ops::find(g.node(id).op);
  return def && def->unit == kernels::Unit::cube;
}

int64_t nodes_in(const ir::Graph& g);
int64_t nodes_in(const ir::Node& n) {
  int64_t count = 1;
  for (auto& [key, attr] : n.attrs) {
    if (auto* one = std::get_if<std::shared_ptr<ir::Graph>>(&attr)) count += nodes_in(**one);
    if (auto* many = std::get_if<std::vector<std::shared_ptr<ir::Graph>>>(&attr))
      for (auto& g : *many) count += nodes_in(*g);
  }
  return count;
}
int64_t nodes_in(const ir::Graph& g) {
  int64_t count = 0;
  for (NodeId id : g.order()) count += nodes_in(g.node(id));
  return count;
}

struct Line {
  std::vector<NodeId> nodes;        // in order, without those that compute from constants
  std::vector<double> cost;         // of the first i nodes
  std::vector<double> crossing;     // bytes between node i-1 and node i
};

Line line_up(const ir::Graph& g, const ir::Graph& typed) {
  Line line;
  auto constant = constant_nodes(g);
  std::vector<int> at(g.node_capacity(), -1);
  for (NodeId id : g.order()) {
    if (constant[static_cast<size_t>(id.v)]) continue;
    at[static_cast<size_t>(id.v)] = static_cast<int>(line.nodes.size());
    line.nodes.push_back(id);
  }
  // Weights that lie in the model or are computed from such; each counts where it is met first.
  std::set<const void*> met;
  auto weight = [&](ValueId v) -> double {
    auto& x = g.value(v);
    if (x.constant) return met.insert(x.constant.get()).second ? static_cast<double>(x.constant->bytes()) : 0;
    auto& type = typed.value(v).type;
    const bool computed = x.producer && constant[static_cast<size_t>(x.producer.v)] && type.kind == ir::TypeKind::tensor && type.is_static();
    if (!computed || !met.insert(&x).second) return 0;
    double bytes = static_cast<double>(std::max<int64_t>(size_of(type.dtype), 1));
    for (auto& d : type.dims) bytes *= static_cast<double>(std::max<int64_t>(d.value(), 0));
    return bytes;
  };
  line.cost.push_back(0);
  line.crossing.assign(line.nodes.size() + 1, 0);
  for (size_t i = 0; i < line.nodes.size(); ++i) {
    auto& n = g.node(line.nodes[i]);
    double cost = kNodeCost * static_cast<double>(nodes_in(n));
    for (ValueId v : n.inputs)
      if (v) cost += weight(v);
    line.cost.push_back(line.cost.back() + cost);
    for (ValueId v : n.outputs) {
      if (!v) continue;
      int last = -1;
      for (auto& u : g.value(v).uses) last = std::max(last, at[static_cast<size_t>(u.node.v)]);
      if (last < 0) continue;
      double bytes = bytes_of(typed, v);
      NodeId only = g.only_reader(v);
      if (only && !on_cube(g, only)) bytes *= kFusable;
      line.crossing[i + 1] += bytes;
      line.crossing[static_cast<size_t>(last) + 1] -= bytes;
    }
  }
  for (size_t i = 1; i < line.crossing.size(); ++i) line.crossing[i] += line.crossing[i - 1];
  return line;
}

Result<Places> by_cost(const ir::Graph& g, const ir::Graph& typed, int parts) {
  Line line = line_up(g, typed);
  const size_t count = line.nodes.size();
  if (static_cast<size_t>(parts) > count)
    return invalid(format("{}", parts), format("the model has {} nodes that can be parted", count), count ? format("ask for at most {} parts", count) : "compile it whole");
  Places p;
  p.part_of.assign(g.node_capacity(), -1);
  const double all = line.cost.back();
  size_t begin = 0;
  for (int k = 0; k < parts; ++k) {
    size_t end = count;
    if (k + 1 < parts) {
      const double goal = all * (k + 1) / parts, slack = kSlack * all / parts;
      const size_t most = count - static_cast<size_t>(parts - k - 1);
      // Of the places near the goal the one where least crosses, of those the nearest; with none near, the nearest.
      auto worse = [&](size_t x) {
        double off = std::abs(line.cost[x] - goal);
        return std::tuple(off > slack ? off : 0.0, off > slack ? 0.0 : line.crossing[x], off);
      };
      end = begin + 1;
      for (size_t x = begin + 2; x <= most; ++x)
        if (worse(x) < worse(end)) end = x;
    }
    p.names.push_back(format("part{}", k));
    for (size_t i = begin; i < end; ++i) p.part_of[static_cast<size_t>(line.nodes[i].v)] = k;
    begin = end;
  }
  return p;
}

// The node called `name`, or the one that makes the value called so.
NodeId find_node(const ir::Graph& g, const std::string& name, const std::vector<NodeId>& order) {
  for (NodeId id : order)
    if (g.node(id).name == name) return id;
  ValueId v = g.find_value(name);
  return v ? g.value(v).producer : NodeId{};
}

// The node in whose nested graphs a node or value of that name stands, or "".
std::string holder(const ir::Graph& g, const std::string& name) {
  for (NodeId id : g.order()) {
    auto inside = [&](const ir::Graph& body) {
      auto order = body.order();
      return bool(find_node(body, name, order)) || !holder(body, name).empty();
    };
    for (auto& [key, attr] : g.node(id).attrs) {
      if (auto* one = std::get_if<std::shared_ptr<ir::Graph>>(&attr); one && inside(**one)) return g.node(id).name;
      if (auto* many = std::get_if<std::vector<std::shared_ptr<ir::Graph>>>(&attr))
        for (auto& body : *many)
          if (inside(*body)) return g.node(id).name;
    }
  }
  return "";
}

Error unknown(const ir::Graph& g, const std::string& name, const std::vector<NodeId>& order) {
  if (std::string around = holder(g, name); !around.empty())
    return node_error(code::kInvalidValue, around, format("--split names '{}', which stands inside of node '{}'.", name, around), "a graph inside a node is compiled as a whole", format("cut at '{}'", around));
  std::vector<std::string> names;
  for (NodeId id : order) {
    names.push_back(g.node(id).name);
    for (ValueId v : g.node(id).outputs)
      if (v) names.push_back(g.value(v).name);
  }
  std::string near = nearest(name, names);
  return error(code::kUnknownName, format("--split names '{}', which the model does not have.", name), "", near.empty() ? "give the name of a node or of a value that one makes" : format("did you mean '{}'?", near));
}

Result<Places> by_names(const ir::Graph& g, const SplitOptions& o) {
  Places p;
  p.part_of.assign(g.node_capacity(), -1);
  auto order = g.order();
  auto constant = constant_nodes(g);
  for (auto& [part, end] : o.ends) {
    if (p.names.empty() || p.names.back() != part) p.names.push_back(part);
    const int k = static_cast<int>(p.names.size()) - 1;
    NodeId id = find_node(g, end, order);
    if (!id) return unknown(g, end, order);
    if (p.part_of[static_cast<size_t>(id.v)] >= 0 && p.part_of[static_cast<size_t>(id.v)] < k)
      return invalid(o.text(), format("node '{}', where part '{}' ends, belongs to part '{}' already, which needs it", g.node(id).name, part, p.names[static_cast<size_t>(p.part_of[static_cast<size_t>(id.v)])]), "name the parts in the order in which they run");
    // The node and all that it needs.
    std::vector<NodeId> stack{id};
    while (!stack.empty()) {
      NodeId at = stack.back();
      stack.pop_back();
      if (p.part_of[static_cast<size_t>(at.v)] >= 0 || constant[static_cast<size_t>(at.v)]) continue;
      p.part_of[static_cast<size_t>(at.v)] = k;
      for (ValueId v : g.node(at).inputs)
        if (v && g.value(v).producer) stack.push_back(g.value(v).producer);
    }
  }
  bool rest = false;
  for (NodeId id : order) {
    int& k = p.part_of[static_cast<size_t>(id.v)];
    if (k >= 0 || constant[static_cast<size_t>(id.v)]) continue;
    k = static_cast<int>(p.names.size());
    rest = true;
  }
  if (rest) {
    std::string name = "rest";
    while (std::find(p.names.begin(), p.names.end(), name) != p.names.end()) name += "_";
    p.names.push_back(name);
  }
  return p;
}

bool plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c != '/' && c != '\\' && c != 127; });
}

}  // namespace

std::string SplitOptions::text() const {
  if (parts) return format("{}", parts);
  std::vector<std::string> all;
  for (auto& [part, node] : ends) all.push_back(part + "=" + node);
  return join(all, ",");
}

Result<SplitOptions> parse_split(const std::string& text) {
  SplitOptions o;
  if (text.find('=') == std::string::npos) {
    auto [end, e] = std::from_chars(text.data(), text.data() + text.size(), o.parts);
    if (e != std::errc() || end != text.data() + text.size() || o.parts < 1 || o.parts > 1024)
      return invalid(text, "it must be a number of parts from 1 to 1024, or name=node,name=node", "--split=4, or --split=encoder=/encoder/last/Add,decoder=/head/MatMul");
    return o;
  }
  for (auto& word : split(text, ',')) {
    size_t equals = word.find('=');
    std::string part(trim(word.substr(0, equals))), node(equals == std::string::npos ? "" : trim(std::string_view(word).substr(equals + 1)));
    if (!plain_name(part) || node.empty()) return invalid(text, format("'{}' is not name=node", word), "a name has no '/' and no space");
    for (size_t i = 0; i + 1 < o.ends.size(); ++i)
      if (o.ends[i].first == part && o.ends.back().first != part) return invalid(text, format("part '{}' stands twice", part), "name a part's nodes one after another");
    o.ends.emplace_back(part, node);
  }
  return o;
}

std::vector<bool> constant_nodes(const ir::Graph& g) {
  std::vector<bool> out(g.node_capacity());
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    auto* def = ops::find(n.op);
    out[static_cast<size_t>(id.v)] = def && def->deterministic && !n.inputs.empty() && std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
      return !v || g.value(v).constant || (g.value(v).producer && out[static_cast<size_t>(g.value(v).producer.v)]);
    });
  }
  return out;
}

Result<Places> place_nodes(const ir::Graph& g, const ir::Graph& typed, const SplitOptions& o) {
  return o.parts > 0 ? by_cost(g, typed, o.parts) : by_names(g, o);
}

}  // namespace ge
