#include "import/functions.h"

#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"

namespace ge::onnx {
namespace {

// Graphs and calls inside one another; bounds our own recursion.
constexpr int kMaxDepth = 200;
// Copied nodes and attribute data (in units of 256 bytes): a small file must not grow without end
// by functions that call functions.
constexpr size_t kMaxCopies = 500'000;

using Opsets = std::map<std::string, int64_t, std::less<>>;
using Names = std::unordered_map<std::string, std::string>;

std::string title(const FunctionProto& f) {
  std::string s = f.domain.empty() ? f.name : format("{}.{}", f.domain, f.name);
  return f.overload.empty() ? s : format("{}:{}", s, f.overload);
}

Status read_opsets(const std::vector<OperatorSetId>& imports, const std::string& where,
                   Opsets& out) {
  Opsets own;
  for (auto& id : imports) {
    std::string domain = id.domain.empty() ? "ai.onnx" : id.domain;
    if (id.version < 1)
      return error(code::kParse, format("The opset import of domain {} in {} has version {}.",
                                        domain, where, id.version));
    auto [it, fresh] = own.emplace(id.domain, id.version);
    if (!fresh && it->second != id.version)
      return error(code::kParse, format("{} imports domain {} twice, with versions {} and {}.",
                                        where, domain, it->second, id.version));
  }
  for (auto& [domain, version] : own) out[domain] = version;
  return ok();
}

size_t weight(const GraphProto& g);
size_t weight(const AttributeProto& a) {
  size_t bytes = a.s.size() + a.ints.size() * 8 + a.floats.size() * 4 + a.strings.size() * 32;
  for (auto& s : a.strings) bytes += s.size();
  size_t n = 1 + bytes / 256 + a.tensors.size();
  for (auto& g : a.graphs) n += weight(g);
  return n;
}
size_t weight(const GraphProto& g) {
  size_t n = 1 + g.initializers.size();
  for (auto& node : g.nodes) {
    ++n;
    for (auto& a : node.attributes) n += weight(a);
  }
  return n;
}

class Inliner {
 public:
  explicit Inliner(ModelProto& model) : model_(model) {}

  Status run() {
    GE_RETURN_IF_ERROR(read_opsets(model_.opset_imports, "The model", opsets_));
    for (auto& f : model_.functions) {
      if (!functions_.emplace(std::tie(f.domain, f.name, f.overload), &f).second)
        return error(code::kParse, format("The model defines function {} twice.", title(f)));
    }
    if (!model_.functions.empty()) collect_names(model_.graph);
    GE_RETURN_IF_ERROR(expand_graph(model_.graph, opsets_));
    functions_.clear();
    model_.functions.clear();
    return ok();
  }

 private:
  // What one call means for the body that is copied for it.
  struct Call {
    const FunctionProto* function;
    std::string prefix;
    std::map<std::string, const AttributeProto*> attributes;
    std::vector<Names> scopes;  // the function's own first, then the nested graphs being renamed
  };

  void collect_names(const GraphProto& g) {
    for (auto& v : g.inputs) names_.insert(v.name);
    for (auto& t : g.initializers) names_.insert(t.name);
    for (auto& t : g.sparse_initializers) names_.insert(t.values.name);
    for (auto& n : g.nodes) {
      names_.insert(n.inputs.begin(), n.inputs.end());
      names_.insert(n.outputs.begin(), n.outputs.end());
      for (auto& a : n.attributes)
        for (auto& inner : a.graphs) collect_names(inner);
    }
  }
  std::string fresh(const std::string& base) {
    if (names_.insert(base).second) return base;
    for (size_t& i = counters_[base];;) {
      std::string s = format("{}.{}", base, ++i);
      if (names_.insert(s).second) return s;
    }
  }

  Status enter() {
    if (++depth_ <= kMaxDepth) return ok();
    return error(code::kTooLarge,
                 format("Graphs and functions are nested deeper than {}.", kMaxDepth));
  }
  Status spend(size_t n) {
    copies_ += n;
    if (copies_ <= kMaxCopies) return ok();
    return error(
        code::kTooLarge,
        "The model's local functions grow beyond all measure when their calls are replaced.");
  }

  Status expand_graph(GraphProto& g, const Opsets& opsets) {
    GE_RETURN_IF_ERROR(enter());
    std::vector<NodeProto> nodes = std::move(g.nodes);
    g.nodes.clear();
    for (auto& n : nodes) GE_RETURN_IF_ERROR(expand_node(std::move(n), opsets, g.nodes));
    --depth_;
    return ok();
  }

