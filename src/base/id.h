// Id<Tag>: an index into a dense vector that cannot be mixed up with another kind of index.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace ge {

template <class Tag>
struct Id {
  int32_t v = -1;
  auto operator<=>(const Id&) const = default;
  explicit operator bool() const { return v >= 0; }
};

}  // namespace ge

template <class Tag>
struct std::hash<ge::Id<Tag>> {
  size_t operator()(ge::Id<Tag> id) const noexcept { return std::hash<int32_t>()(id.v); }
};
