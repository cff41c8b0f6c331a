// The shared cases: each imports, or gives the right error.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "import/onnx.h"
#include "ir/verify.h"

namespace ge {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string shared_cases() {
  if (const char* s = ::getenv("GE_SHARED")) return std::string(s) + "/cases";
  return GE_SOURCE_DIR "/../shared/cases";
}

// A folder of the shared cases each; there are none in a clone that stands alone, where the tests above hold
// small equivalents.
std::vector<std::string> case_names() {
  std::vector<std::string> out;
  std::error_code none;
  for (auto& entry : fs::directory_iterator(shared_cases(), none))
    if (fs::exists(entry.path() / "model.onnx")) out.push_back(entry.path().filename());
  std::sort(out.begin(), out.end());
  return out;
}

class Cases : public testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Cases);
INSTANTIATE_TEST_SUITE_P(Shared, Cases, testing::ValuesIn(case_names()), [](auto& p) {
  std::string name = p.param;
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c); }, '_');
  return name;
});

TEST_P(Cases, ImportOrTheRightError) {
  const std::map<std::string, std::pair<const char*, const char*>> bad = {
      {"bad_cyclic_graph", {code::kBadGraph, "cycle"}},
      {"bad_dangling_input", {code::kBadGraph, "reads value \"w\""}},
      {"bad_initializer_too_long", {code::kParse, "needs 8 bytes, its data have 4096"}},
      {"bad_initializer_too_short", {code::kParse, "Tensor"}},
      {"bad_missing_type", {code::kBadGraph, "Value \"x\" has no type"}},
      {"bad_recursive_function", {code::kBadGraph, "loc.f -> loc.h -> loc.f"}},
      {"bad_truncated_file", {code::kParse, "incomplete"}},
  };
  auto g = import_onnx_file(shared_cases() + "/" + GetParam() + "/model.onnx");
  if (auto it = bad.find(GetParam()); it != bad.end()) {
    ASSERT_FALSE(g.ok());
    EXPECT_EQ(g.error().code, it->second.first) << g.error().text();
    EXPECT_THAT(g.error().text(), HasSubstr(it->second.second));
  } else if (g.ok()) {
    EXPECT_TRUE(ir::verify(*g).ok());
  } else {
    // The one other right answer: an operator that is not there, named.
    EXPECT_EQ(g.error().code, code::kUnsupportedOp) << g.error().text();
    EXPECT_THAT(g.error().text(), HasSubstr("not supported"));
  }
}

}  // namespace
}  // namespace ge
