// A small model with all kinds of sections, and the checksums of a changed file made right again.
#pragma once

#include <cstring>
#include <optional>

#include "base/hash.h"
#include "driver/compare.h"
#include "ir/parse.h"
#include "om/format.h"
#include "om/reader.h"

namespace ge {

inline constexpr const char* kModel = R"(graph main(%x: f32[n,3,9,9]) -> (%y) {
  %w: f32[8,3,3,3] = random(1)
  %b: f32[8] = random(2)
  %v: f32[648,10] = random(3)
  %shape: i64[2] = [0, -1]
  %t = Conv(%x, %w, %b) {pads=[1, 1, 1, 1]}
  %r = Relu(%t)
  %f = Reshape(%r, %shape)
  %m = MatMul(%f, %v)
  %y = Softmax(%m) {axis=-1}
})";

inline Compiled compiled(Options o = {}) {
  auto g = ir::parse(kModel);
  EXPECT_TRUE(g.ok());
  auto c = compile_graph(*std::move(g), o);
  EXPECT_TRUE(c.ok()) << (c.ok() ? "" : c.error().text());
  return *std::move(c);
}

inline Result<om::Package> read(std::vector<std::byte> bytes, bool check) { return om::read(MappedFile::from_bytes(bytes), check); }

inline uint64_t get64(const std::vector<std::byte>& b, size_t at) {
  uint64_t v;
  std::memcpy(&v, b.data() + at, 8);
  return v;
}

// Place and bytes of the section of that kind.
struct Section {
  size_t entry, offset, size;
};
inline Section section(const std::vector<std::byte>& b, om::SectionKind kind) {
  for (size_t i = 0; i < 4; ++i) {
    om::SectionEntry e;
    size_t at = om::kHeaderBytes + i * om::kSectionBytes;
    std::memcpy(&e, b.data() + at, sizeof e);
    if (e.kind == kind) return {at, e.offset, e.size};
  }
  ADD_FAILURE() << "no such section";
  return {};
}

// The header's and the sections' checksums made right again, as somebody hostile would.
inline void sign(std::vector<std::byte>& b) {
  for (auto kind : {om::SectionKind::meta, om::SectionKind::notes, om::SectionKind::sums}) {
    auto e = section(b, kind);
    uint64_t sum = hash64(std::span(b).subspan(e.offset, e.size));
    std::memcpy(b.data() + e.entry + 24, &sum, 8);
  }
  std::memset(b.data() + 24, 0, 8);
  uint64_t sum = hash64(std::span(b).first(om::kHeaderBytes + 4 * om::kSectionBytes));
  std::memcpy(b.data() + 24, &sum, 8);
}

// 1 to 3 bytes of the metadata changed at random, and signed anew: each is another byte, or, where `bits` says so, in
// every other round the same but for one bit.
inline std::vector<std::byte> hostile(std::vector<std::byte> bytes, uint64_t& seed, int round, bool bits) {
  auto [entry, meta, size] = section(bytes, om::SectionKind::meta);
  auto next = [&] { return seed = seed * 6364136223846793005ull + 1442695040888963407ull; };
  for (int k = 0; k <= round % 3; ++k) {
    size_t at = meta + (next() >> 33) % size;
    uint64_t s = next();
    bytes[at] = !bits || round % 2 ? std::byte(s >> 56) : bytes[at] ^ std::byte(1u << (s >> 61));
  }
  sign(bytes);
  return bytes;
}

// Seeded inputs, where the model takes such and none is larger.
inline std::optional<std::vector<Tensor>> small_inputs(const runtime::Model& m, int64_t otherwise, int64_t most) {
  auto inputs = seeded_inputs(m, {}, otherwise);
  if (!inputs.ok()) return std::nullopt;
  for (auto& t : *inputs)
    if (t.count() >= most) return std::nullopt;
  return *std::move(inputs);
}

}  // namespace ge
