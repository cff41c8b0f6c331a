#include "base/nameless.h"

#include <sys/stat.h>
#include <sys/vfs.h>

#include <cstring>
#include <vector>

#include "base/folder_test.h"

namespace ge {
namespace {

std::vector<std::byte> bytes(size_t n) {
  std::vector<std::byte> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<std::byte>(i * 5 + 1);
  return out;
}

class Nameless : public FolderTest {};

TEST_F(Nameless, IsThereOnceItIsNamed) {
  std::vector<std::string> folders = {folder_.string()};
  auto file = NamelessFile::make(folders);
  if (!file) GTEST_SKIP() << "temporary files lie in memory here";
  auto all = bytes(10000);
  EXPECT_TRUE(file->put(100, all));
  EXPECT_EQ(files(), 0u);
  if (!file->link((folder_ / "named").string())) GTEST_SKIP() << "files cannot be named later here";
  EXPECT_TRUE(file->linked());
  std::string text = content("named");
  ASSERT_EQ(text.size(), 10100u);
  EXPECT_EQ(text.substr(0, 100), std::string(100, '\0'));
  EXPECT_EQ(std::memcmp(text.data() + 100, all.data(), all.size()), 0);
  EXPECT_FALSE(file->link((folder_ / "again").string()));
}

TEST_F(Nameless, LeavesNothingBehind) {
  std::vector<std::string> folders = {folder_.string()};
  NamelessFile::make(folders);
  EXPECT_EQ(files(), 0u);
}

TEST_F(Nameless, LiesOnADisk) {
  constexpr long kTmpfs = 0x01021994;
  struct statfs shm {}, own {};
  if (statfs("/dev/shm", &shm) != 0 || shm.f_type != kTmpfs) GTEST_SKIP() << "there is no tmpfs";
  std::vector<std::string> folders = {"/dev/shm"};
  EXPECT_FALSE(NamelessFile::make(folders));
  folders = {"/nothing/there", "/dev/shm", folder_.string()};
  auto file = NamelessFile::make(folders);
  ASSERT_EQ(statfs(folder_.c_str(), &own), 0);
  if (own.f_type == kTmpfs) GTEST_SKIP() << "temporary files lie in memory here";
  ASSERT_TRUE(file);
  struct stat a {}, b {};
  ASSERT_EQ(fstat(file->descriptor(), &a), 0);
  ASSERT_EQ(stat(folder_.c_str(), &b), 0);
  EXPECT_EQ(a.st_dev, b.st_dev);
}

}  // namespace
}  // namespace ge
