// The .om file: same bytes twice, every truncation and every flip is an error, hostile metadata never crash.
#include "om/om_util.h"

namespace ge {
namespace {

TEST(Om, SameModelSameBytes) { EXPECT_EQ(om::to_bytes(compiled().package), om::to_bytes(compiled().package)); }

TEST(Om, RoundTrip) {
  auto c = compiled();
  auto p = read(om::to_bytes(c.package), true);
  ASSERT_TRUE(p.ok()) << p.error().text();
  EXPECT_EQ(p->notes, c.package.notes);
  EXPECT_EQ(om::to_bytes(*p), om::to_bytes(c.package));
}

TEST(Om, EveryTruncationIsAnError) {
  auto bytes = om::to_bytes(compiled().package);
  for (size_t n = 0; n < bytes.size(); n += n < 6000 ? 1 : 97) {
    auto p = read(std::vector<std::byte>(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n)), false);
    ASSERT_FALSE(p.ok()) << n << " bytes of " << bytes.size();
    ASSERT_EQ(p.error().code, code::kParse);
  }
}

TEST(Om, EveryFlipOutsideOfTheWeightsIsAnError) {
  auto bytes = om::to_bytes(compiled().package);
  size_t weights = get64(bytes, om::kHeaderBytes + 3 * om::kSectionBytes + 8);
  for (size_t i = 0; i < weights; ++i) {
    auto copy = bytes;
    copy[i] ^= std::byte(1u << (i % 8));
    ASSERT_FALSE(read(copy, false).ok()) << "byte " << i;
  }
}

TEST(Om, AFlipInTheWeightsIsFoundWhenAsked) {
  auto bytes = om::to_bytes(compiled().package);
  size_t weights = get64(bytes, om::kHeaderBytes + 3 * om::kSectionBytes + 8);
  for (size_t i = weights; i < bytes.size(); i += 311) {
    auto copy = bytes;
    copy[i] ^= std::byte{4};
    EXPECT_TRUE(read(copy, false).ok());
    EXPECT_FALSE(read(copy, true).ok()) << "byte " << i;
  }
}

TEST(Om, ANewerFormatSaysSo) {
  auto bytes = om::to_bytes(compiled().package);
  uint32_t version = om::kFormatVersion + 1;
  std::memcpy(bytes.data() + 8, &version, 4);
  auto p = read(bytes, false);
  ASSERT_FALSE(p.ok());
  EXPECT_NE(p.error().message.find("format"), std::string::npos);
  EXPECT_NE(p.error().fix.find("update"), std::string::npos);
}

// Metadata changed at random and signed anew: opening, binding and running give an error or numbers.
TEST(Om, HostileMetadataNeverCrash) {
  auto bytes = om::to_bytes(compiled().package);
  size_t meta = get64(bytes, om::kHeaderBytes + 8), size = get64(bytes, om::kHeaderBytes + 16);
  uint64_t s = 12345;
  int opened = 0, ran = 0;
  for (int round = 0; round < 4000; ++round) {
    auto copy = bytes;
    int flips = 1 + round % 3;
    for (int k = 0; k < flips; ++k) {
      s = s * 6364136223846793005ull + 1442695040888963407ull;
      size_t at = meta + (s >> 33) % size;
      s = s * 6364136223846793005ull + 1442695040888963407ull;
      copy[at] = std::byte(s >> 56);
    }
    sign(copy);
    auto m = runtime::Model::open(copy, {1, false, false});
    if (!m.ok()) continue;
    ++opened;
    auto inputs = seeded_inputs(**m, {}, 2);
    if (!inputs.ok()) continue;
    bool small = true;
    for (auto& t : *inputs) small &= t.count() < (1 << 20);
    if (!small) continue;
    auto y = run(**m, *inputs);
    ran += y.ok();
  }
  EXPECT_GT(opened, 100);
  EXPECT_GT(ran, 20);
}

TEST(Om, NoPathEntersTheFile) {
  Options o;
  o.command = "ge compile m.onnx";
  auto bytes = om::to_bytes(compiled(o).package);
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(text.find(GE_SOURCE_DIR), std::string::npos);
}

}  // namespace
}  // namespace ge