  Status expand_node(NodeProto node, const Opsets& opsets, std::vector<NodeProto>& out) {
    // A graph handed to a function was expanded where it was written, under that place's opsets.
    if (node.opset == 0) {
      for (auto& a : node.attributes) {
        if (!a.ref_attr_name.empty())
          return node_error(code::kParse, node.name,
                            format("Node {} refers to the function attribute {} outside a "
                                   "function.",
                                   describe(node), quote(a.ref_attr_name)));
        for (auto& g : a.graphs) GE_RETURN_IF_ERROR(expand_graph(g, opsets));
      }
      auto f = functions_.find(std::tie(node.domain, node.op_type, node.overload));
      if (f != functions_.end()) return expand_call(node, *f->second, out);
      GE_TRY(node.opset, version_of(node, opsets));
    }
    out.push_back(std::move(node));
    return ok();
  }

  Result<int64_t> version_of(const NodeProto& node, const Opsets& opsets) {
    if (auto it = opsets.find(node.domain); it != opsets.end()) return it->second;
    // Exporters forget custom domains, which have one version only.
    if (!node.domain.empty() && node.domain.compare(0, 7, "ai.onnx") != 0) return int64_t{1};
    std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
    return node_error(code::kUnsupportedOp, node.name,
                      format("Node {} is of domain {}, of which the model imports no "
                             "version.",
                             describe(node), domain),
                      "the model has no opset import for it", "export the model again");
  }

  Status expand_call(const NodeProto& node, const FunctionProto& f, std::vector<NodeProto>& out) {
    auto where = format("the call {} of function {}", describe(node), title(f));
    for (size_t i = 0; i < stack_.size(); ++i)
      if (stack_[i] == &f) return recursion(i, node);
    if (node.inputs.size() > f.inputs.size() || node.outputs.size() > f.outputs.size())
      return node_error(code::kBadOp, node.name,
                        format("Node {} has {} inputs and {} outputs, function {} has {} and "
                               "{}.",
                               describe(node), node.inputs.size(), node.outputs.size(), title(f),
                               f.inputs.size(), f.outputs.size()));
    GE_RETURN_IF_ERROR(enter());
    stack_.push_back(&f);
    Opsets opsets = opsets_;
    GE_RETURN_IF_ERROR(read_opsets(f.opset_imports, "Function " + title(f), opsets));
    Call call{&f, node.name.empty() ? f.name : node.name, {}, {}};
    for (auto& a : f.attribute_protos) call.attributes[a.name] = &a;
    for (auto& a : node.attributes) call.attributes[a.name] = &a;
    std::vector<NodeProto> copies;
    GE_RETURN_IF_ERROR(bind(node, call, opsets, copies).context(where));
    for (auto& body_node : f.nodes) {
      NodeProto copy;
      GE_RETURN_IF_ERROR(instantiate(body_node, call, copy).context(where));
      copies.push_back(std::move(copy));
    }
    for (auto& copy : copies)
      GE_RETURN_IF_ERROR(expand_node(std::move(copy), opsets, out).context(where));
    stack_.pop_back();
    --depth_;
    return ok();
  }

  Error recursion(size_t first, const NodeProto& node) {
    std::vector<std::string> cycle;
    for (size_t i = first; i < stack_.size(); ++i) cycle.push_back(title(*stack_[i]));
    cycle.push_back(cycle.front());
    return node_error(
        code::kBadGraph, node.name,
        format("The model's local functions call themselves: {}.", join(cycle, " -> ")),
        "ONNX does not allow recursive functions", "export the model again");
  }

  // Gives every value of the function's body its name in the caller's graph.
  Status bind(const NodeProto& node, Call& call, const Opsets& opsets,
              std::vector<NodeProto>& copies) {
    const FunctionProto& f = *call.function;
    Names names;
    auto at = [](const std::vector<std::string>& list, size_t i) {
      return i < list.size() ? list[i] : std::string();
    };
    auto bad = [&](std::string_view name) {
      return error(code::kBadGraph,
                   format("Function {} defines value {} twice.", title(f), quote(name)));
    };
    for (size_t i = 0; i < f.inputs.size(); ++i)
      if (!names.emplace(f.inputs[i], at(node.inputs, i)).second) return bad(f.inputs[i]);
    for (size_t i = 0; i < f.outputs.size(); ++i) {
      std::string actual = at(node.outputs, i);
      if (actual.empty()) actual = fresh(format("{}/{}", call.prefix, f.outputs[i]));
      auto [it, first] = names.emplace(f.outputs[i], actual);
      if (first || it->second.empty()) continue;
      // An input handed on, or one value returned twice.
      NodeProto copy;
      copy.name = format("{}/{}", call.prefix, f.outputs[i]);
      copy.op_type = "Identity";
      copy.inputs = {it->second};
      copy.outputs = {actual};
      auto version = opsets.find("");
      copy.opset = version == opsets.end() ? 13 : version->second;
      copies.push_back(std::move(copy));
    }
    std::unordered_set<std::string_view> defined(f.inputs.begin(), f.inputs.end());
    for (auto& n : f.nodes)
      for (auto& name : n.outputs) {
        if (name.empty()) continue;
        if (!defined.insert(name).second) return bad(name);
        if (!names.count(name)) names.emplace(name, fresh(format("{}/{}", call.prefix, name)));
      }
    for (auto& name : f.outputs)
      if (!defined.count(name))
        return error(code::kBadGraph,
                     format("Function {} does not compute its output {}.", title(f), quote(name)));
    call.scopes.push_back(std::move(names));
    return ok();
  }

