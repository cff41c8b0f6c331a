#include <sys/stat.h>

#include "base/file.h"
#include "base/folder_test.h"

namespace ge {
namespace {

class Aside : public FolderTest {
 protected:
  Status write(const fs::path& path) {
    FileContent file{path.string(), {std::as_bytes(std::span("new", 3))}};
    return write_files({&file, 1}, false);
  }
};

TEST_F(Aside, ALinkStaysAndItsTargetIsWritten) {
  std::ofstream(folder_ / "target") << "old";
  fs::create_symlink("target", folder_ / "link");
  ASSERT_TRUE(write(folder_ / "link").ok());
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content("target"), "new");
}

TEST_F(Aside, APipeIsNotReplaced) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(write(folder_ / "pipe").ok());
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  EXPECT_EQ(files(), 1u);
}

}  // namespace
}  // namespace ge
