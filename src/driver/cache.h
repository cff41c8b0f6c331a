// The compile cache: finished .om files by the content of model and options. Safe for many processes: files
// are written aside and renamed, a damaged one is compiled anew (so none is forced to the disk). The folder is bounded; the files that were
// used longest ago go first.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "om/program.h"
#include "ir/graph.h"

namespace ge {

// The folder that options and environment give: `given`, GE_CACHE_DIR, XDG_CACHE_HOME/ge, HOME/.cache/ge.
std::string cache_folder(const std::string& given);
// Of the model's hash, the constants of its imported graph that do not lie in its bytes, the options as text, and
// the version.
std::string cache_key(const ir::Graph& g, std::span<const std::byte> model, const std::string& model_hash, const std::string& options);
std::optional<om::Package> cache_find(const std::string& folder, const std::string& key);
Status cache_put(const std::string& folder, const std::string& key, const om::Package& p);

struct CacheEntry {
  std::string key;
  int64_t bytes = 0;
  int64_t last_used = 0;   // seconds since 1970
};
std::vector<CacheEntry> cache_list(const std::string& folder);  // most recently used first
// Removes entries, those used longest ago first, until at most max_bytes are left. Returns how many went.
int cache_prune(const std::string& folder, int64_t max_bytes);
// GE_CACHE_SIZE in MiB, else 2048.
int64_t cache_limit();

}  // namespace ge
