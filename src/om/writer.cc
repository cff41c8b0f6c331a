#include "om/writer.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "om/external.h"
#include "om/format.h"

namespace ge::om {
namespace {

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

using Bytes = std::span<const std::byte>;

// A checksum of each block of the weights, which are read once, block by block.
class Sums {
 public:
  void add(Bytes block) { sums_.push_back(hash64(block)); }
  void add_all(Bytes weights) {
    by_blocks(weights, [this](Bytes block) { add(block); }, kSumBlock);
  }
  Bytes bytes() const { return std::as_bytes(std::span(sums_)); }

 private:
  std::vector<uint64_t> sums_;
};

// What stands in an .om file around the weights: the weights can be written before the rest is known.
struct Around {
  std::vector<std::byte> head, tail;   // up to the weights; from `at` on
  size_t at = 0;
};

Around around(const ModelT& model, const std::string& notes, size_t weights, const Sums& sums) {
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  builder.Finish(CreateModel(builder, &model), ModelIdentifier());
  Bytes parts[3] = {std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())), std::as_bytes(std::span(notes.data(), notes.size())), sums.bytes()};
  constexpr uint32_t kSections = 4;
  constexpr size_t kTable = kHeaderBytes + kSections * kSectionBytes;
  SectionEntry table[kSections] = {};
  Around out;
  // Weights fill whole pages, so that a page holds nothing else.
  table[0] = {SectionKind::weights, 0, kPage, weights, 0};
  size_t at = out.at = round_up(kPage + weights, kPage), end = at;
  for (uint32_t i = 0; i < 3; ++i) {
    table[i + 1] = {static_cast<SectionKind>(i + 1), 0, at, parts[i].size(), hash64(parts[i])};
    end = at + parts[i].size();
    at = round_up(end, kWeightAlign);
  }
  out.tail.resize(end - out.at);
  for (size_t i = 0; i < 3; ++i)
    if (!parts[i].empty()) std::memcpy(out.tail.data() + (table[i + 1].offset - out.at), parts[i].data(), parts[i].size());

  out.head.resize(kPage);
  auto put = [&](size_t to, const auto& v) { std::memcpy(out.head.data() + to, &v, sizeof v); };
  std::memcpy(out.head.data(), kMagic.data(), kMagic.size());
  put(8, kFormatVersion);
  put(12, kSections);
  put(16, uint64_t(end));
  for (size_t i = 0; i < kSections; ++i) put(kHeaderBytes + i * kSectionBytes, table[i]);
  put(24, hash64(Bytes(out.head).first(kTable)));
  return out;
}

// Likewise where no weights stand in the file, whoever holds them.
Around around(const Package& p, size_t weights, const Sums& sums) {
  if (p.model.weight_files.empty()) return around(p.model, p.notes, weights, sums);
  ModelT alone = p.model;
  alone.weight_files.clear();
  return around(alone, p.notes, weights, sums);
}

std::vector<std::byte> joined(const Around& a, Bytes weights) {
  std::vector<std::byte> out = a.head;
  out.insert(out.end(), weights.begin(), weights.end());
  out.resize(a.at);
  out.insert(out.end(), a.tail.begin(), a.tail.end());
  return out;
}

// The file that the weights lie in becomes the .om file; false: it cannot, and nothing is there.
bool name_file(const Package& p, const std::string& path, bool durable) {
  if (!p.file || p.file->linked() || !fill(p, *p.file).ok()) return false;
  if (durable && to_the_disk(p.file->descriptor())) return false;
  FileAside aside(path);
  return aside.adopt(*p.file) == 0 && aside.finish() == 0;
}

// Weights are read once: their checksums are made while they are written.
Status write_inside(const Package& p, const std::string& path, bool durable) {
  if (name_file(p, path, durable)) return ok();
  FileAside file(path);
  Sums sums;
  int why = file.create();
  size_t at = kPage;
  if (!why)
    by_blocks(p.weights, [&](Bytes block) {
      sums.add(block);
      if (!why) why = file.put(at, block);
      at += block.size();
    }, kSumBlock);
  auto a = around(p.model, p.notes, p.weights.size(), sums);
  if (!why) why = file.put(0, a.head);
  if (!why) why = file.put(a.at, a.tail);
  if (!why) why = file.close(durable);
  if (why) return cannot_write(path, "written", why);
  why = file.finish();
  return why ? Status(cannot_write(path, "put in place", why)) : ok();
}

}  // namespace

Status fill(const Package& p, const NamelessFile& file) {
  Sums sums;
  bool written = true;
  if (p.file.get() == &file) {
    sums.add_all(p.weights);
  } else {
    size_t at = kPage;
    by_blocks(p.weights, [&](Bytes block) {
      sums.add(block);
      written = written && file.put(at, block);
      at += block.size();
    }, kSumBlock);
  }
  auto a = around(p, p.weights.size(), sums);
  if (written && file.resize(a.at) && file.put(0, a.head) && file.put(a.at, a.tail)) return ok();
  return cannot_write("without a name", "written", errno);
}

std::vector<std::byte> head_to_bytes(const Package& p) { return joined(around(p, 0, {}), {}); }

std::vector<std::byte> to_bytes(const Package& p) {
  Sums sums;
  sums.add_all(p.weights);
  return joined(around(p, p.weights.size(), sums), p.weights);
}

Status write(const Package& p, const std::string& path, bool durable) {
  namespace fs = std::filesystem;
  GE_RETURN_IF_ERROR(not_in_place_of(path, p.sources));
  if (p.external_weight == ExternalWeight::none || p.weights.empty()) return write_inside(p, path, durable);
  fs::path om(path), weights = om.parent_path() / kWeightFolder;
  GE_TRY(auto apart, set_apart(p, om.filename().string()));
  auto head = joined(around(apart.model, p.notes, 0, {}), {});
  std::vector<FileContent> files;
  for (size_t i = 0; i < apart.contents.size(); ++i)
    files.push_back({(om.parent_path() / apart.model.weight_files[i]->name).string(), {apart.contents[i]}});
  for (auto& file : files) GE_RETURN_IF_ERROR(not_in_place_of(file.path, p.sources));
  files.push_back({path, {head}});
  std::error_code ignored;  // a folder that cannot be made fails the files in it
  bool made = p.external_weight == ExternalWeight::each && fs::create_directory(weights, ignored);
  Status s = write_files(files, durable);
  if (!s.ok() && made) fs::remove(weights, ignored);
  return s;
}

}  // namespace ge::om
