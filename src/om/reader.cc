#include "om/reader.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"
#include "base/text.h"
#include "om/check.h"
#include "om/external.h"
#include "om/format.h"
#include "om/writer.h"

namespace ge::om {
namespace {

using Bytes = std::span<const std::byte>;

Error damaged(std::string what) {
  return error(code::kParse, format("The .om file is damaged: {}.", what), "the file was cut or changed after it was made",
               "compile the model again");
}

template <class T>
T get(Bytes b, size_t at) {
  T v;
  std::memcpy(&v, b.data() + at, sizeof v);
  return v;
}

Result<std::vector<SectionEntry>> read_table(Bytes file) {
  if (file.size() < kHeaderBytes || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) {
    if (file.size() >= 4 && std::memcmp(file.data(), kMagic.data(), 4) == 0) return damaged("its header is not whole");
    return error(code::kParse, "This is not an .om file of GE.", "it lacks the magic number", "compile the model first: `ge compile`, atc or ge.compile make .om files");
  }
  auto version = get<uint32_t>(file, 8);
  if (version > kFormatVersion)
    return error(code::kParse, format("The .om file has format {}, this version reads up to {}.", version, kFormatVersion),
                 "it was made by a newer version of GE", "update GE, or compile the model again with this version");
  auto count = get<uint32_t>(file, 12);
  if (count == 0 || count > kMaxSections || file.size() < kHeaderBytes + count * kSectionBytes) return damaged("its section table is not whole");
  if (get<uint64_t>(file, 16) != file.size())
    return damaged(format("it should have {} bytes and has {}", get<uint64_t>(file, 16), file.size()));
  std::vector<std::byte> head(file.begin(), file.begin() + static_cast<ptrdiff_t>(kHeaderBytes + count * kSectionBytes));
  std::memset(head.data() + 24, 0, 8);
  if (hash64(head) != get<uint64_t>(file, 24)) return damaged("the header's checksum is wrong");
  std::vector<SectionEntry> table;
  size_t at = kHeaderBytes + count * kSectionBytes;
  for (uint32_t i = 0; i < count; ++i) {
    auto e = get<SectionEntry>(file, kHeaderBytes + i * kSectionBytes);
    if (e.offset < at || e.offset > file.size() || e.size > file.size() - e.offset) return damaged("a section lies outside of the file");
    auto gap = file.subspan(at, e.offset - at);
    if (std::any_of(gap.begin(), gap.end(), [](std::byte b) { return b != std::byte{0}; })) return damaged("there is data between the sections");
    at = e.offset + e.size;
    table.push_back(e);
  }
  if (at != file.size()) return damaged("there is data after the last section");
  return table;
}

Status check_sums(Bytes weights, Bytes sums) {
  size_t blocks = (weights.size() + kSumBlock - 1) / kSumBlock;
  if (sums.size() != blocks * 8) return damaged("the checksums of the weights are not whole");
  for (size_t i = 0; i < blocks; ++i) {
    auto block = weights.subspan(i * kSumBlock, std::min(kSumBlock, weights.size() - i * kSumBlock));
    if (hash64(block) != get<uint64_t>(sums, i * 8)) return damaged(format("the weights differ from their checksum (block {})", i));
  }
  return ok();
}

// FlatBuffers' verifier looks at where a vector begins, not at where its elements of 8 bytes lie.
template <class T>
bool aligned(const T* vector) {
  return !vector || reinterpret_cast<uintptr_t>(vector->Data()) % 8 == 0;
}

template <class T, class Check>
bool all_of(const flatbuffers::Vector<flatbuffers::Offset<T>>* tables, Check check) {
  return !tables || std::all_of(tables->begin(), tables->end(), check);
}

bool aligned(const Model& m) {
  return all_of(m.states(), [](const State* s) { return aligned(s->dims()); }) && all_of(m.programs(), [](const Program* p) {
    return aligned(p->exprs()) && aligned(p->gears()) && all_of(p->plans(), [](const Plan* x) { return aligned(x->symbols()) && aligned(x->offsets()); }) &&
           all_of(p->tasks(), [](const Task* t) { return all_of(t->alternatives(), [](const Call* c) { return aligned(c->floats()); }); });
  });
}

}  // namespace

Result<Package> read(std::shared_ptr<const MappedFile> file, bool check_weights, const std::optional<std::string>& folder) {
  Bytes bytes = file->bytes();
  GE_TRY(auto table, read_table(bytes));
  Bytes part[5];
  for (auto& e : table) {
    auto k = static_cast<uint32_t>(e.kind);
    Bytes section = bytes.subspan(e.offset, e.size);
    if (e.kind != SectionKind::weights && hash64(section) != e.checksum) return damaged(format("the checksum of section {} is wrong", k));
    if (k >= 1 && k <= 4) part[k] = section;
    if (e.kind == SectionKind::weights && e.offset % kPage) return damaged("the weights are not page-aligned");
  }
  if (part[4].size() && part[3].size() != (part[4].size() + kSumBlock - 1) / kSumBlock * 8) return damaged("the checksums of the weights are not whole");
  auto* meta = reinterpret_cast<const uint8_t*>(part[1].data());
  flatbuffers::Verifier verifier(meta, part[1].size(), 64, 100'000'000);
  if (part[1].size() < 8 || reinterpret_cast<uintptr_t>(meta) % 8 || !VerifyModelBuffer(verifier) || !aligned(*GetModel(meta)))
    return damaged("its metadata cannot be read");
  Package p;
  GetModel(meta)->UnPackTo(&p.model);
  p.notes.assign(reinterpret_cast<const char*>(part[2].data()), part[2].size());
  p.weights = part[4];
  p.keep = file;
  if (!p.model.weight_files.empty()) {
    if (part[4].size()) return damaged("its weights lie both inside and outside of it");
    GE_RETURN_IF_ERROR(open_weight_files(p, folder, check_weights));
  } else if (check_weights) {
    GE_RETURN_IF_ERROR(check_sums(part[4], part[3]));
  }
  GE_RETURN_IF_ERROR(check(p));
  return p;
}

Result<Package> reopened(const Package& p) {
  GE_TRY(auto read_again, read(MappedFile::from_bytes(head_to_bytes(p)), false));
  read_again.weights = p.weights;
  read_again.keep = p.keep;
  read_again.external_weight = p.external_weight;
  read_again.sources = p.sources;
  return read_again;
}

}  // namespace ge::om
