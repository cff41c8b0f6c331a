// The memory plan in the file: used as it stands, checked before it is used.
#include <gtest/gtest.h>

#include "driver/compare.h"
#include "ir/parse.h"

namespace ge {
namespace {

constexpr const char* kModel = R"(graph main(%x: f32[2,3,16,16]) -> (%y) {
  %w: f32[8,3,3,3] = random(1)
  %w2: f32[8,8,3,3] = random(2)
  %t = Conv(%x, %w) {pads=[1, 1, 1, 1]}
  %p = MaxPool(%t) {kernel_shape=[3, 3], pads=[1, 1, 1, 1]}
  %u = Conv(%t, %w2) {pads=[1, 1, 1, 1]}
  %y = Add(%u, %p)
})";

const std::vector<std::vector<int64_t>> kShape = {{2, 3, 16, 16}};

om::Package package() {
  auto c = compile_graph(*ir::parse(kModel), {});
  EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
  return std::move(c->package);
}

TEST(StoredPlan, IsUsed) {
  om::Package p = package();
  auto& plans = p.model.programs[0]->plans;
  ASSERT_EQ(plans.size(), 1u);
  // Any other plan without an overlap is as good: everything a page higher.
  std::vector<int64_t> higher = plans[0]->offsets;
  int placed = 0;
  for (int64_t& at : higher)
    if (at >= 0) at += 4096, ++placed;
  ASSERT_GE(placed, 2);
  plans[0]->offsets = higher;
  auto m = runtime::Model::from(std::move(p));
  ASSERT_TRUE(m.ok());
  auto b = (*m)->bind(kShape);
  ASSERT_TRUE(b.ok()) << b.error().text();
  EXPECT_EQ((*b)->buffer_offset, higher);
}

TEST(StoredPlan, MustNotLetLiveBuffersShareMemory) {
  om::Package p = package();
  for (int64_t& at : p.model.programs[0]->plans.at(0)->offsets) at = at < 0 ? at : 0;
  auto m = runtime::Model::from(std::move(p));
  ASSERT_TRUE(m.ok());
  auto b = (*m)->bind(kShape);
  ASSERT_FALSE(b.ok());
  EXPECT_NE(b.error().message.find("share memory"), std::string::npos) << b.error().text();
}

}  // namespace
}  // namespace ge
