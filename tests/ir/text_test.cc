// Constants of a graph as text: what is printed is read back as it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ops/infer.h"

namespace ge {
namespace {

TEST(IrText, ConstantsOfFewBitsAreReadBack) {
  for (auto* type : {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1", "f8e8m0", "f16", "bf16", "i8", "u4"}) {
    const std::string text = std::string("graph main() -> (%y) {\n  %a: ") + type + "[3] = [1, 2, 4]\n  %y = Identity(%a)\n}";
    auto g = ir::parse(text);
    ASSERT_TRUE(g.ok()) << g.error().text();
    ASSERT_TRUE(ops::infer(*g).ok()) << type;
    auto& a = *g->value(g->find_value("a")).constant;
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(a.at(i), 1 << i) << type;
    auto again = ir::parse(ir::print(*g));
    ASSERT_TRUE(again.ok()) << ir::print(*g) << again.error().text();
    EXPECT_TRUE(again->value(again->find_value("a")).constant->same_bytes(a)) << type;
  }
}

TEST(IrText, ComplexConstantsAreRefused) {
  auto g = ir::parse("graph main() -> (%y) {\n  %a: c64[2] = [1, 2]\n  %y = Identity(%a)\n}");
  ASSERT_FALSE(g.ok());
  EXPECT_THAT(g.error().text(), testing::HasSubstr("complex"));
}

}  // namespace
}  // namespace ge
