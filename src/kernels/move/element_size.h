// Moves of one element whose size is known only at run time, as a switch over types of that size.
#pragma once

#include <cstdint>
#include <cstring>

namespace ge::kernels::move {

struct Bytes16 {
  uint64_t low, high;
};

// Calls f with a value of an unsigned type of `bytes` bytes (1, 2, 4, 8 or 16).
template <class F>
decltype(auto) with_element(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(uint8_t{});
    case 2: return f(uint16_t{});
    case 4: return f(uint32_t{});
    case 8: return f(uint64_t{});
    default: return f(Bytes16{});
  }
}

// Unaligned: views may start anywhere.
template <class T>
inline T load(const std::byte* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
inline void store(std::byte* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

}  // namespace ge::kernels::move
