// A small model with all kinds of sections, and the checksums of a changed file made right again.
#pragma once

#include <cstring>

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

// The header's and the sections' checksums made right again, as somebody hostile would.
inline void sign(std::vector<std::byte>& b) {
  for (size_t i = 0; i < 3; ++i) {
    size_t e = om::kHeaderBytes + i * om::kSectionBytes;
    uint64_t sum = hash64(std::span(b).subspan(get64(b, e + 8), get64(b, e + 16)));
    std::memcpy(b.data() + e + 24, &sum, 8);
  }
  std::memset(b.data() + 24, 0, 8);
  uint64_t sum = hash64(std::span(b).first(om::kHeaderBytes + 4 * om::kSectionBytes));
  std::memcpy(b.data() + 24, &sum, 8);
}

}  // namespace ge
