#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include "base/text.h"

namespace ge {
namespace {

namespace fs = std::filesystem;

class Cgroup : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(mount_); }
  void put(const std::string& file, const std::string& text) {
    fs::create_directories((mount_ / file).parent_path());
    std::ofstream(mount_ / file) << text;
  }
  fs::path mount_ = fs::path(testing::TempDir()) / format("memory_cgroup.{}", getpid());
};

TEST_F(Cgroup, TheLeastLimitOfAGroupAndThoseAbove) {
  put("a/memory.max", "3000\n");
  put("a/b/memory.max", "max\n");
  put("a/b/c/memory.max", "5000\n");
  EXPECT_EQ(cgroup_memory("0::/a/b/c\n", mount_.string()), 3000u);
  EXPECT_EQ(cgroup_memory("0::/other\n", mount_.string()), std::numeric_limits<size_t>::max());
  put("memory/x/memory.limit_in_bytes", "700\n");
  EXPECT_EQ(cgroup_memory("4:cpu:/x\n5:memory:/x\n0::/a\n", mount_.string()), 700u);
}

TEST(FreeMemory, IsSome) { EXPECT_GT(free_memory(), size_t{1} << 20); }

}  // namespace
}  // namespace ge
