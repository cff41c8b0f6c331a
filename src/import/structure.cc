#include "import/structure.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"

namespace ge::onnx {
namespace {

constexpr int kNoNode = -1;

// Views into the graph's strings: valid until its nodes are moved, which is the last step.
struct Scope {
  const Scope* outer = nullptr;
  std::unordered_map<std::string_view, int>
      producer;  // node, or kNoNode for an input or initializer
};

bool visible(const Scope* scope, std::string_view name) {
  for (; scope; scope = scope->outer)
    if (scope->producer.count(name)) return true;
  return false;
}

std::string label(const NodeProto& n, size_t index) {
  return n.name.empty() ? format("{} {}", index, describe(n)) : describe(n);
}

Error defined_twice(std::string_view value, std::string_view node) {
  return node_error(code::kBadGraph, node,
                    format("Value {} is defined more than once.", quote(value)),
                    "each name in an ONNX graph has one definition", "export the model again");
}

class Checker {
 public:
  Checker(GraphProto& g, const Scope* outer) : g_(g) { scope_.outer = outer; }

  Status run() {
    GE_RETURN_IF_ERROR(define());
    GE_RETURN_IF_ERROR(connect());
    GE_RETURN_IF_ERROR(check_outputs());
    return sort();
  }
  const std::vector<std::string>& captured() const { return captured_; }

 private:
  bool main() const { return scope_.outer == nullptr; }

  Status define() {
    auto& defined = scope_.producer;
    for (auto& v : g_.inputs) {
      if (v.name.empty())
        return error(code::kBadGraph, format("An input of graph {} has no name.", quote(g_.name)));
      if (!defined.emplace(v.name, kNoNode).second) return defined_twice(v.name, "");
    }
    std::unordered_set<std::string_view> initializers;
    auto initializer = [&](const std::string& name) -> Status {
      if (name.empty())
        return error(code::kBadGraph,
                     format("An initializer of graph {} has no name.", quote(g_.name)));
      if (!initializers.insert(name).second) return defined_twice(name, "");
      defined.emplace(name, kNoNode);  // may be an input as well: then it is that input's default
      return ok();
    };
    for (auto& t : g_.initializers) GE_RETURN_IF_ERROR(initializer(t.name));
    for (auto& t : g_.sparse_initializers) GE_RETURN_IF_ERROR(initializer(t.values.name));
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      auto& n = g_.nodes[i];
      if (n.op_type.empty())
        return node_error(code::kParse, n.name,
                          format("Node {} {} has no operator.", i, quote(n.name)));
      for (auto& name : n.outputs)
        if (!name.empty() && !defined.emplace(name, static_cast<int>(i)).second)
          return defined_twice(name, n.name);
    }
    return ok();
  }

  Status connect() {
    before_.resize(g_.nodes.size());
    for (size_t i = 0; i < g_.nodes.size(); ++i) {
      auto& n = g_.nodes[i];
      for (auto& name : n.inputs)
        if (!name.empty()) GE_RETURN_IF_ERROR(read(i, name));
      for (auto& a : n.attributes)
        for (auto& inner : a.graphs) {
          Checker checker(inner, &scope_);
          GE_RETURN_IF_ERROR(checker.run().context(format("{} of node {}", a.name, label(n, i))));
          for (auto& name : checker.captured()) GE_RETURN_IF_ERROR(read(i, name));
        }
    }
    return ok();
  }

  Status read(size_t i, const std::string& name) {
    auto it = scope_.producer.find(name);
    if (it != scope_.producer.end()) {
      if (it->second != kNoNode) before_[i].push_back(it->second);
      return ok();
    }
    auto& n = g_.nodes[i];
    if (!visible(scope_.outer, name))
      return node_error(
          code::kBadGraph, n.name,
          format("Node {} reads value {}, which nothing defines.", label(n, i), quote(name)),
          "no node output, graph input or initializer has this name",
          "export the model again; an initializer may have been taken out of it");
    capture(name);
    return ok();
  }
  void capture(const std::string& name) {
    if (seen_.insert(name).second) captured_.push_back(name);
  }

