// The container of an .om file: header, section table, sections. All little-endian.
//
//   0   "GEOM\r\n\x1a\n"          magic (a text-mode transfer or a cut damages it)
//   8   u32 format version, u32 section count
//   16  u64 file size
//   24  u64 checksum of the header and the section table, with this field 0
//   32  section table: {u32 kind, u32 flags, u64 offset, u64 size, u64 checksum} each
//
// Sections: WEIGHTS (whole pages, mapped; its own checksum field is 0: SUMS covers it), META (FlatBuffers, om.fbs),
// NOTES (JSON report), SUMS (checksum of each block of the weights). The writer puts the weights first, as they are
// there first; readers take any order. Where the
// weights lie in files of their own, META names and sums those, and the last two sections are empty.
// Unknown sections are skipped. Checksums are xxHash64. Bytes between sections are zero and are checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ge::om {

inline constexpr std::array<unsigned char, 8> kMagic = {'G', 'E', 'O', 'M', '\r', '\n', 0x1a, '\n'};
inline constexpr size_t kHeaderBytes = 32;
inline constexpr size_t kSectionBytes = 32;
inline constexpr size_t kSumBlock = size_t(1) << 20;
inline constexpr uint32_t kMaxSections = 16;

enum class SectionKind : uint32_t { meta = 1, notes = 2, sums = 3, weights = 4 };

struct SectionEntry {
  SectionKind kind;
  uint32_t flags;
  uint64_t offset, size, checksum;
};
static_assert(sizeof(SectionEntry) == kSectionBytes);

}  // namespace ge::om
