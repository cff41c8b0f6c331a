#include "runtime/binding_cache.h"

namespace ge::runtime {

BindingCache::BindingCache(const om::Package& package, int threads) : package_(package), threads_(threads) {
  size_t segments = 0;
  for (auto& p : package.model.programs) segments += p->segments.size();
  most_ = std::min<size_t>(64 * std::max<size_t>(segments, 1), 4096);
}

Result<std::shared_ptr<const Binding>> BindingCache::get(int program, int segment, const std::vector<int64_t>& symbols) {
  Key key(program, segment, symbols);
  {
    std::lock_guard lock(mutex_);
    auto it = index_.find(key);
    if (it != index_.end()) {
      recent_.splice(recent_.begin(), recent_, it->second);
      return recent_.front().second;
    }
  }
  BindOptions options;
  options.threads = threads_;
  GE_TRY(auto made, Binding::make(package_, *package_.model.programs[static_cast<size_t>(program)], symbols, options, segment));
  std::lock_guard lock(mutex_);
  auto it = index_.find(key);
  if (it != index_.end()) return it->second->second;   // another thread was faster
  recent_.emplace_front(key, made);
  index_.emplace(std::move(key), recent_.begin());
  if (recent_.size() > most_) {
    index_.erase(recent_.back().first);
    recent_.pop_back();
  }
  return made;
}

}  // namespace ge::runtime
