// Strings by number: equal ones have one number, and a number that stands for none is an error.
#include "runtime/texts.h"

#include <gtest/gtest.h>

namespace ge::runtime {
namespace {

TEST(Texts, NumbersOfAModelAndOfARun) {
  std::vector<std::string> model{"one", "two"};
  TextNumbers numbers = numbers_of(model);
  Texts a(model, numbers), b(model, numbers);
  EXPECT_EQ(a.number(""), 0u);
  EXPECT_EQ(a.number("two"), 2u);
  EXPECT_EQ(a.number("three"), 3u);
  EXPECT_EQ(a.number("three"), 3u);
  EXPECT_EQ(a.number(std::string_view("x\0y", 3)), 4u);
  EXPECT_EQ(b.number("other"), 3u) << "runs know nothing of one another";
  EXPECT_EQ(*a.text(0), "");
  EXPECT_EQ(*a.text(1), "one");
  EXPECT_EQ(*a.text(4), std::string_view("x\0y", 3));
  for (uint32_t n : {5u, 1u << 31, UINT32_MAX}) EXPECT_EQ(a.text(n).error().code, code::kRunFailed) << n;
}

TEST(Texts, Tensors) {
  std::vector<std::string> model;
  TextNumbers numbers;
  Texts t(model, numbers);
  std::vector<std::string_view> given{"a", "", "a", "b"};
  int64_t dims[] = {2, 2};
  auto v = t.tensor(dims, given);
  ASSERT_TRUE(v.ok());
  EXPECT_EQ(v->dtype, DType::string);
  EXPECT_EQ(*t.strings(*v), given);
  int64_t more[] = {5};
  EXPECT_FALSE(t.tensor(more, given).ok());
  Value number = Value::tensor(DType::f32, dims, nullptr);
  EXPECT_FALSE(t.strings(number).ok());
  const uint32_t wrong[] = {0, 1, 7, 2};
  EXPECT_FALSE(t.strings(Value::tensor(DType::string, dims, wrong)).ok());
}

}  // namespace
}  // namespace ge::runtime
