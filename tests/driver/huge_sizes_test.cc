// Sizes up to 64 bits pass every pass before they are refused.
#include <gtest/gtest.h>

#include "driver/compile.h"
#include "passes/typed_graph.h"

namespace ge {
namespace {

// Several values are alive at one time, and their sums and bytes pass 64 bits.
constexpr const char* kDiamond = R"(graph main(%x: f32[1,2,1152921504606846976]) -> (%y) {
  %a = Softsign(%x)
  %b = Softmax(%a) {axis=1}
  %c = Softmax(%b) {axis=0}
  %d = Softmax(%c) {axis=1}
  %e = Concat(%a, %b, %c, %d) {axis=1}
  %y = Softmax(%e) {axis=1}
})";

TEST(HugeSizes, AreRefused) {
  for (int parts : {0, 2}) {
    Options o;
    if (parts) ASSERT_TRUE(set_option(o, "split", std::to_string(parts)).ok());
    auto c = compile_graph(passes::typed_graph(kDiamond), o);
    ASSERT_FALSE(c.ok()) << parts << " parts";
    EXPECT_EQ(c.error().code, code::kTooLarge) << c.error().text();
  }
}

}  // namespace
}  // namespace ge
