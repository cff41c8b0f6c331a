// A graph for each part: its nodes, what constants give them, sizes that are known as expressions, and the values
// of the parts before it as inputs.
//
// A size keeps its name on both sides of a cut. Where an input has it only inside an expression, a value whose axis
// it is becomes another input, which nothing reads: it carries the size.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "driver/cut.h"

namespace ge {
namespace {

using ir::NodeId;
using ir::ValueId;

void add_symbols(const Dim& d, std::set<std::string>& out) {
  std::vector<std::string> names;
  d.symbols(names);
  out.insert(names.begin(), names.end());
}

class Cutter {
 public:
  Cutter(const ir::Graph& g, const ir::Graph& typed, const Places& places)
      : g_(g), typed_(typed), places_(places), order_(g.order()), constant_(constant_nodes(g)), parts_(places.names.size()), value_in_(places.names.size()) {
    find_carriers();
  }

  CutModel run() {
    for (size_t i = 0; i < parts_.size(); ++i) build(i);
    outputs();
    CutModel m;
    describe(m);
    for (ValueId v : g_.inputs) m.inputs.push_back(v.v);
    m.outputs = output_numbers_;
    for (auto& p : parts_)
      if (!p.outputs.empty()) m.parts.push_back(std::move(p));
    return m;
  }

 private:
  bool is_constant(ValueId v) const {
    auto& x = g_.value(v);
    return x.constant || (x.producer && constant_[static_cast<size_t>(x.producer.v)]);
  }
  // The part that makes it; -1: an input of the model, or from constants.
  int home(ValueId v) const {
    NodeId id = g_.value(v).producer;
    return id ? places_.part_of[static_cast<size_t>(id.v)] : -1;
  }

  // For each size the first value that has it as an axis.
  void find_carriers() {
    auto carry = [&](ValueId v) {
      auto& type = typed_.value(v).type;
      if (type.kind != ir::TypeKind::tensor || !type.ranked) return;
      for (auto& d : type.dims)
        if (!d.symbol_name().empty()) carrier_.emplace(std::string(d.symbol_name()), v);
    };
    for (ValueId v : g_.inputs) carry(v);
    for (NodeId id : order_)
      for (ValueId v : g_.node(id).outputs)
        if (v && home(v) >= 0) carry(v);
  }
  bool carried(const std::string& symbol, int part) const {
    auto it = carrier_.find(symbol);
    return it != carrier_.end() && home(it->second) < part;
  }

  // Its elements, when they are known without running and all their sizes are at hand in the part.
  const std::vector<Dim>* elements(ValueId v, int part) const {
    auto& x = typed_.value(v);
    if (!x.content || !x.type.is_static() || !(is_integer(x.type.dtype) || x.type.dtype == DType::boolean)) return nullptr;
    std::set<std::string> names;
    for (auto& d : *x.content) add_symbols(d, names);
    bool all = std::all_of(names.begin(), names.end(), [&](auto& s) { return carried(s, part); });
    return all ? &*x.content : nullptr;
  }

  // The part's nodes with their operands, in the model's order.
  void build(size_t k) {
    const int part = static_cast<int>(k);
    std::vector<bool> wanted(g_.node_capacity());
    for (NodeId id : order_) wanted[static_cast<size_t>(id.v)] = places_.part_of[static_cast<size_t>(id.v)] == part;
    for (size_t i = order_.size(); i-- > 0;) {
      if (!wanted[static_cast<size_t>(order_[i].v)]) continue;
      for (ValueId v : g_.node(order_[i]).inputs)
        if (v && g_.value(v).producer && constant_[static_cast<size_t>(g_.value(v).producer.v)]) wanted[static_cast<size_t>(g_.value(v).producer.v)] = true;
    }
    parts_[k].name = places_.names[k];
    auto& graph = parts_[k].graph;
    graph.name = places_.names[k];
    graph.scope = g_.scope;
    std::set<std::string> needed;
    for (NodeId id : order_)
      if (wanted[static_cast<size_t>(id.v)]) copy(id, k, needed);
    if (k + 1 == parts_.size()) {
      last_outputs(k, needed);
      for (ValueId v : g_.inputs)
        if (!taken_.count(v.v)) take(v, k);
    }
    // What the model's nodes ask of its sizes is checked by the program as a whole: the last part asks for all of it.
    if (k + 1 == parts_.size()) ask(graph, part, needed);
    carry_sizes(k, needed);
  }

