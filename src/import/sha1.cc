#include "import/sha1.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/text.h"

namespace ge::onnx {
namespace {

void block(uint32_t (&h)[5], const uint8_t* p) {
  uint32_t w[80];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(p[4 * i]) << 24 | uint32_t(p[4 * i + 1]) << 16 | uint32_t(p[4 * i + 2]) << 8 |
           p[4 * i + 3];
  for (int i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
  uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
  for (int i = 0; i < 80; ++i) {
    uint32_t f = i < 20   ? (b & c) | (~b & d)
                 : i < 40 ? b ^ c ^ d
                 : i < 60 ? (b & c) | (b & d) | (c & d)
                          : b ^ c ^ d;
    uint32_t k = i < 20 ? 0x5a827999u : i < 40 ? 0x6ed9eba1u : i < 60 ? 0x8f1bbcdcu : 0xca62c1d6u;
    uint32_t t = std::rotl(a, 5) + f + e + k + w[i];
    e = d, d = c, c = std::rotl(b, 30), b = a, a = t;
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e;
}

}  // namespace

std::string sha1_hex(std::span<const std::byte> bytes) {
  uint32_t h[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
  auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 64; left -= 64, p += 64) block(h, p);
  uint8_t tail[128] = {};
  if (left) std::memcpy(tail, p, left);
  tail[left] = 0x80;
  size_t end = left < 56 ? 64 : 128;
  uint64_t bit_count = uint64_t(bytes.size()) * 8;
  for (size_t i = 0; i < 8; ++i) tail[end - 1 - i] = static_cast<uint8_t>(bit_count >> (8 * i));
  for (size_t i = 0; i < end; i += 64) block(h, tail + i);
  std::string s;
  for (uint32_t word : h) s += format("{:08x}", word);
  return s;
}

}  // namespace ge::onnx
