#include "om/external.h"

#include <filesystem>
#include <map>

#include "base/hash.h"
#include "base/text.h"

namespace ge::om {
namespace {

std::string combined_name(std::string om_name) {
  if (om_name.ends_with(".om")) om_name.resize(om_name.size() - 3);
  return om_name + "_weight_combined";
}

std::string name_by_content(std::span<const std::byte> bytes) {
  Sha256 sha;
  sha.update(bytes);
  return format("{}/weight_{}", kWeightFolder, sha.hex());
}

void add_file(Apart& a, std::string name, std::span<const std::byte> bytes) {
  auto f = std::make_unique<WeightFileT>();
  f->name = std::move(name);
  f->bytes = bytes.size();
  f->checksum = hash64(bytes);
  a.model.weight_files.push_back(std::move(f));
  a.contents.push_back(bytes);
}

// Nothing may lead out of the .om file's folder.
bool is_plain(std::string_view name) {
  std::string folder = format("{}/", kWeightFolder);
  if (name.starts_with(folder)) name.remove_prefix(folder.size());
  return !name.empty() && name != "." && name != ".." && name.find('/') == name.npos && name.find('\0') == name.npos;
}

Error outside(std::string_view code, std::string message, std::string cause) {
  return error(code, std::move(message), std::move(cause), "keep the weight files beside the .om file as the compiler wrote them, or compile the model again");
}

}  // namespace

Result<Apart> set_apart(const Package& p, const std::string& om_name) {
  Apart a;
  a.model = p.model;
  a.model.weight_files.clear();
  if (p.external_weight == ExternalWeight::combined) {
    add_file(a, combined_name(om_name), p.weights);
    return a;
  }
  std::map<std::string, uint64_t> offset_of;
  uint64_t end = 0;
  for (auto& program : a.model.programs)
    for (auto& b : program->buffers) {
      if (b->kind != BufferKind::weight) continue;
      if (b->weight_offset > p.weights.size() || b->weight_bytes > p.weights.size() - b->weight_offset)
        return error(code::kParse, "A weight lies outside of the weights.", "the .om file is damaged", "compile the model again");
      auto bytes = p.weights.subspan(b->weight_offset, b->weight_bytes);
      b->weight_offset = 0;
      if (bytes.empty()) continue;
      auto [it, fresh] = offset_of.emplace(name_by_content(bytes), end);
      b->weight_offset = it->second;
      if (!fresh) continue;
      add_file(a, it->first, bytes);
      end += (bytes.size() + kWeightFileAlign - 1) / kWeightFileAlign * kWeightFileAlign;
    }
  return a;
}

Status open_weight_files(Package& p, const std::optional<std::string>& folder, bool check_sums) {
  auto& files = p.model.weight_files;
  std::vector<FilePart> parts;
  for (auto& f : files) {
    if (!f || !is_plain(f->name))
      return error(code::kParse, format("The .om file's weights lie in '{}'.", f ? f->name : ""), "weight files can only lie beside the .om file: the file is damaged or hostile", "compile the model again");
    if (folder) parts.push_back({(std::filesystem::path(*folder) / f->name).string(), f->bytes});
  }
  if (!folder)
    return error(code::kInvalidValue, format("The weights of this .om file lie outside of it: {}{}.", files[0]->name, files.size() > 1 ? format(" and {} more", files.size() - 1) : ""),
                 "bytes in memory have no folder to look into", "load the model from its path");
  auto mapped = MappedFile::open_row(parts, kWeightFileAlign);
  if (!mapped.ok()) {
    Error e = std::move(mapped).take_error();
    return outside(e.code, e.message, "the model's weights lie in that file, outside of the .om file");
  }
  p.weights = (*mapped)->bytes();
  p.keep = *mapped;
  p.external_weight = files[0]->name.find('/') == std::string::npos ? ExternalWeight::combined : ExternalWeight::each;
  size_t at = 0;
  for (size_t i = 0; i < parts.size() && check_sums; ++i) {
    if (hash64(p.weights.subspan(at, parts[i].size)) != files[i]->checksum)
      return outside(code::kParse, format("File {} differs from its checksum in the .om file.", parts[i].path), "it was changed after it was made, or belongs to another model");
    at += (parts[i].size + kWeightFileAlign - 1) / kWeightFileAlign * kWeightFileAlign;
  }
  return ok();
}

}  // namespace ge::om