  Status check_outputs() {
    if (g_.outputs.empty() && main())
      return error(code::kBadGraph, "The model's graph has no outputs.", "",
                   "export the model again");
    std::unordered_set<std::string_view> seen;
    for (auto& v : g_.outputs) {
      if (v.name.empty())
        return error(code::kBadGraph, format("An output of graph {} has no name.", quote(g_.name)));
      if (main() && !seen.insert(v.name).second)
        return error(code::kBadGraph,
                     format("The model has two outputs of the name {}.", quote(v.name)));
      if (scope_.producer.count(v.name)) continue;
      if (!visible(scope_.outer, v.name))
        return error(
            code::kBadGraph,
            format("Output {} of graph {} is computed by nothing.", quote(v.name), quote(g_.name)),
            "no node output, graph input or initializer has this name", "export the model again");
      hand_out(v);
    }
    return ok();
  }
  void hand_out(ValueInfoProto& output) {
    capture(output.name);
    std::string inner = output.name + ".out";
    while (visible(&scope_, inner)) inner += "_";
    NodeProto n;
    n.name = inner;
    n.op_type = "Identity";
    n.inputs = {output.name};
    n.outputs = {inner};
    n.opset = 13;
    added_.push_back(std::move(n));
    output.name = inner;
  }

  Status sort() {
    bool sorted = true;
    for (size_t i = 0; i < before_.size(); ++i)
      for (int j : before_[i]) sorted = sorted && static_cast<size_t>(j) < i;
    if (!sorted) GE_RETURN_IF_ERROR(reorder());
    for (auto& n : added_) g_.nodes.push_back(std::move(n));
    return ok();
  }
  // Kahn's algorithm; among those that are ready the file's order is kept.
  Status reorder() {
    size_t count = before_.size();
    std::vector<std::vector<int>> after(count);
    std::vector<size_t> waiting(count);
    for (size_t i = 0; i < count; ++i) {
      waiting[i] = before_[i].size();
      for (int j : before_[i]) after[static_cast<size_t>(j)].push_back(static_cast<int>(i));
    }
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (size_t i = 0; i < count; ++i)
      if (!waiting[i]) ready.push(static_cast<int>(i));
    std::vector<int> order;
    while (!ready.empty()) {
      int i = ready.top();
      ready.pop();
      order.push_back(i);
      for (int k : after[static_cast<size_t>(i)])
        if (--waiting[static_cast<size_t>(k)] == 0) ready.push(k);
    }
    if (order.size() != count) return cycle(waiting);
    std::vector<NodeProto> nodes;
    nodes.reserve(count);
    for (int i : order) nodes.push_back(std::move(g_.nodes[static_cast<size_t>(i)]));
    g_.nodes = std::move(nodes);
    return ok();
  }
  // Every node still waiting waits for another one such: going back must come round.
  Error cycle(const std::vector<size_t>& waiting) {
    size_t at = 0;
    while (!waiting[at]) ++at;
    std::vector<int> path;
    std::vector<int> position(waiting.size(), -1);
    while (position[at] < 0) {
      position[at] = static_cast<int>(path.size());
      path.push_back(static_cast<int>(at));
      for (int j : before_[at])
        if (waiting[static_cast<size_t>(j)]) at = static_cast<size_t>(j);
    }
    path.erase(path.begin(), path.begin() + position[at]);
    std::reverse(path.begin(), path.end());
    std::rotate(path.begin(), std::min_element(path.begin(), path.end()), path.end());
    std::vector<std::string> names;
    for (int i : path) {
      if (names.size() == 8 && path.size() > 9) {
        names.push_back(format("({} more)", path.size() - 8));
        break;
      }
      names.push_back(label(g_.nodes[static_cast<size_t>(i)], static_cast<size_t>(i)));
    }
    names.push_back(names.front());
    auto& first = g_.nodes[static_cast<size_t>(path.front())];
    return node_error(code::kBadGraph, first.name,
                      format("The graph has a cycle: {}.", join(names, " -> ")),
                      "these nodes read one another's results", "export the model again");
  }

  GraphProto& g_;
  Scope scope_;
  std::vector<std::vector<int>> before_;  // for each node, those that must run before it
  std::vector<NodeProto> added_;
  std::vector<std::string> captured_;
  std::unordered_set<std::string> seen_;
};

}  // namespace

Status check_structure(GraphProto& graph) { return Checker(graph, nullptr).run(); }

std::vector<std::string> captures(const GraphProto& g) {
  std::unordered_set<std::string> known;
  for (auto& v : g.inputs) known.insert(v.name);
  for (auto& t : g.initializers) known.insert(t.name);
  for (auto& t : g.sparse_initializers) known.insert(t.values.name);
  for (auto& n : g.nodes) known.insert(n.outputs.begin(), n.outputs.end());
  std::vector<std::string> out;
  auto read = [&](const std::string& name) {
    if (!name.empty() && known.insert(name).second) out.push_back(name);
  };
  for (auto& n : g.nodes) {
    for (auto& name : n.inputs) read(name);
    for (auto& a : n.attributes)
      for (auto& inner : a.graphs)
        for (auto& name : captures(inner)) read(name);
  }
  for (auto& v : g.outputs) read(v.name);
  return out;
}

}  // namespace ge::onnx
