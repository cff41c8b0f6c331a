// The .om file: same bytes twice, every truncation and every flip is an error, hostile metadata never crash.
#include "om/om_util.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "driver/atc_report.h"
#include "driver/report.h"

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
  auto weights = section(bytes, om::SectionKind::weights);
  for (size_t i = 0; i < bytes.size(); i = i + 1 == weights.offset ? weights.offset + weights.size : i + 1) {
    auto copy = bytes;
    copy[i] ^= std::byte(1u << (i % 8));
    ASSERT_FALSE(read(copy, false).ok()) << "byte " << i;
  }
}

TEST(Om, AFlipInTheWeightsIsFoundWhenAsked) {
  auto bytes = om::to_bytes(compiled().package);
  auto weights = section(bytes, om::SectionKind::weights);
  for (size_t i = weights.offset; i < weights.offset + weights.size; i += 311) {
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

// Metadata, or in them a vector whose elements take 8 bytes, at an odd multiple of 4.
TEST(Om, MetadataOutOfAlignmentAreRefused) {
  const auto bytes = om::to_bytes(compiled().package);
  const size_t meta = section(bytes, om::SectionKind::meta).offset;
  auto refused = [](std::vector<std::byte> b) {
    sign(b);
    auto p = read(b, false);
    ASSERT_FALSE(p.ok());
    EXPECT_NE(p.error().message.find("metadata cannot be read"), std::string::npos) << p.error().text();
  };

  auto moved = bytes;
  moved.insert(moved.begin() + static_cast<ptrdiff_t>(meta), 4, std::byte{0});
  auto add4 = [&](size_t at) {
    uint64_t v = get64(moved, at) + 4;
    std::memcpy(moved.data() + at, &v, sizeof v);
  };
  add4(16);
  for (auto kind : {om::SectionKind::meta, om::SectionKind::notes, om::SectionKind::sums}) add4(section(bytes, kind).entry + 8);
  refused(moved);

  auto vector = bytes;
  auto* program = reinterpret_cast<const flatbuffers::Table*>(om::GetModel(vector.data() + meta)->programs()->Get(0));
  auto* field = const_cast<uint8_t*>(program->GetAddressOf(om::Program::VT_EXPRS));
  ASSERT_NE(field, nullptr);
  flatbuffers::WriteScalar(field, flatbuffers::ReadScalar<flatbuffers::uoffset_t>(field) + 4);
  refused(vector);
}

// Metadata changed at random and signed anew: opening, binding and running give an error or numbers.
TEST(Om, HostileMetadataNeverCrash) {
  auto bytes = om::to_bytes(compiled().package);
  uint64_t s = 12345;
  int opened = 0, ran = 0;
  for (int round = 0; round < 4000; ++round) {
    auto m = runtime::Model::open(hostile(bytes, s, round, false), {1, false, false});
    if (!m.ok()) continue;
    ++opened;
    auto inputs = small_inputs(**m, 2, 1 << 20);
    if (!inputs) continue;
    auto y = run(**m, *inputs);
    ran += y.ok();
  }
  EXPECT_GT(opened, 100);
  EXPECT_GT(ran, 20);
}

// A model that keeps what it was given, for a report that speaks of states.
Compiled with_state() {
  auto g = ir::parse(R"(graph main(%x: f32[1,n,4], %past: f32[1,p,4]) -> (%y, %present) {
    %present = Concat(%past, %x) {axis=1}
    %y = Neg(%present)
  })");
  EXPECT_TRUE(g.ok());
  Options o;
  o.state = "past:present:1:8";
  auto c = compile_graph(*std::move(g), o);
  EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
  return *std::move(c);
}

// The report is text of the file's: whoever reads it takes it as it comes.
void expect_any_notes_are_stood(Compiled c) {
  const auto whole = c.package.notes;
  std::vector<std::string> texts = {"", "3", "[]", "\xff\xfe", R"({"fused":3})", R"({"memory":{"arena":"x"}})", std::string(100000, '[')};
  // Every value of a true report is replaced by one of another type, or left out.
  auto report = nlohmann::ordered_json::parse(whole).flatten();
  for (auto& [key, value] : report.items())
    for (nlohmann::ordered_json other : {nlohmann::ordered_json(nullptr), nlohmann::ordered_json("x"), nlohmann::ordered_json(-1e300), nlohmann::ordered_json::array({1})}) {
      auto changed = nlohmann::ordered_json::parse(whole);
      changed[nlohmann::ordered_json::json_pointer(key)] = other;
      texts.push_back(changed.dump());
    }
  ASSERT_GT(texts.size(), 60u);
  for (auto& text : texts) {
    c.package.notes = text;
    auto m = runtime::Model::open(om::to_bytes(c.package), {1, false, false});
    ASSERT_TRUE(m.ok()) << text;
    auto& p = (*m)->package();
    EXPECT_FALSE(explain_text(p).empty());
    EXPECT_NE(inspect_text(p, true).find("tasks:"), std::string::npos);
    EXPECT_NE(display_model_info(p, 1).find("memory_size"), std::string::npos);
    EXPECT_TRUE(nlohmann::json::accept(om_json(p)));
    EXPECT_GE(fused_operators(p), 0);
    fusion_warnings(p);
  }
}

TEST(Om, NotesOfAnyKindAreStood) {
  ASSERT_NE(explain_text(compiled().package).find("fused groups"), std::string::npos);
  expect_any_notes_are_stood(compiled());
}

TEST(Om, NotesOfStatesOfAnyKindAreStood) {
  ASSERT_NE(explain_text(with_state().package).find("present: appended"), std::string::npos) << explain_text(with_state().package);
  expect_any_notes_are_stood(with_state());
}

TEST(Om, NamesAreText) {
  std::vector<std::function<std::string&(om::ModelT&)>> names = {
      [](auto& m) -> std::string& { return m.name; }, [](auto& m) -> std::string& { return m.command; },
      [](auto& m) -> std::string& { return m.programs[0]->inputs[0]->name; }, [](auto& m) -> std::string& { return m.programs[0]->outputs[0]->name; },
      [](auto& m) -> std::string& { return m.programs[0]->tasks[0]->name; }, [](auto& m) -> std::string& { return m.programs[0]->tasks[0]->origins.at(0); }};
  for (auto& name : names) {
    auto c = compiled();
    name(c.package.model) = "a\xc0\x80";
    auto m = runtime::Model::open(om::to_bytes(c.package), {1, false, false});
    ASSERT_FALSE(m.ok());
    EXPECT_NE(m.error().message.find("not UTF-8"), std::string::npos);
  }
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
