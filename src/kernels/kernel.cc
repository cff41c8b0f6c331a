#include "kernels/kernel.h"

#include <algorithm>
#include <map>

namespace ge::kernels {
namespace {
// Static initialisation order is undefined, so the table is made by its first user.
std::map<std::string_view, Kernel>& table() {
  static std::map<std::string_view, Kernel> t;
  return t;
}
}  // namespace

Register::Register(const Kernel& k) {
  bool fresh = table().emplace(k.name, k).second;
  GE_CHECK(fresh, std::string("kernel registered twice: ") + std::string(k.name));
}

const Kernel* find(std::string_view name) {
  auto it = table().find(name);
  return it == table().end() ? nullptr : &it->second;
}

std::vector<const Kernel*> all() {
  std::vector<const Kernel*> out;
  for (auto& [n, k] : table()) out.push_back(&k);
  return out;
}

}  // namespace ge::kernels
