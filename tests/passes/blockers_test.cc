// Into each fused group of the goldens a blocker is put, at every edge inside of it: another reader, a graph
// output, a pair of Casts, a pair of Reshapes. The result stays right, and the group is either still fused or
// the report names the blocker.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/compare.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/pass.h"

namespace ge {
namespace {

using ir::NodeId;
using ir::ValueId;

struct Base {
  std::string name;
  ir::Graph graph;
  std::map<std::string, int64_t> sizes;
};

std::vector<Base> bases() {
  std::vector<Base> out;
  for (auto& e : std::filesystem::directory_iterator(GE_SOURCE_DIR "/tests/passes/golden")) {
    if (e.path().extension() != ".ir") continue;
    std::ifstream f(e.path());
    std::stringstream all;
    all << f.rdbuf();
    std::string text = all.str();
    Base b;
    b.name = e.path().stem().string();
    auto g = ir::parse(text.substr(0, text.find("// ---- expected")));
    EXPECT_TRUE(g.ok()) << e.path();
    b.graph = *std::move(g);
    for (auto& line : split(text, '\n'))
      if (line.starts_with("// sizes:"))
        for (auto& s : split(trim(line.substr(9)), ' ')) b.sizes[s.substr(0, s.find('='))] = std::atoll(s.c_str() + s.find('=') + 1);
    EXPECT_TRUE(passes::infer(b.graph).ok());
    out.push_back(std::move(b));
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.name < b.name; });
  return out;
}

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
            double tolerance = kind == "casts" ? 2e-3 : 2e-5;
            EXPECT_TRUE(agree(*got, *want, base.sizes, tolerance)) << where;
            bool together = false;
            for (auto& f : got->trace.all_fused()) {
              std::set<std::string> now(f.origins.begin(), f.origins.end());
              together |= now.count(producer) && now.count(base.graph.node(id).name);
            }
            bool told = false;
            for (auto& m : got->trace.near_misses()) {
              bool mine = m.blocker.starts_with("blocker") || (kind == "output" && m.blocker == producer) || m.why.find("blocker") != std::string::npos || m.why.find("output of the graph") != std::string::npos;
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

}  // namespace
}  // namespace ge
