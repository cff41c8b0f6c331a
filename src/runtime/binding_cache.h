// The Bindings of a Model's segments and sub-programs, by program, segment and sizes. Bounded: the least
// recently used one goes first.
#pragma once

#include <list>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/binding.h"

namespace ge::runtime {

class BindingCache {
 public:
  BindingCache(const om::Package& package, int threads);
  Result<std::shared_ptr<const Binding>> get(int program, int segment, const std::vector<int64_t>& symbols);

 private:
  using Key = std::tuple<int, int, std::vector<int64_t>>;
  using List = std::list<std::pair<Key, std::shared_ptr<const Binding>>>;
  const om::Package& package_;
  int threads_;
  size_t most_;
  std::mutex mutex_;
  List recent_;
  std::map<Key, List::iterator> index_;
};

}  // namespace ge::runtime
