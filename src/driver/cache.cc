#include "driver/cache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/hash.h"
#include "base/text.h"
#include "om/reader.h"
#include "om/writer.h"
#include "tensor/pages.h"

namespace ge {
namespace fs = std::filesystem;

namespace {

// Files of the cache bear a SHA-256. Others may lie in the folder, and are none of its business.
bool is_key(std::string_view stem) {
  return stem.size() == 64 && std::all_of(stem.begin(), stem.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// What processes left that were ended while they wrote.
void remove_leftovers(const std::string& folder) {
  std::error_code e;
  for (auto& f : fs::directory_iterator(folder, e)) {
    std::error_code one;
    std::string name = f.path().filename().string();
    bool ours = name.size() > 64 && is_key(std::string_view(name).substr(0, 64)) && name.ends_with(".tmp");
    if (ours && fs::file_time_type::clock::now() - f.last_write_time(one) > std::chrono::hours(1) && !one) fs::remove(f.path(), one);
  }
}

}  // namespace

std::string cache_folder(const std::string& given) {
  if (!given.empty()) return given;
  if (const char* d = std::getenv("GE_CACHE_DIR"); d && *d) return d;
  if (const char* d = std::getenv("XDG_CACHE_HOME"); d && *d) return std::string(d) + "/ge";
  const char* home = std::getenv("HOME");
  return std::string(home && *home ? home : "/tmp") + "/.cache/ge";
}

std::string cache_key(const ir::Graph& g, std::span<const std::byte> model, const std::string& model_hash, const std::string& options) {
  Sha256 sha;
  sha.update(format("ge {} {} {}\n{}\n", GE_VERSION, om::kFormatVersion, model_hash, options));
  // External data: the model's bytes do not hold them. Large weights that lie in those bytes are hashed with them.
  auto inside = [&](std::span<const std::byte> raw) {
    std::less<const std::byte*> before;
    return !raw.empty() && !model.empty() && !before(raw.data(), model.data()) && before(raw.data(), model.data() + model.size());
  };
  for (size_t i = 0; i < g.value_capacity(); ++i) {
    auto& v = g.value(ir::ValueId{static_cast<int32_t>(i)});
    if (!v.constant) continue;
    if (v.constant->dtype() == DType::string)
      for (auto& s : v.constant->strings()) sha.update(format("{} {}", s.size(), s));
    else if (!inside(v.constant->raw()))
      sha.update(format("{:016x} {} ", content_hash(*v.constant), v.constant->bytes()));
  }
  return sha.hex();
}

std::optional<om::Package> cache_find(const std::string& folder, const std::string& key) {
  std::string path = folder + "/" + key + ".om";
  auto file = MappedFile::open(path);
  if (!file.ok()) return std::nullopt;
  auto p = om::read(*file, true);
  std::error_code e;
  if (!p.ok()) {
    fs::remove(path, e);
    return std::nullopt;
  }
  fs::last_write_time(path, fs::file_time_type::clock::now(), e);
  return *std::move(p);
}

Status cache_put(const std::string& folder, const std::string& key, const om::Package& p) {
  std::error_code e;
  fs::create_directories(folder, e);
  if (e) return error(code::kWrite, format("The cache folder {} cannot be made: {}.", folder, e.message()));
  GE_RETURN_IF_ERROR(om::write(p, folder + "/" + key + ".om", false));
  cache_prune(folder, cache_limit());
  return ok();
}

std::vector<CacheEntry> cache_list(const std::string& folder) {
  std::vector<CacheEntry> out;
  std::error_code e;
  for (auto& f : fs::directory_iterator(folder, e)) {
    if (f.path().extension() != ".om" || !is_key(f.path().stem().string())) continue;
    std::error_code one;
    auto bytes = static_cast<int64_t>(f.file_size(one));
    auto used = f.last_write_time(one);
    if (one) continue;  // another process removed it
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::file_clock::to_sys(used).time_since_epoch()).count();
    out.push_back({f.path().stem().string(), bytes, seconds});
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return std::pair(-a.last_used, a.key) < std::pair(-b.last_used, b.key); });
  return out;
}

int cache_prune(const std::string& folder, int64_t max_bytes) {
  remove_leftovers(folder);
  int removed = 0;
  int64_t total = 0;
  for (auto& entry : cache_list(folder)) {
    total += entry.bytes;
    if (total <= max_bytes) continue;
    std::error_code e;
    removed += fs::remove(folder + "/" + entry.key + ".om", e);
  }
  return removed;
}

int64_t cache_limit() {
  const char* v = std::getenv("GE_CACHE_SIZE");
  int64_t mib = v ? std::atoll(v) : 2048;
  return std::max<int64_t>(mib, 0) << 20;
}

}  // namespace ge
