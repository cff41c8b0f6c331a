#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"

namespace ge {
namespace {

namespace fs = std::filesystem;

class Aside : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  Status write(const fs::path& path) {
    FileContent file{path.string(), {std::as_bytes(std::span("new", 3))}};
    return write_files({&file, 1}, false);
  }
  std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path folder_ = fs::path(testing::TempDir()) / format("aside.{}", getpid());
};

TEST_F(Aside, ALinkStaysAndItsTargetIsWritten) {
  std::ofstream(folder_ / "target") << "old";
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(write(folder_ / "link").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(folder_ / "target"), "new");
}

TEST_F(Aside, APipeIsNotReplaced) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(write(folder_ / "pipe").ok());
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace ge
