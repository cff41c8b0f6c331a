// A rule that is switched off: what it would fuse to a product or convolution is fused to it by no other rule in its place.
#include "passes/goldens.h"

namespace ge {
namespace {

int products(const ir::Graph& g, const std::vector<std::string>& names) {
  int count = 0;
  for (ir::NodeId id : g.order()) {
    auto& n = g.node(id);
    const bool product = n.op == "MatMul" || n.op == "Gemm" || n.op == "Conv" || n.op == "ConvTranspose";
    count += product && std::find(names.begin(), names.end(), n.name) != names.end();
  }
  return count;
}

TEST(Switches, NoOtherRuleDoesTheSame) {
  std::set<std::string> seen;
  for (auto& base : bases()) {
    auto plain = optimize_graph(base.graph, {});
    ASSERT_TRUE(plain.ok()) << base.name;
    for (auto& group : plain->trace.all_fused()) {
      // Two products are joined in several ways, which are not the same.
      if (products(base.graph, group.origins) != 1) continue;
      Options off;
      off.disabled = {group.rule};
      auto got = optimize_graph(base.graph, off);
      ASSERT_TRUE(got.ok()) << base.name;
      seen.insert(group.rule);
      for (auto& f : got->trace.all_fused()) {
        if (f.rule == "strips") continue;   // nodes that run together, not as one
        EXPECT_NE(f.rule, group.rule) << base.name;
        std::set<std::string> now(f.origins.begin(), f.origins.end());
        EXPECT_FALSE(std::all_of(group.origins.begin(), group.origins.end(), [&](auto& o) { return now.count(o); }))
            << base.name << ": without " << group.rule << ", " << f.rule << " fuses " << join(group.origins, ", ");
      }
    }
  }
  EXPECT_GT(seen.size(), 8u);
}

}  // namespace
}  // namespace ge
