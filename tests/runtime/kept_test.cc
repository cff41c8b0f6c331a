// What weights alone decide is made once and stays in the arena: transformed weights of convolutions whose sizes are
// open. Where the sizes of the run do not want them, the convolution is a direct sum.
#include <array>

#include "driver/compare.h"
#include "ir/parse.h"

namespace ge {
namespace {

constexpr const char* kOpen = R"(graph main(%x: f32[n,32,h,w], %a: f32[8,400]) -> (%y, %p) {
  %w: f32[32,32,3,3] = random(1)
  %v: f32[400,600] = random(2)
  %y = Conv(%x, %w) {pads=[1, 1, 1, 1]}
  %p = MatMul(%a, %v)
})";

Result<Compiled> compiled(bool reference) {
  Options o;
  o.reference = reference;
  return compile_graph(*ir::parse(kOpen), o);
}

std::shared_ptr<const runtime::Binding> bound(runtime::Model& m, int64_t h, int64_t w) {
  auto b = m.bind(std::vector<std::vector<int64_t>>{{1, 32, h, w}, {8, 400}});
  EXPECT_TRUE(b.ok()) << (b.ok() ? "" : b.error().text());
  return *b;
}

const runtime::BoundTask& kept_task(const runtime::Binding& b) {
  auto at = std::find_if(b.tasks.begin(), b.tasks.end(), [](auto& t) { return t.work.once; });
  EXPECT_NE(at, b.tasks.end());
  return *at;
}

TEST(Kept, LiesAtTheArenasStartForAllSizes) {
  auto m = *open_compiled(*compiled(false), 1);
  auto large = bound(*m, 40, 40), other = bound(*m, 24, 33), tiny = bound(*m, 1, 2);
  EXPECT_GT(kept_task(*large).work.chunks, 0);
  EXPECT_GT(kept_task(*other).work.chunks, 0);
  EXPECT_EQ(kept_task(*tiny).work.chunks, 0);   // a direct sum
  for (auto& b : {large, other, tiny}) {
    EXPECT_EQ(b->kept, 36 * 32 * 32 * 4);
    EXPECT_TRUE(b->proved);
    const int32_t own = b->placed[static_cast<size_t>(kept_task(*b).view0 + 1)].buffer;
    for (size_t i = 0; i < b->buffer_offset.size(); ++i)
      if (b->buffer_offset[i] >= 0 && static_cast<int32_t>(i) != own) EXPECT_GE(b->buffer_offset[i], b->kept);
    EXPECT_EQ(b->buffer_offset[static_cast<size_t>(own)], 0);
    for (auto& t : b->tasks)
      if (t.work.scratch) EXPECT_GE(t.scratch_offset, b->kept);
  }
}

TEST(Kept, RangesAndGearsTellTheSizes) {
  auto chooses = [](const char* size, const char* gears) {
    Options o;
    o.input_shape["x"] = {"1", "32", size, size};
    o.dynamic_image_size = gears;
    auto c = compile_graph(*ir::parse(kOpen), o);
    EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
    auto& kernels = c->package.model.kernels;
    return std::find(kernels.begin(), kernels.end(), "cube.winograd_or_direct") != kernels.end();
  };
  EXPECT_TRUE(chooses("-1", ""));
  EXPECT_TRUE(chooses("1~64", ""));
  EXPECT_FALSE(chooses("1~2", ""));
  EXPECT_TRUE(chooses("-1", "1,1;40,40"));
  EXPECT_FALSE(chooses("-1", "1,1;1,2"));
}

TEST(Kept, ResultsAreThoseOfTheDefinitionInWhateverOrderSizesCome) {
  auto m = *open_compiled(*compiled(false), 2), meaning = *open_compiled(*compiled(true), 2);
  int64_t seed = 0;
  auto check = [&](int64_t n, int64_t h, int64_t w) {
    auto inputs = seeded_inputs(*m, {{"n", n}, {"h", h}, {"w", w}}, 4, static_cast<uint64_t>(++seed));
    ASSERT_TRUE(inputs.ok());
    auto got = run(*m, *inputs), want = run(*meaning, *inputs);
    ASSERT_TRUE(got.ok() && want.ok());
    for (size_t i = 0; i < want->size(); ++i) EXPECT_LT(difference((*got)[i], (*want)[i]), 1e-5) << n << " x " << h << " x " << w;
  };
  // The arena grows, shrinks and grows again.
  for (auto [n, h, w] : {std::array<int64_t, 3>{1, 1, 2}, {1, 40, 40}, {1, 1, 2}, {2, 24, 33}, {1, 40, 40}, {3, 50, 61}, {0, 5, 5}, {1, 24, 33}}) check(n, h, w);
  m->trim();
  check(1, 40, 40);
  check(1, 40, 40);
}

}  // namespace
}  // namespace ge