  void ask(ir::Graph& graph, int part, std::set<std::string>& needed) const {
    for (auto& d : typed_.facts.demands()) {
      std::set<std::string> names;
      add_symbols(d.a, names), add_symbols(d.b, names);
      if (!std::all_of(names.begin(), names.end(), [&](auto& s) { return carried(s, part); })) continue;
      graph.facts.add(d.a, d.b, d.who);
      needed.insert(names.begin(), names.end());
    }
  }

  void copy(NodeId id, size_t k, std::set<std::string>& needed) {
    auto& n = g_.node(id);
    auto& graph = parts_[k].graph;
    std::vector<ValueId> ins, outs;
    for (ValueId v : n.inputs) ins.push_back(v ? operand(v, k, needed) : ValueId{});
    for (ValueId v : n.outputs) {
      ValueId made;
      if (v) {
        made = graph.add_value(g_.value(v).name, g_.value(v).type);
        graph.value(made).layout = g_.value(v).layout;
        value_in_[k][v.v] = made;
      }
      outs.push_back(made);
    }
    NodeId made = graph.add_node(n.op, std::move(ins), std::move(outs), n.attrs, n.name);
    graph.node(made).origin = n.origin;
    graph.node(made).rank = n.rank;
  }

  ValueId operand(ValueId v, size_t k, std::set<std::string>& needed) {
    if (auto it = value_in_[k].find(v.v); it != value_in_[k].end()) return it->second;
    auto& graph = parts_[k].graph;
    if (auto& x = g_.value(v).constant ? g_.value(v) : typed_.value(v); x.constant) {
      ValueId made = graph.add_value(g_.value(v).name, x.type);
      graph.value(made).constant = x.constant;
      return value_in_[k][v.v] = made;
    }
    if (auto* known = elements(v, static_cast<int>(k))) {
      for (auto& d : *known) add_symbols(d, needed);
      return value_in_[k][v.v] = sizes(v, *known, graph);
    }
    return take(v, k);
  }

  // Nodes that make a tensor of these elements.
  ValueId sizes(ValueId v, const std::vector<Dim>& elements, ir::Graph& graph) const {
    auto& name = g_.value(v).name;
    auto& type = typed_.value(v).type;
    std::vector<std::string> texts;
    for (auto& d : elements) texts.push_back(d.text());
    auto node = [&](const char* op, std::vector<ValueId> ins, ir::Type t, ir::Attrs attrs) {
      ValueId out = graph.add_value(name, std::move(t));
      NodeId id = graph.add_node(op, std::move(ins), {out}, std::move(attrs), name);
      graph.node(id).rank = -1;
      return out;
    };
    ValueId out = node("ge.Sizes", {}, ir::Type::tensor(DType::i64, {static_cast<int64_t>(elements.size())}), {{"sizes", texts}});
    if (type.dims.size() != 1) {
      std::vector<int64_t> dims;
      for (auto& d : type.dims) dims.push_back(d.value());
      out = node("Reshape", {out, graph.add_constant(Tensor::vector_i64(dims), name + ".shape")}, ir::Type::tensor(DType::i64, type.dims), {});
    }
    return type.dtype == DType::i64 ? out : node("Cast", {out}, type, {{"to", static_cast<int64_t>(type.dtype)}});
  }

  // A value from outside becomes an input of the part.
  ValueId take(ValueId v, size_t k) {
    auto& part = parts_[k];
    if (auto it = value_in_[k].find(v.v); it != value_in_[k].end()) return it->second;
    ir::Type type = typed_.value(v).type;
    if (home(v) < 0) type = g_.value(v).type;
    ValueId made = part.graph.add_input(g_.value(v).name, std::move(type));
    part.inputs.push_back(v.v);
    taken_.insert(v.v);
    return value_in_[k][v.v] = made;
  }

  // Every size that the part's inputs and known elements name is an axis of an input, or is renamed.
  void carry_sizes(size_t k, std::set<std::string> needed) {
    auto& part = parts_[k];
    std::set<std::string> here;
    for (size_t i = 0;;) {
      for (; i < part.graph.inputs.size(); ++i) {
        auto& type = part.graph.value(part.graph.inputs[i]).type;
        if (type.kind != ir::TypeKind::tensor) continue;
        for (auto& d : type.dims) {
          add_symbols(d, needed);
          if (!d.symbol_name().empty()) here.insert(std::string(d.symbol_name()));
        }
      }
      auto missing = std::find_if(needed.begin(), needed.end(), [&](auto& s) { return !here.count(s) && carried(s, static_cast<int>(k)); });
      if (missing == needed.end()) break;
      take(carrier_.at(*missing), k);
    }
    std::map<std::string, Dim> renamed;
    for (ValueId v : part.graph.inputs)
      for (auto& d : part.graph.value(v).type.dims) {
        std::set<std::string> names;
        add_symbols(d, names);
        if (std::all_of(names.begin(), names.end(), [&](auto& s) { return here.count(s); })) continue;
        auto [it, fresh] = renamed.emplace(d.text(), Dim());
        if (fresh) it->second = part.graph.fresh_symbol(part.graph.value(v).name + ".size");
        d = it->second;
      }
    for (auto& s : here)
      if (auto it = typed_.symbols.find(s); it != typed_.symbols.end()) part.graph.symbols[s] = {it->second.min, it->second.max, false};
  }

