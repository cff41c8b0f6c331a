#include "om/writer.h"

#include <cstring>
#include <filesystem>

#include "base/hash.h"
#include "om/external.h"
#include "om/format.h"

namespace ge::om {
namespace {

size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

template <class T>
void put(std::vector<std::byte>& out, size_t at, const T& v) {
  std::memcpy(out.data() + at, &v, sizeof v);
}

// Everything but the weights, which follow.
std::vector<std::byte> head_bytes(const ModelT& model, const std::string& notes, std::span<const std::byte> weights) {
  flatbuffers::FlatBufferBuilder builder(1 << 16);
  builder.Finish(CreateModel(builder, &model), ModelIdentifier());
  std::vector<uint64_t> sums;
  for (size_t at = 0; at < weights.size(); at += kSumBlock) {
    auto block = weights.subspan(at, std::min(kSumBlock, weights.size() - at));
    sums.push_back(hash64(block));
    let_go_of_pages(block);
  }

  std::span<const std::byte> parts[3] = {
      std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize())),
      std::as_bytes(std::span(notes.data(), notes.size())), std::as_bytes(std::span(sums))};
  SectionEntry table[4] = {};
  size_t at = round_up(kHeaderBytes + 4 * kSectionBytes, kWeightAlign);
  for (uint32_t i = 0; i < 3; ++i) {
    table[i] = {static_cast<SectionKind>(i + 1), 0, at, parts[i].size(), hash64(parts[i])};
    at = round_up(at + parts[i].size(), kWeightAlign);
  }
  at = round_up(at, kPage);
  table[3] = {SectionKind::weights, 0, at, weights.size(), 0};

  std::vector<std::byte> out(at);
  std::memcpy(out.data(), kMagic.data(), kMagic.size());
  put(out, 8, kFormatVersion);
  put(out, 12, uint32_t(4));
  put(out, 16, uint64_t(at + weights.size()));
  for (size_t i = 0; i < 4; ++i) put(out, kHeaderBytes + i * kSectionBytes, table[i]);
  put(out, 24, hash64(std::span(out).first(kHeaderBytes + 4 * kSectionBytes)));
  for (size_t i = 0; i < 3; ++i)
    if (!parts[i].empty()) std::memcpy(out.data() + table[i].offset, parts[i].data(), parts[i].size());
  return out;
}

}  // namespace

namespace {

// The weights stand in the file, or nowhere.
std::vector<std::byte> head_alone(const Package& p, std::span<const std::byte> weights) {
  ModelT alone;
  if (!p.model.weight_files.empty()) alone = p.model, alone.weight_files.clear();
  return head_bytes(p.model.weight_files.empty() ? p.model : alone, p.notes, weights);
}

}  // namespace

std::vector<std::byte> head_to_bytes(const Package& p) { return head_alone(p, {}); }

std::vector<std::byte> to_bytes(const Package& p) {
  auto out = head_alone(p, p.weights);
  out.insert(out.end(), p.weights.begin(), p.weights.end());
  return out;
}

Status write(const Package& p, const std::string& path, bool durable) {
  namespace fs = std::filesystem;
  if (p.external_weight == ExternalWeight::none || p.weights.empty()) {
    auto head = head_bytes(p.model, p.notes, p.weights);
    std::span<const std::byte> parts[2] = {head, p.weights};
    return write_file(path, parts, durable);
  }
  fs::path om(path), weights = om.parent_path() / kWeightFolder;
  GE_TRY(auto apart, set_apart(p, om.filename().string()));
  auto head = head_bytes(apart.model, p.notes, {});
  std::vector<FileContent> files;
  for (size_t i = 0; i < apart.contents.size(); ++i)
    files.push_back({(om.parent_path() / apart.model.weight_files[i]->name).string(), {apart.contents[i]}});
  files.push_back({path, {head}});
  std::error_code ignored;  // a folder that cannot be made fails the files in it
  bool made = p.external_weight == ExternalWeight::each && fs::create_directory(weights, ignored);
  Status s = write_files(files, durable);
  if (!s.ok() && made) fs::remove(weights, ignored);
  return s;
}

}  // namespace ge::om
