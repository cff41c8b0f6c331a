#include "base/hash.h"

#include <bit>
#include <cstring>

namespace ge {
namespace {

constexpr uint64_t kP1 = 0x9E3779B185EBCA87ull, kP2 = 0xC2B2AE3D27D4EB4Full, kP3 = 0x165667B19E3779F9ull,
                   kP4 = 0x85EBCA77C2B2AE63ull, kP5 = 0x27D4EB2F165667C5ull;

uint64_t load64(const std::byte* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
uint64_t mix(uint64_t acc, uint64_t input) { return std::rotl(acc + input * kP2, 31) * kP1; }
uint64_t merge(uint64_t h, uint64_t v) { return (h ^ mix(0, v)) * kP1 + kP4; }

constexpr uint32_t kSha[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  const std::byte* p = bytes.data();
  size_t n = bytes.size();
  uint64_t h;
  if (n >= 32) {
    uint64_t v[4] = {seed + kP1 + kP2, seed + kP2, seed, seed - kP1};
    for (; n >= 32; n -= 32)
      for (auto& lane : v) lane = mix(lane, load64(p)), p += 8;
    h = std::rotl(v[0], 1) + std::rotl(v[1], 7) + std::rotl(v[2], 12) + std::rotl(v[3], 18);
    for (auto lane : v) h = merge(h, lane);
  } else {
    h = seed + kP5;
  }
  h += bytes.size();
  for (; n >= 8; n -= 8, p += 8) h = std::rotl(h ^ mix(0, load64(p)), 27) * kP1 + kP4;
  if (n >= 4) {
    uint32_t v;
    std::memcpy(&v, p, 4);
    h = std::rotl(h ^ (v * kP1), 23) * kP2 + kP3;
    p += 4, n -= 4;
  }
  for (; n > 0; --n, ++p) h = std::rotl(h ^ (static_cast<uint64_t>(*p) * kP5), 11) * kP1;
  h = (h ^ (h >> 33)) * kP2;
  h = (h ^ (h >> 29)) * kP3;
  return h ^ (h >> 32);
}

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::block(const uint8_t* p) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = uint32_t(p[4 * i]) << 24 | uint32_t(p[4 * i + 1]) << 16 | uint32_t(p[4 * i + 2]) << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  uint32_t s[8];
  std::memcpy(s, state_, sizeof s);
  for (int i = 0; i < 64; ++i) {
    uint32_t t1 = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                  ((s[4] & s[5]) ^ (~s[4] & s[6])) + kSha[i] + w[i];
    uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                  ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    for (int j = 7; j > 0; --j) s[j] = s[j - 1];
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int i = 0; i < 8; ++i) state_[i] += s[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t n = bytes.size(), have = length_ % 64;
  length_ += n;
  if (have) {
    size_t take = std::min(n, 64 - have);
    std::memcpy(buffer_ + have, p, take);
    p += take, n -= take, have += take;
    if (have < 64) return;
    block(buffer_);
  }
  for (; n >= 64; n -= 64, p += 64) block(p);
  if (n) std::memcpy(buffer_, p, n);
}

std::string Sha256::hex() {
  uint64_t bits = length_ * 8;
  const std::byte pad{0x80}, zero{0};
  update(std::span(&pad, 1));
  while (length_ % 64 != 56) update(std::span(&zero, 1));
  std::byte tail[8];
  for (int i = 0; i < 8; ++i) tail[i] = static_cast<std::byte>(bits >> (56 - 8 * i));
  update(tail);
  std::string out;
  for (uint32_t v : state_)
    for (int i = 28; i >= 0; i -= 4) out += "0123456789abcdef"[v >> i & 15];
  return out;
}

}  // namespace ge
