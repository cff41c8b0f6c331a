#include "kernels/cube/winograd_cost.h"

#include <algorithm>
#include <cmath>

namespace ge::kernels::cube {
namespace {

// Share of the peak that the microkernel reaches with so many columns.
double efficiency(double columns) { return columns >= 48 ? 0.95 : columns >= 32 ? 0.85 : columns >= 16 ? 0.65 : 0.65 * columns / 16; }

}  // namespace

double direct_cycles(const ConvCost& c) {
  double taps = c.two_axes ? 9 : 3;
  return c.images * c.height * c.width * taps * c.c * c.m / 32 / efficiency(c.m) + 2000;
}

double winograd_cycles(const ConvCost& c, int tile) {
  double edge = tile + 2, rows = c.two_axes ? edge : 1;
  double tiles = c.images * std::ceil(c.width / c.phases_w / tile) * c.phases_w *
                 (c.two_axes ? std::ceil(c.height / c.phases_h / tile) * c.phases_h : c.height);
  double blocks = std::ceil(tiles / 30), each = tiles / blocks;
  double products = std::ceil(each / 6) * 6 * blocks * edge * rows * c.c * c.m / 32 / (efficiency(std::min(c.m, 64.0)) * 0.9);
  double weights = blocks * edge * rows * c.c * c.m * 4 / 12;   // a core reads some 12 bytes a cycle from L3
  double in = tiles * std::ceil(c.c / 16) * edge * rows * 3.2, out = tiles * std::ceil(c.m / 16) * edge * rows * 2.6;
  return std::max(products, weights) + in + out + blocks * edge * rows * std::ceil(c.m / 64) * 60 + 3000;
}

double filter_cycles(const ConvCost& c, int tile) {
  double each = c.two_axes ? (tile == 4 ? 270 : 125) : (tile == 4 ? 50 : 35);
  return std::ceil(c.m / 16) * c.c * each;
}

}  // namespace ge::kernels::cube
