#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arena/arena.h"

namespace ge::arena {
namespace {

const std::string kHead = "id,lower,upper,size\n";

TEST(Csv, Reads) {
  auto p = read_csv("id,lower,upper,size\nb1,0,3,4\r\n\n b2 ,3, 9,5,77\n");
  ASSERT_TRUE(p.ok()) << p.error().text();
  EXPECT_EQ(p->ids, (std::vector<std::string>{"b1", "b2"}));
  ASSERT_EQ(p->intervals.size(), 2u);
  EXPECT_EQ(p->intervals[0].last, 2);
  EXPECT_EQ(p->intervals[1].first, 3);
  EXPECT_EQ(p->intervals[1].size, 5);
  EXPECT_EQ(p->intervals[1].align, 1);
}

TEST(Csv, ColumnsInAnyOrderAndMoreOfThem) {
  auto p = read_csv("\xEF\xBB\xBFsize , why, alignment,id,upper,lower\n4,because,8,x,3,1");
  ASSERT_TRUE(p.ok()) << p.error().text();
  EXPECT_EQ(p->ids, std::vector<std::string>{"x"});
  const Interval& v = p->intervals.at(0);
  EXPECT_EQ(v.first, 1);
  EXPECT_EQ(v.last, 2);
  EXPECT_EQ(v.size, 4);
  EXPECT_EQ(v.align, 8);
  EXPECT_EQ(v.fixed, -1);
}

TEST(Csv, NothingButTheHead) {
  auto p = read_csv(kHead);
  ASSERT_TRUE(p.ok()) << p.error().text();
  EXPECT_TRUE(p->intervals.empty());
}

// Only the order of times matters: nanoseconds of a clock are as good as steps.
TEST(Csv, TimesOfAnySize) {
  auto p = read_csv(kHead + "a,9000000000000000000,9000000000000000007,1\n"
                            "b,9000000000000000007,9223372036854775807,1\n"
                            "c,0,9000000000000000001,1\n");
  ASSERT_TRUE(p.ok()) << p.error().text();
  auto overlap = [&](size_t i, size_t j) {
    return p->intervals[i].first <= p->intervals[j].last &&
           p->intervals[j].first <= p->intervals[i].last;
  };
  for (const Interval& v : p->intervals) EXPECT_LE(v.first, v.last);
  EXPECT_FALSE(overlap(0, 1));
  EXPECT_TRUE(overlap(0, 2));
  EXPECT_FALSE(overlap(1, 2));
  // The last that needs no renumbering.
  p = read_csv(kHead + "a,0,2147483647,1\n");
  ASSERT_TRUE(p.ok()) << p.error().text();
  EXPECT_EQ(p->intervals[0].last, 2147483646);
}

TEST(Csv, NamesTheLineAndWhatIsWrong) {
  struct Case {
    std::string text, line, word;
  };
  for (const Case& c : {
           Case{"", "line 1", "empty"},
           Case{"\n\n", "line 2", "empty"},
           Case{"id,lower,size\n", "line 1", "upper"},
           Case{"id,lower,upper,size,lower\n", "line 1", "two columns 'lower'"},
           Case{"a,0,1,2\n", "line 1", "no column 'id'"},
           Case{kHead + "a,0,1,2\nb,1,2\n", "line 3", "no 'size'"},
           Case{kHead + "\n\na,1,x,3\n", "line 4", "'upper'"},
           Case{kHead + "a,1,3.5,3\n", "line 2", "3.5"},
           Case{kHead + "a,1,,3\n", "line 2", "'upper'"},
           Case{kHead + "a,3,3,1\n", "line 2", "[3, 3)"},
           Case{kHead + "a,-1,3,1\n", "line 2", "before 0"},
           Case{kHead + "a,1,3,-1\n", "line 2", "negative"},
           Case{kHead + "a,1,3,1\nb,1,3,1\na,2,3,1\n", "line 4", "line 2"},
           Case{kHead + "a,1,3,1\n\xff,1,3,1\n", "line 3", "UTF-8"},
           Case{kHead + "a,1,2,99999999999999999999\n", "line 2", "64 bits"},
           Case{kHead + "a,1,2,9223372036854775807\n", "line 2", "2^60"},
           Case{kHead + "a,1,2,1152921504606846976\nb,1,2,1\n", "line 3", "2^60"},
           Case{"id,lower,upper,size,alignment\na,1,2,3,0\n", "line 2", "alignment 0"},
           Case{"id,lower,upper,size,alignment\na,1,2,3,1099511627776\n", "line 2", "alignment"},
       }) {
    auto r = read_csv(c.text);
    ASSERT_FALSE(r.ok()) << c.text;
    EXPECT_NE(r.error().message.find(c.line), std::string::npos) << r.error().message;
    EXPECT_NE(r.error().message.find(c.word), std::string::npos) << r.error().message;
  }
}

}  // namespace
}  // namespace ge::arena
