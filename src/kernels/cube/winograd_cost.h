// What a convolution costs as a direct sum and by minimal filtering, in cycles of one core with two 16-wide units of f32.
// Fitted to timings of single layers; what counts are the ratios. The compiler chooses by it, and the kernel again where
// the sizes are known only then.
#pragma once

namespace ge::kernels::cube {

struct ConvCost {
  double c = 0, m = 0;                 // channels in and out
  double images = 1, height = 1, width = 1;   // of the output
  double phases_h = 1, phases_w = 1;   // a dilation makes so many images of one
  bool two_axes = false;               // windows of 3x3, else 1x3
};

// Of the direct sum's cycles: less is within the model's error.
inline constexpr double kLeastGain = 0.08;

double direct_cycles(const ConvCost& c);
double winograd_cycles(const ConvCost& c, int tile);
// What transforming the weights in each run takes.
double filter_cycles(const ConvCost& c, int tile);

}  // namespace ge::kernels::cube