  // Outputs of the model that no node of a part makes: inputs, and what comes from constants.
  void last_outputs(size_t k, std::set<std::string>& needed) {
    for (ValueId v : g_.outputs)
      if (home(v) < 0 && !value_in_[k].count(v.v)) {
        NodeId id = g_.value(v).producer;
        if (id) constant_output(id, k, needed);
        else operand(v, k, needed);
      }
  }
  void constant_output(NodeId id, size_t k, std::set<std::string>& needed) {
    std::vector<NodeId> stack{id};
    std::set<int32_t> wanted;
    while (!stack.empty()) {
      NodeId at = stack.back();
      stack.pop_back();
      if (!wanted.insert(at.v).second) continue;
      for (ValueId v : g_.node(at).inputs)
        if (v && g_.value(v).producer) stack.push_back(g_.value(v).producer);
    }
    for (NodeId n : order_)
      if (wanted.count(n.v) && !std::any_of(g_.node(n).outputs.begin(), g_.node(n).outputs.end(), [&](ValueId v) { return v && value_in_[k].count(v.v); })) copy(n, k, needed);
  }

  // What a part gives: outputs of the model, then what later parts take.
  void outputs() {
    auto give = [&](size_t k, ValueId v, int number, const std::string& name) {
      parts_[k].graph.add_graph_output(value_in_[k].at(v.v), name);
      parts_[k].outputs.push_back(number);
    };
    std::set<int> given;
    for (size_t i = 0; i < g_.outputs.size(); ++i) {
      ValueId v = g_.outputs[i];
      size_t k = home(v) < 0 ? parts_.size() - 1 : static_cast<size_t>(home(v));
      bool first = home(v) >= 0 && given.insert(v.v).second;
      int number = first ? v.v : static_cast<int>(g_.value_capacity() + i);
      output_numbers_.push_back(number);
      give(k, v, number, g_.output_names[i]);
    }
    for (auto& part : parts_)
      for (int v : part.inputs)
        if (home(ValueId{v}) >= 0 && given.insert(v).second) give(static_cast<size_t>(home(ValueId{v})), ValueId{v}, v, g_.value(ValueId{v}).name);
  }

  void describe(CutModel& m) const {
    std::map<int, size_t> at;
    for (auto& part : parts_)
      for (int number : part.inputs) {
        ValueId v{number};
        if (home(v) < 0) continue;
        auto [it, fresh] = at.emplace(number, m.values.size());
        if (fresh) m.values.push_back(describe(v));
        m.values[it->second].to.push_back(part.name);
      }
  }
  CutValue describe(ValueId v) const {
    CutValue x;
    auto& type = typed_.value(v).type;
    x.name = g_.value(v).name;
    x.from = places_.names[static_cast<size_t>(home(v))];
    x.type = ir::text(type);
    if (type.is_static() && type.kind == ir::TypeKind::tensor)
      if (Dim bytes = product(type.dims) * size_of(type.dtype); bytes.known()) x.bytes = bytes.value();
    if (NodeId only = g_.only_reader(v)) x.maker = g_.node(g_.value(v).producer).name, x.reader = g_.node(only).name;
    return x;
  }

  const ir::Graph& g_;
  const ir::Graph& typed_;
  const Places& places_;
  std::vector<NodeId> order_;
  std::vector<bool> constant_;
  std::vector<Part> parts_;
  std::vector<std::map<int, ValueId>> value_in_;     // of each part: the model's value -> its own
  std::map<std::string, ValueId> carrier_;
  std::set<int> taken_;
  std::vector<int> output_numbers_;
};

}  // namespace

CutModel cut_graph(const ir::Graph& g, const ir::Graph& typed, const Places& places) { return Cutter(g, typed, places).run(); }

}  // namespace ge
