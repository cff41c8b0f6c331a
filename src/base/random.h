// SplitMix64 (Steele, Lea, Flood 2014): seeded numbers that are the same on every machine. Not for secrets.
#pragma once

#include <cmath>
#include <cstdint>

namespace ge {

struct SplitMix64 {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // In [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  // Standard normal (Box and Muller), two draws.
  double normal() {
    double r = std::sqrt(-2 * std::log(1 - uniform()));
    return r * std::cos(2 * M_PI * uniform());
  }
};

}  // namespace ge
