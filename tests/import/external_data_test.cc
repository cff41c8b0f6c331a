#include "import/external_data.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "import/proto_writer.h"
#include "import/sha1.h"
#include "import/tensors.h"

namespace ge::onnx {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

class External : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "ge_external_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "model/sub");
    fs::create_directories(root_ / "model_other");
    std::string data(64, '\0');
    for (size_t i = 0; i < 16; ++i) {
      float v = static_cast<float>(i);
      std::memcpy(data.data() + 4 * i, &v, 4);
    }
    data_ = data;
    for (auto p : {"model/w.bin", "model/sub/w.bin", "model_other/w.bin", "outside.bin"})
      ASSERT_TRUE(write_file((root_ / p).string(), data).ok());
  }
  void TearDown() override { fs::remove_all(root_); }

  TensorProto proto(StringPairs entries, std::vector<int64_t> dims = {2}) {
    TensorProto p;
    p.name = "w";
    p.dims = std::move(dims);
    p.data_type = 1;
    p.external = true;
    p.external_data = std::move(entries);
    return p;
  }
  Result<Tensor> read(const TensorProto& p) {
    return TensorReader(nullptr, ExternalData({folder()})).read(p);
  }
  std::string refusal(StringPairs entries) {
    auto r = read(proto(std::move(entries)));
    EXPECT_FALSE(r.ok());
    return r.ok() ? "" : r.error().text();
  }
  std::string folder() const { return (root_ / "model").string(); }

  fs::path root_;
  std::string data_;
};

TEST_F(External, OffsetsLengthsAndAlignment) {
  auto t = read(proto({{"location", "w.bin"}, {"offset", "8"}, {"length", "8"}}));
  ASSERT_TRUE(t.ok()) << t.error().text();
  EXPECT_EQ(t->as<float>()[0], 2);
  EXPECT_EQ(t->as<float>()[1], 3);
  t = read(proto({{"location", "sub/w.bin"}}, {16}));
  ASSERT_TRUE(t.ok()) << t.error().text();
  EXPECT_EQ(t->as<float>()[15], 15);
  t = read(proto({{"location", "./w.bin"}, {"offset", "1"}}, {1}));
  ASSERT_TRUE(t.ok()) << t.error().text();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t->data()) % 4, 0u);
  EXPECT_EQ(0, std::memcmp(t->data(), data_.data() + 1, 4));
}

TEST_F(External, EachFileIsMappedOnceAndShared) {
  TensorReader reader(nullptr, ExternalData({folder()}));
  auto a = reader.read(proto({{"location", "w.bin"}}));
  auto b = reader.read(proto({{"location", "w.bin"}, {"offset", "4"}}));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(b->data() - a->data(), 4);
}

TEST_F(External, RangesAreChecked) {
  EXPECT_THAT(refusal({{"location", "w.bin"}, {"offset", "60"}}),
              HasSubstr("the file has 64 bytes"));
  EXPECT_THAT(refusal({{"location", "w.bin"}, {"offset", "18446744073709551612"}}),
              HasSubstr("outside"));
  EXPECT_THAT(refusal({{"location", "w.bin"}, {"length", "4"}}),
              HasSubstr("needs 8 bytes for its shape"));
  EXPECT_THAT(refusal({{"location", "w.bin"}, {"offset", "-4"}}), HasSubstr("no number"));
  EXPECT_THAT(refusal({{"location", "w.bin"}, {"offset", "99999999999999999999999"}}),
              HasSubstr("no number"));
  EXPECT_THAT(refusal({{"location", "none.bin"}}), HasSubstr("E10410"));
  EXPECT_THAT(refusal({{"offset", "0"}}), HasSubstr("it is empty"));
}

TEST_F(External, StaysInsideTheFolder) {
  EXPECT_THAT(refusal({{"location", "../outside.bin"}}), HasSubstr("'..'"));
  EXPECT_THAT(refusal({{"location", "sub/../../outside.bin"}}), HasSubstr("'..'"));
  EXPECT_THAT(refusal({{"location", (root_ / "outside.bin").string()}}), HasSubstr("absolute"));
  EXPECT_THAT(refusal({{"location", std::string("w.bin\0x", 7)}}), HasSubstr("NUL"));
  fs::create_symlink("../outside.bin", root_ / "model/link");
  EXPECT_THAT(refusal({{"location", "link"}}), HasSubstr("leads out"));
  fs::create_symlink("..", root_ / "model/up");
  EXPECT_THAT(refusal({{"location", "up/outside.bin"}}), HasSubstr("leads out"));
  // A folder whose name only begins like the model's.
  fs::create_symlink("../model_other/w.bin", root_ / "model/begins");
  EXPECT_THAT(refusal({{"location", "begins"}}), HasSubstr("leads out"));
  fs::create_symlink("sub/w.bin", root_ / "model/inside");
  EXPECT_TRUE(read(proto({{"location", "inside"}})).ok());
}

TEST_F(External, OnlyRegularFiles) {
  ASSERT_EQ(mkfifo((root_ / "model/fifo").c_str(), 0600), 0);
  EXPECT_THAT(refusal({{"location", "fifo"}}), HasSubstr("regular"));
  EXPECT_THAT(refusal({{"location", "sub"}}), HasSubstr("regular"));
}

TEST_F(External, LinksIntoTheModelsRealFolder) {
  fs::create_symlink("../model_other/w.bin", root_ / "model/link");
  TensorReader reader(nullptr, ExternalData({folder(), (root_ / "model_other").string()}));
  EXPECT_TRUE(reader.read(proto({{"location", "link"}})).ok());
}

TEST_F(External, Checksum) {
  std::string sum = sha1_hex(std::as_bytes(std::span(data_.data(), data_.size())));
  EXPECT_TRUE(read(proto({{"location", "w.bin"}, {"checksum", sum}})).ok());
  for (char& c : sum) c = static_cast<char>(std::toupper(c));
  EXPECT_TRUE(read(proto({{"location", "w.bin"}, {"checksum", sum}})).ok());
  sum[0] = sum[0] == '0' ? '1' : '0';
  EXPECT_THAT(refusal({{"location", "w.bin"}, {"checksum", sum}}), HasSubstr("checksum"));
}

TEST_F(External, BytesWithoutAFolder) {
  auto r = TensorReader(nullptr, ExternalData()).read(proto({{"location", "w.bin"}}));
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().text(), HasSubstr("given as bytes"));
}

}  // namespace
}  // namespace ge::onnx
