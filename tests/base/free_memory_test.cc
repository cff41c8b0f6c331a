#include "base/free_memory.h"

#include <limits>

#include "base/folder_test.h"

namespace ge {
namespace {

class Cgroup : public FolderTest {
 protected:
  void put(const std::string& file, const std::string& text) {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
};

TEST_F(Cgroup, TheLeastLimitOfAGroupAndThoseAbove) {
  put("a/memory.max", "3000\n");
  put("a/b/memory.max", "max\n");
  put("a/b/c/memory.max", "5000\n");
  EXPECT_EQ(cgroup_memory("0::/a/b/c\n", folder_.string()), 3000u);
  EXPECT_EQ(cgroup_memory("0::/other\n", folder_.string()), std::numeric_limits<size_t>::max());
  put("memory/x/memory.limit_in_bytes", "700\n");
  EXPECT_EQ(cgroup_memory("4:cpu:/x\n5:memory:/x\n0::/a\n", folder_.string()), 700u);
}

TEST(FreeMemory, IsSome) { EXPECT_GT(free_memory(), size_t{1} << 20); }

}  // namespace
}  // namespace ge
