// Into each fused group of the goldens a blocker is put, at every edge inside of it: another reader, a graph
// output, a pair of Casts, a pair of Reshapes; and each constant that a group adds is replaced: by one along
// another axis, by a graph input, by a value that is computed. The result stays right, and the group is either
// still fused or the report names the blocker.
#include "ir/print.h"
#include "passes/goldens.h"

namespace ge {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr const char* kKinds[] = {"reader", "output", "casts", "reshapes"};

// Puts the blocker on input `index` of `reader`. False where the kind makes no sense there.
bool block(ir::Graph& g, const std::string& kind, NodeId reader, int index) {
  ValueId v = g.node(reader).inputs[static_cast<size_t>(index)];
  auto type = g.value(v).type;
  if (kind == "output") {
    if (g.is_output(v)) return false;
    g.add_graph_output(v, "blocked");
    return true;
  }
  if (kind == "reader") {
    ValueId out = g.add_value("other", type);
    g.add_node(type.dtype == DType::boolean ? "Not" : "Neg", {v}, {out}, {}, "blocker");
    g.add_graph_output(out, "other");
    return true;
  }
  if (kind == "casts") {
    if (type.dtype != DType::f32) return false;
    auto half = type;
    half.dtype = DType::f16;
    ValueId a = g.add_value("narrow", half), b = g.add_value("wide", type);
    g.add_node("Cast", {v}, {a}, {{"to", int64_t(10)}}, "blocker");
    g.add_node("Cast", {a}, {b}, {{"to", int64_t(1)}}, "blocker");
    g.set_input(reader, index, b);
    return true;
  }
  std::vector<int64_t> back;
  for (size_t i = 0; i < type.dims.size(); ++i) back.push_back(type.dims[i].known() ? type.dims[i].value() : -1);
  if (std::count(back.begin(), back.end(), -1) > 1) return false;
  ValueId a = g.add_value("flat", ir::Type::tensor(type.dtype, {product(type.dims)})), b = g.add_value("back", type);
  g.add_node("Reshape", {v, g.add_constant(Tensor::vector_i64(std::vector<int64_t>{-1}))}, {a}, {}, "blocker");
  g.add_node("Reshape", {a, g.add_constant(Tensor::vector_i64(back))}, {b}, {}, "blocker");
  g.set_input(reader, index, b);
  return true;
}

TEST(Blockers, FusedAllTheSameOrNamed) {
  int fused = 0, named = 0;
  Options meaning, normal;
  meaning.reference = true;
  normal.verify_ir = true;
  for (auto& base : bases()) {
    auto plain = optimize_graph(base.graph, normal);
    ASSERT_TRUE(plain.ok()) << base.name;
    for (auto& group : plain->trace.all_fused()) {
      std::set<std::string> members(group.origins.begin(), group.origins.end());
      for (NodeId id : base.graph.order()) {
        if (!members.count(base.graph.node(id).name)) continue;
        for (size_t i = 0; i < base.graph.node(id).inputs.size(); ++i) {
          ValueId v = base.graph.node(id).inputs[i];
          if (!v || !base.graph.value(v).producer || !members.count(base.graph.node(base.graph.value(v).producer).name)) continue;
          for (std::string kind : kKinds) {
            ir::Graph g = base.graph;
            if (!block(g, kind, id, static_cast<int>(i))) continue;
            std::string where = format("{}: {} ({}) with {} at input {} of {}", base.name, group.rule, join(group.origins, ", "), kind, i, base.graph.node(id).name);
            std::string producer = base.graph.node(base.graph.value(v).producer).name;
            auto got = compile_graph(g, normal), want = compile_graph(g, meaning);
            ASSERT_TRUE(got.ok()) << where << got.error().text();
            ASSERT_TRUE(want.ok()) << where;
            bool halves = kind == "casts" || std::any_of(g.inputs.begin(), g.inputs.end(), [&](ValueId x) { return g.value(x).type.dtype == DType::f16; });
            double tolerance = halves ? 2e-3 : 2e-5;
            EXPECT_TRUE(agree(*got, *want, base.sizes, tolerance)) << where;
            bool together = false;
            for (auto& f : got->trace.all_fused()) {
              std::set<std::string> now(f.origins.begin(), f.origins.end());
              together |= now.count(producer) && now.count(base.graph.node(id).name);
            }
            bool told = false;
            for (auto& m : got->trace.near_misses()) {
              bool mine = m.blocker.starts_with("blocker") || (kind == "output" && (m.blocker == producer || m.blocker == base.graph.value(v).name + " as f16")) || m.why.find("blocker") != std::string::npos || m.why.find("output of the graph") != std::string::npos;
              told |= mine;
            }
            EXPECT_TRUE(together || told) << where << "\n" << ir::print(got->graph);
            fused += together;
            named += !together && told;
          }
        }
      }
    }
  }
  std::printf("  still fused %d, named %d\n", fused, named);
  EXPECT_GT(fused, 20);
  EXPECT_GT(named, 20);
}

// Numbers instead of named sizes, so that a constant can have any of them.
ir::Graph with_numbers(const Base& b) {
  ir::Graph g = b.graph;
  for (ValueId v : g.inputs)
    for (auto& d : g.value(v).type.dims) {
      auto it = b.sizes.find(std::string(d.symbol_name()));
      if (!d.known()) d = Dim(it == b.sizes.end() ? 4 : it->second);
    }
  g.symbols.clear();
  EXPECT_TRUE(passes::infer(g).ok()) << b.name;
  return g;
}

// The input of the node that is a bias: what is added, or the last one of an op that adds one itself. -1: none.
int bias_index(const ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  auto constant = [&](size_t i) { return i < n.inputs.size() && g.is_constant(n.inputs[i]) && g.value(n.inputs[i]).type.dtype == DType::f32; };
  if (n.op == "Add") return constant(0) ? 0 : constant(1) ? 1 : -1;
  if (n.op == "Conv" || n.op == "Gemm" || n.op == "BatchNormalization" || n.op == "LayerNormalization") return constant(2) ? 2 : -1;
  return -1;
}

constexpr const char* kBiasKinds[] = {"other axis", "graph input", "computed"};

// False where the kind makes no sense there.
bool replace_bias(ir::Graph& g, const std::string& kind, NodeId reader, int index) {
  auto type = g.value(g.node(reader).inputs[static_cast<size_t>(index)]).type;
  if (kind == "other axis") {
    auto& out = g.value(g.node(reader).outputs[0]).type;
    if (g.node(reader).op != "Add") return false;  // there the op says which axis
    auto along = [&](int axis) {
      int at = axis - (out.rank() - type.rank());
      return at >= 0 && !type.dims[static_cast<size_t>(at)].is(1);
    };
    for (int axis = 0; axis < out.rank(); ++axis) {
      if (along(axis) || !out.dims[static_cast<size_t>(axis)].known() || out.dims[static_cast<size_t>(axis)].value() < 2) continue;
      std::vector<int64_t> dims(static_cast<size_t>(out.rank()), 1);
      dims[static_cast<size_t>(axis)] = out.dims[static_cast<size_t>(axis)].value();
      Tensor t(DType::f32, dims);
      for (int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = 0.25f * static_cast<float>(i + 1);
      g.set_input(reader, index, g.add_constant(std::move(t)));
      return true;
    }
    return false;
  }
  ValueId v = g.add_input("bias_in", type);
  if (kind == "computed") {
    ValueId made = g.add_value("bias_made", type);
    g.add_node("Abs", {v}, {made}, {}, "blocker");
    v = made;
  }
  g.set_input(reader, index, v);
  return true;
}

std::string producer_name(const ir::Graph& g, ValueId v) { return g.value(v).producer ? g.node(g.value(v).producer).name : ""; }

// A group of at least these nodes.
bool holds_all(const passes::Trace& trace, const std::vector<std::string>& origins) {
  for (auto& f : trace.all_fused()) {
    std::set<std::string> now(f.origins.begin(), f.origins.end());
    if (std::all_of(origins.begin(), origins.end(), [&](auto& o) { return now.count(o); })) return true;
  }
  return false;
}

TEST(Blockers, AnotherBiasFusesAllTheSameOrIsNamed) {
  std::map<std::string, std::set<std::string>> fused, named;
  Options meaning, normal;
  meaning.reference = true;
  normal.verify_ir = true;
  for (auto& base : bases()) {
    ir::Graph numbers = with_numbers(base);
    auto plain = optimize_graph(numbers, normal);
    ASSERT_TRUE(plain.ok()) << base.name;
    for (auto& group : plain->trace.all_fused())
      for (NodeId id : numbers.order()) {
        std::string reader = numbers.node(id).name;
        int index = bias_index(numbers, id);
        if (index < 0 || std::find(group.origins.begin(), group.origins.end(), reader) == group.origins.end()) continue;
        for (std::string kind : kBiasKinds) {
          ir::Graph g = numbers;
          if (!replace_bias(g, kind, id, index)) continue;
          std::string where = format("{}: {} ({}) with another bias ({}) at {}", base.name, group.rule, join(group.origins, ", "), kind, reader);
          auto got = compile_graph(g, normal), want = compile_graph(g, meaning);
          ASSERT_TRUE(got.ok()) << where << got.error().text();
          ASSERT_TRUE(want.ok()) << where << want.error().text();
          EXPECT_TRUE(agree(*got, *want, {}, 2e-5)) << where;
          // Siblings are products that do not depend on one another: only the one with the other bias may leave.
          auto& in = numbers.node(id).inputs;
          std::string maker = index < 2 && in[static_cast<size_t>(1 - index)] ? producer_name(numbers, in[static_cast<size_t>(1 - index)]) : reader;
          bool together = holds_all(got->trace, group.rule == "matmul_siblings" ? std::vector<std::string>{maker, reader} : group.origins), told = false;
          std::string misses;
          for (auto& m : got->trace.near_misses()) {
            told |= m.blocker == reader || (kind == "computed" && m.blocker == "blocker");
            misses += format("  {} at {}: {} [{}]\n", m.rule, m.anchor, m.why, m.blocker);
          }
          EXPECT_TRUE(together || told) << where << "\n" << misses << ir::print(got->graph);
          (together ? fused : named)[kind].insert(group.rule);
        }
      }
  }
  for (std::string kind : kBiasKinds) {
    auto list = [&](auto& of) { return join({of[kind].begin(), of[kind].end()}, ", "); };
    std::printf("  %s: still fused in %s; named in %s\n", kind.c_str(), list(fused).c_str(), list(named).c_str());
    EXPECT_FALSE(named[kind].empty());
    EXPECT_FALSE(fused[kind].empty());
  }
}

}  // namespace
}  // namespace ge
