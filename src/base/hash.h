// Hashes: XXH64-style 64-bit for checksums of sections (fast, not cryptographic) and SHA-256 for
// content keys (FIPS 180-4).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ge {

// xxHash64 of the bytes (the published algorithm).
uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);

class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text.data(), text.size()))); }
  std::string hex();  // 64 characters; ends the computation

 private:
  void block(const uint8_t* p);
  uint32_t state_[8];
  uint64_t length_ = 0;
  uint8_t buffer_[64];
};

}  // namespace ge