  static const std::string* lookup(const Call& call, const std::string& name) {
    for (size_t i = call.scopes.size(); i-- > 0;)
      if (auto it = call.scopes[i].find(name); it != call.scopes[i].end()) return &it->second;
    return nullptr;
  }

  Status instantiate(const NodeProto& from, Call& call, NodeProto& to) {
    GE_RETURN_IF_ERROR(spend(1));
    to.name = format("{}/{}", call.prefix, from.name.empty() ? from.op_type : from.name);
    to.op_type = from.op_type;
    to.domain = from.domain;
    to.overload = from.overload;
    to.metadata = from.metadata;
    for (auto& name : from.inputs) {
      const std::string* s = name.empty() ? &name : lookup(call, name);
      if (!s)
        return node_error(code::kBadGraph, to.name,
                          format("Node {} of function {} reads value {}, which the function "
                                 "does not define.",
                                 describe(from), title(*call.function), quote(name)));
      to.inputs.push_back(*s);
    }
    for (auto& name : from.outputs) to.outputs.push_back(name.empty() ? name : *lookup(call, name));
    for (auto& a : from.attributes) {
      AttributeProto copy;
      GE_TRY(bool present, instantiate(a, from, call, copy));
      if (present) to.attributes.push_back(std::move(copy));
    }
    return ok();
  }

  // False when it refers to an attribute that the call leaves out.
  Result<bool> instantiate(const AttributeProto& from, const NodeProto& node, Call& call,
                           AttributeProto& to) {
    if (from.ref_attr_name.empty()) {
      GE_RETURN_IF_ERROR(spend(from.graphs.empty() ? weight(from) : 1));
      to = from;
      // What a nested graph captures is the function's, hence renamed with it.
      for (auto& g : to.graphs) GE_RETURN_IF_ERROR(rename(g, call));
      return true;
    }
    const FunctionProto& f = *call.function;
    auto it = call.attributes.find(from.ref_attr_name);
    if (it == call.attributes.end()) {
      for (auto& name : f.attributes)
        if (name == from.ref_attr_name) return false;
      return node_error(code::kParse, node.name,
                        format("Node {} of function {} refers to attribute {}, which the "
                               "function does not have.",
                               describe(node), title(f), quote(from.ref_attr_name)));
    }
    if (from.type != AttributeType::undefined && from.type != it->second->type)
      return node_error(code::kParse, node.name,
                        format("Attribute {} of node {} in function {} is {}, but the call "
                               "gives {}.",
                               quote(from.name), describe(node), title(f), name(from.type),
                               name(it->second->type)));
    GE_RETURN_IF_ERROR(spend(weight(*it->second)));
    to = *it->second;  // a graph in it belongs to the caller: not renamed
    to.name = from.name;
    return true;
  }

  Status rename(GraphProto& g, Call& call) {
    GE_RETURN_IF_ERROR(enter());
    call.scopes.emplace_back();
    auto define = [&](std::string& name) {
      if (name.empty()) return;
      auto [it, first] = call.scopes.back().emplace(name, "");
      if (first) it->second = fresh(format("{}/{}", call.prefix, name));
      name = it->second;
    };
    for (auto& v : g.inputs) define(v.name);
    for (auto& t : g.initializers) define(t.name);
    for (auto& t : g.sparse_initializers) define(t.values.name);
    for (auto& n : g.nodes)
      for (std::string name : n.outputs) define(name);
    for (auto& n : g.nodes) {
      NodeProto copy;
      GE_RETURN_IF_ERROR(instantiate(n, call, copy));
      n = std::move(copy);
    }
    for (auto& v : g.outputs) {
      const std::string* s = lookup(call, v.name);
      if (!s)
        return error(
            code::kBadGraph,
            format("A nested graph of function {} returns value {}, which nothing defines.",
                   title(*call.function), quote(v.name)));
      v.name = *s;
    }
    for (auto& v : g.value_info)
      if (const std::string* s = lookup(call, v.name)) v.name = *s;
    call.scopes.pop_back();
    --depth_;
    return ok();
  }

  ModelProto& model_;
  Opsets opsets_;
  std::map<std::tuple<std::string, std::string, std::string>, const FunctionProto*> functions_;
  std::unordered_set<std::string> names_;
  std::unordered_map<std::string, size_t> counters_;
  std::vector<const FunctionProto*> stack_;
  int depth_ = 0;
  size_t copies_ = 0;
};

}  // namespace

Status inline_functions(ModelProto& model) { return Inliner(model).run(); }

}  // namespace ge::onnx
