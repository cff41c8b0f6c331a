// Phases of a depthwise transposed convolution that no tap reaches: they read nothing.
#include <gtest/gtest.h>

#include "base/text.h"
#include "driver/compare.h"
#include "ir/parse.h"

namespace ge {
namespace {

TEST(TransposedPhases, WithoutTapsReadNothing) {
  struct Case {
    int channels, size, kernel, stride, dilation;
  };
  for (const Case& c : {Case{16, 20, 1, 2, 1}, Case{16, 20, 2, 2, 2}, Case{16, 20, 2, 3, 1}, Case{24, 40, 4, 3, 3}}) {
    std::string text = format(R"(graph main(%x: f32[1,{0},{1},{1}]) -> (%y) {{
  %w: f32[{0},1,{2},{2}] = random(1)
  %p = MaxPool(%x) {{kernel_shape=[3,3], pads=[1,1,1,1]}}
  %t = ConvTranspose(%p, %w) {{group={0}, strides=[{3},{3}], dilations=[{4},{4}]}}
  %y = MaxPool(%t) {{kernel_shape=[2,2]}}
}})", c.channels, c.size, c.kernel, c.stride, c.dilation);
    auto g = ir::parse(text);
    ASSERT_TRUE(g.ok()) << g.error().text();
    Options meaning;
    meaning.reference = true;
    auto want = compile_graph(*g, meaning), got = compile_graph(*g, {});
    ASSERT_TRUE(want.ok() && got.ok());
    EXPECT_TRUE(agree(*got, *want, {}, 1e-5)) << text;
  }
}

}  // namespace
}  // namespace ge
