// Resize along one axis as a table: for each output position the input positions that it takes and their
// weights. Coordinates are computed in float, as other runtimes do, so that nearest picks the same pixels.
// Also the parameters of the kernels "ref.Resize" and "move.resize", and their check.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/move/check.h"

namespace ge::kernels::move {

enum class ResizeMode : int64_t { nearest = 0, linear = 1, cubic = 2 };
enum class ResizeCoordinates : int64_t {
  half_pixel = 0, half_pixel_symmetric = 1, pytorch_half_pixel = 2, align_corners = 3, asymmetric = 4,
  tf_crop_and_resize = 5, tf_half_pixel_for_nn = 6,
};
enum class ResizeNearest : int64_t { round_prefer_floor = 0, round_prefer_ceil = 1, floor = 2, ceil = 3 };

// ints:   mode, coordinates, nearest, exclude_outside, antialias
// floats: cubic coefficient a, extrapolation value, then for each axis its scale (0: output size / input
//         size); with tf_crop_and_resize then the roi's start for each axis, and its end for each axis
// Scales and roi that data say are ints instead, after the others: bits of f64, those of the roi of f32.
struct ResizeParameters {
  ResizeMode mode;
  ResizeCoordinates coordinates;
  ResizeNearest nearest;
  bool exclude_outside, antialias;
  float cubic_a, extrapolation;
  std::array<double, kMaxRank> scales{}, roi_start{}, roi_end{};
};
Status check_resize(const Call& c, std::string_view kernel);
ResizeParameters resize_parameters(const Call& c);

struct Taps {
  int64_t out = 0;
  int64_t per = 1;               // taps for each output position
  bool identity = false;         // output position i is input position i
  std::vector<int64_t> index;    // [out][per]
  std::vector<float> weight;     // [out][per]
  std::vector<uint8_t> outside;  // [out], tf_crop_and_resize only: takes the extrapolation value

  int64_t at(int64_t o, int64_t k) const { return index[static_cast<size_t>(o * per + k)]; }
  float weight_at(int64_t o, int64_t k) const { return weight[static_cast<size_t>(o * per + k)]; }
};
Taps resize_taps(const ResizeParameters& p, int axis, int64_t in, int64_t out);

// One output element, in double; any type and strides.
void resize_element(const ResizeParameters& p, const std::vector<Taps>& axes, const View& x, const int64_t* index,
                    DType t, std::byte* to);

}  // namespace ge::kernels::move
