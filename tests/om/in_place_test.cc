// Weights laid out in a file without a name: the same bytes, and the file becomes the .om.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>

#include "base/folder_test.h"
#include "driver/compile.h"
#include "ir/parse.h"
#include "lower/weight_store.h"
#include "om/reader.h"
#include "om/writer.h"

namespace ge {
namespace {

class InPlace : public FolderTest {
 protected:
  std::string path(const char* name) const { return (folder_ / name).string(); }
  std::vector<std::byte> bytes_of(const char* name) const {
    std::string text = content(name);
    auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  static Compiled compiled(const Options& o) {
    auto g = ir::parse(R"(graph main(%x: f32[n,700]) -> (%y, %z) {
  %a: f32[700,1100] = random(1)
  %b: f32[1100,900] = random(2)
  %t = MatMul(%x, %a)
  %y = MatMul(%t, %b)
  %z = Add(%y, %y)
})");
    EXPECT_TRUE(g.ok());
    auto c = compile_graph(*std::move(g), o);
    EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
    return *std::move(c);
  }
};

TEST_F(InPlace, TheFileBecomesTheOm) {
  Options here;
  here.output_dir = folder_.string();
  auto plain = compiled({}), c = compiled(here);
  EXPECT_FALSE(plain.package.file);
  if (!c.package.file) GTEST_SKIP() << "temporary files lie in memory here";
  struct stat file {}, om {}, second {};
  ASSERT_EQ(fstat(c.package.file->descriptor(), &file), 0);
  ASSERT_TRUE(om::write(c.package, path("m.om")).ok());
  ASSERT_TRUE(om::write(c.package, path("second.om")).ok());
  EXPECT_EQ(bytes_of("m.om"), om::to_bytes(plain.package));
  EXPECT_EQ(bytes_of("second.om"), om::to_bytes(plain.package));
  ASSERT_EQ(stat(path("m.om").c_str(), &om), 0);
  ASSERT_EQ(stat(path("second.om").c_str(), &second), 0);
  if (c.package.file->linked()) EXPECT_EQ(om.st_ino, file.st_ino);
  EXPECT_NE(second.st_ino, om.st_ino);   // a change of one is none of the other
  auto read = om::read(*MappedFile::open(path("m.om")), true);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(om::to_bytes(*read), om::to_bytes(plain.package));
}

TEST_F(InPlace, OneThatIsThereIsReplaced) {
  Options here;
  here.output_dir = folder_.string();
  std::ofstream(folder_ / "m.om") << "older";
  auto c = compiled(here);
  ASSERT_TRUE(om::write(c.package, path("m.om")).ok());
  EXPECT_EQ(bytes_of("m.om"), om::to_bytes(c.package));
  EXPECT_EQ(files(), 1u);
}

TEST_F(InPlace, WithoutRoomWeightsGoOnInMemory) {
  std::vector<std::string> folders = {folder_.string()};
  auto file = NamelessFile::make(folders);
  if (!file) GTEST_SKIP() << "temporary files lie in memory here";
  std::vector<std::byte> large(size_t(9) << 20);
  for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<std::byte>(i * 7 + i / 4096);
  rlimit before {}, tight {};
  getrlimit(RLIMIT_FSIZE, &before);
  tight = before, tight.rlim_cur = rlim_t(5) << 20;
  auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &tight);
  lower::WeightStore store(file);
  store.append(std::span(large).first(3), 64);
  const bool there = store.file() != nullptr;
  const size_t at = store.append(large, 64);
  const size_t last = store.append(std::span(large).first(100), 64);
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(there);
  EXPECT_FALSE(store.file());
  EXPECT_EQ(at, 64u);
  EXPECT_EQ(std::memcmp(store.data(), large.data(), 3), 0);
  EXPECT_EQ(std::memcmp(store.data() + at, large.data(), large.size()), 0);
  EXPECT_EQ(std::memcmp(store.data() + last, large.data(), 100), 0);
}

}  // namespace
}  // namespace ge
