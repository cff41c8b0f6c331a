// Weights outside of the .om file: their names, the same bytes, what happens when one is missing, cut, changed or
// named by somebody hostile, and that nothing is left where writing fails.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/random.h"
#include "om/om_util.h"

namespace ge {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::vector<std::byte> content(const fs::path& path) {
  auto f = MappedFile::open(path.string());
  EXPECT_TRUE(f.ok()) << path;
  auto b = (*f)->bytes();
  return {b.begin(), b.end()};
}

void put(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream f(path, std::ios::binary);
  f.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

class External : public testing::TestWithParam<int> {
 protected:
  External() {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '_');
    folder_ = fs::path(testing::TempDir()) / ("ge_external_" + name + format("{}", ::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~External() override { fs::remove_all(folder_); }

  // Written into `folder`; the names of the files there, relative, sorted.
  std::vector<std::string> write(const fs::path& folder, int mode) {
    fs::create_directories(folder);
    Options o;
    o.external_weight = mode;
    Status s = om::write(compiled(o).package, (folder / "m.om").string());
    EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().text());
    return names(folder);
  }
  static std::vector<std::string> names(const fs::path& folder) {
    std::vector<std::string> out;
    for (auto& e : fs::recursive_directory_iterator(folder))
      if (e.is_regular_file()) out.push_back(fs::relative(e.path(), folder));
    std::sort(out.begin(), out.end());
    return out;
  }
  fs::path weight_file(const fs::path& folder) const {
    for (auto& n : names(folder))
      if (n != "m.om") return folder / n;
    return {};
  }
  Error open_error(const fs::path& om, bool check = false) {
    auto m = runtime::Model::open(om.string(), {1, check, false});
    EXPECT_FALSE(m.ok()) << om;
    return m.ok() ? Error() : m.error();
  }
  fs::path folder_;
};

std::vector<Tensor> outputs(runtime::Model& m) {
  auto in = seeded_inputs(m, {}, 2);
  auto out = run(m, *in);
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : out.error().text());
  return *std::move(out);
}

TEST_P(External, RunsLikeWeightsInside) {
  auto inside = open_compiled(compiled(), 1);
  auto want = outputs(**inside);
  write(folder_, GetParam());
  for (bool huge : {false, true}) {
    auto m = runtime::Model::open((folder_ / "m.om").string(), {1, true, huge});
    ASSERT_TRUE(m.ok()) << m.error().text();
    EXPECT_TRUE(outputs(**m)[0].same_bytes(want[0]));
    EXPECT_GT((*m)->memory().weights, (*inside)->memory().weights * 9 / 10);  // without the gaps to align each
    EXPECT_LE((*m)->memory().weights, (*inside)->memory().weights);
  }
}

TEST_P(External, NamesAndSizes) {
  auto files = write(folder_, GetParam());
  if (GetParam() == 2) {
    EXPECT_EQ(files, (std::vector<std::string>{"m.om", "m_weight_combined"}));
  } else {
    ASSERT_GT(files.size(), 3u);
    for (auto& f : files)
      if (f != "m.om") {
        Sha256 sha;
        sha.update(content(folder_ / f));
        EXPECT_EQ(f, "weight/weight_" + sha.hex());
      }
  }
  fs::create_directories(folder_ / "inside");
  write(folder_ / "inside", 0);
  EXPECT_LT(fs::file_size(folder_ / "m.om") + 30000, fs::file_size(folder_ / "inside" / "m.om"));
}

TEST_P(External, SameBytesTwiceAndAfterARoundTrip) {
  auto files = write(folder_ / "a", GetParam());
  EXPECT_EQ(write(folder_ / "b", GetParam()), files);
  auto m = runtime::Model::open((folder_ / "a" / "m.om").string(), {});
  ASSERT_TRUE(m.ok());
  fs::create_directories(folder_ / "c");
  ASSERT_TRUE(om::write((*m)->package(), (folder_ / "c" / "m.om").string()).ok());
  EXPECT_EQ(names(folder_ / "c"), files);
  for (auto& f : files) {
    EXPECT_EQ(content(folder_ / "a" / f), content(folder_ / "b" / f)) << f;
    EXPECT_EQ(content(folder_ / "a" / f), content(folder_ / "c" / f)) << f;
  }
  // As bytes it is one self-contained file again.
  auto alone = runtime::Model::open(om::to_bytes((*m)->package()), {1, true, false});
  ASSERT_TRUE(alone.ok()) << alone.error().text();
  EXPECT_TRUE(outputs(**alone)[0].same_bytes(outputs(**m)[0]));
}

TEST_P(External, FoundInTheOmFilesOwnFolder) {
  write(folder_ / "a", GetParam());
  fs::rename(folder_ / "a", folder_ / "moved");
  fs::rename(folder_ / "moved" / "m.om", folder_ / "moved" / "other.om");
  auto m = runtime::Model::open((folder_ / "moved" / "other.om").string(), {1, true, false});
  ASSERT_TRUE(m.ok()) << m.error().text();
  auto before = fs::current_path();
  fs::current_path(folder_ / "moved");
  auto here = runtime::Model::open("other.om", {1, true, false});
  fs::current_path(before);
  EXPECT_TRUE(here.ok()) << here.error().text();
}

TEST_P(External, MissingCutAndLongerFilesAreNamedWhenOpening) {
  write(folder_, GetParam());
  auto file = weight_file(folder_);
  auto whole = content(file);
  fs::remove(file);
  Error e = open_error(folder_ / "m.om");
  EXPECT_EQ(e.code, code::kNoFile);
  for (std::string word : {file.string(), std::string("does not exist"), std::string("outside of the .om file"), std::string("beside the .om file"), std::string("m.om")}) EXPECT_THAT(e.text(), HasSubstr(word));
  for (size_t n : {size_t(0), size_t(1), whole.size() / 2, whole.size() - 1}) {
    put(file, std::span(whole).first(n));
    e = open_error(folder_ / "m.om");
    EXPECT_EQ(e.code, code::kParse);
    EXPECT_THAT(e.message, HasSubstr(format("{} has {} bytes instead of {}", file.string(), n, whole.size())));
  }
  auto longer = whole;
  longer.resize(whole.size() + 70000);
  put(file, longer);
  EXPECT_THAT(open_error(folder_ / "m.om").message, HasSubstr("instead of"));
}

TEST_P(External, ChangedBytesAreFoundWhenAsked) {
  for (auto& name : write(folder_, GetParam())) {
    if (name == "m.om") continue;
    auto whole = content(folder_ / name);
    for (size_t at : {size_t(0), whole.size() / 2, whole.size() - 1}) {
      auto changed = whole;
      changed[at] ^= std::byte{1};
      put(folder_ / name, changed);
      EXPECT_TRUE(runtime::Model::open((folder_ / "m.om").string(), {1, false, false}).ok());
      Error e = open_error(folder_ / "m.om", true);
      EXPECT_EQ(e.code, code::kParse);
      EXPECT_THAT(e.message, HasSubstr((folder_ / name).string() + " differs from its checksum"));
    }
    put(folder_ / name, whole);
  }
  EXPECT_TRUE(runtime::Model::open((folder_ / "m.om").string(), {1, true, false}).ok());
}

TEST_P(External, BytesHaveNoFolder) {
  write(folder_, GetParam());
  auto m = runtime::Model::open(content(folder_ / "m.om"), {});
  ASSERT_FALSE(m.ok());
  for (auto word : {"outside of it", GetParam() == 2 ? "m_weight_combined" : "weight/weight_", "load the model from its path"}) EXPECT_THAT(m.error().text(), HasSubstr(word));
}

// Each name in the metadata overwritten with one of the same length that leads elsewhere, and signed.
TEST_P(External, NamesThatLeadElsewhereAreRefused) {
  auto file = fs::relative(weight_file((write(folder_, GetParam()), folder_)), folder_).string();
  auto bytes = content(folder_ / "m.om");
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  size_t at = text.find(file);
  ASSERT_NE(at, std::string::npos);
  auto padded = [&](std::string s) { return s + std::string(file.size() - s.size(), 'x'); };
  std::vector<std::string> bad = {padded("../"), padded("/"), padded("weight/../"), padded("other/"), padded("weight//"), padded("a/../"), std::string(file.size(), '\0')};
  for (auto& name : bad) {
    std::memcpy(bytes.data() + at, name.data(), name.size());
    sign(bytes);
    put(folder_ / "bad.om", bytes);
    EXPECT_THAT(open_error(folder_ / "bad.om").text(), HasSubstr("only lie beside the .om file")) << name;
  }
}

TEST_P(External, HostileMetadataNeverCrash) {
  write(folder_, GetParam());
  auto bytes = content(folder_ / "m.om");
  auto [entry, meta, size] = section(bytes, om::SectionKind::meta);
  SplitMix64 random{7};
  int opened = 0, bound = 0;
  for (int round = 0; round < 1000; ++round) {
    auto copy = bytes;
    for (int k = 0; k <= round % 3; ++k) copy[meta + random.next() % size] = std::byte(random.next());
    sign(copy);
    put(folder_ / "bad.om", copy);
    auto m = runtime::Model::open((folder_ / "bad.om").string(), {1, round % 2 == 0, false});
    if (!m.ok()) continue;
    ++opened;
    bound += (*m)->bind(std::vector<std::vector<int64_t>>{{2, 3, 9, 9}}).ok();
    // Written again it must stay inside of the weights too; that waits for the disk.
    if (opened % 20 == 0) (void)om::write((*m)->package(), (folder_ / "again.om").string());
  }
  EXPECT_GT(opened, 20);
  EXPECT_GT(bound, 10);
}

TEST_P(External, NothingIsLeftWhereWritingFails) {
  fs::create_directories(folder_ / "m.om");  // the .om itself, after all the weights
  Options o;
  o.external_weight = GetParam();
  Status s = om::write(compiled(o).package, (folder_ / "m.om").string());
  ASSERT_FALSE(s.ok());
  EXPECT_EQ(s.error().code, code::kWrite);
  EXPECT_THAT(s.error().message, HasSubstr((folder_ / "m.om").string()));
  EXPECT_EQ(names(folder_), std::vector<std::string>());
  EXPECT_FALSE(fs::exists(folder_ / "weight"));
  // A weight file's place is taken.
  fs::remove(folder_ / "m.om");
  fs::create_directories(folder_ / "m_weight_combined");
  put(folder_ / "weight", {});
  s = om::write(compiled(o).package, (folder_ / "m.om").string());
  ASSERT_FALSE(s.ok());
  EXPECT_THAT(s.error().message, HasSubstr("weight"));
  EXPECT_EQ(names(folder_), std::vector<std::string>{"weight"});
}

TEST_P(External, AModelWithoutWeightsIsOneFile) {
  Options o;
  o.external_weight = GetParam();
  auto c = compile_graph(*ir::parse("graph main(%x: f32[4]) -> (%y) {\n  %y = Neg(%x)\n}"), o);
  ASSERT_TRUE(c.ok());
  ASSERT_TRUE(om::write(c->package, (folder_ / "m.om").string()).ok());
  EXPECT_EQ(names(folder_), std::vector<std::string>{"m.om"});
  EXPECT_TRUE(runtime::Model::open(content(folder_ / "m.om"), {}).ok());
}

INSTANTIATE_TEST_SUITE_P(Modes, External, testing::Values(1, 2), [](auto& p) { return p.param == 1 ? "each" : "combined"; });

// Two models with a weight in common share its file, and writing the second leaves the first whole.
TEST(ExternalWeights, EqualWeightsShareAFile) {
  fs::path folder = fs::path(testing::TempDir()) / format("ge_external_shared{}", ::getpid());
  fs::remove_all(folder);
  fs::create_directories(folder);
  Options o;
  o.external_weight = 1;
  for (auto* op : {"Relu", "Neg"}) {
    auto c = compile_graph(*ir::parse(format("graph main(%x: f32[2,8]) -> (%y) {{\n  %w: f32[8,8] = random(1)\n  %m = MatMul(%x, %w)\n  %y = {}(%m)\n}}", op)), o);
    ASSERT_TRUE(c.ok()) << c.error().text();
    ASSERT_TRUE(om::write(c->package, (folder / (std::string(op) + ".om")).string()).ok());
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "weight"), {}), 1);
  for (auto* op : {"Relu", "Neg"}) EXPECT_TRUE(runtime::Model::open((folder / (std::string(op) + ".om")).string(), {1, true, false}).ok());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace ge
