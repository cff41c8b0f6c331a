// Weights of signal processing, in double, in any number type.
// ref.Window: out [n]. ints [kind: 0 Hann, 1 Hamming, 2 Blackman; periodic]. The one element of a symmetric window
//   of 1 is 1.
// ref.MelWeightMatrix: in [mel bins, transform length, sample rate, lower edge, upper edge] (scalars), out
//   [length / 2 + 1, bins]: triangles between points that lie evenly on the mel scale.
#include <numbers>

#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kWindow = "ref.Window", kMel = "ref.MelWeightMatrix";

Result<Work> prepare_window(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kWindow, 0, 1, 2));
  if (!plain_numeric(c.out[0].dtype) || c.out[0].rank != 1 || c.ints[0] < 0 || c.ints[0] > 2) return bad(kWindow, "wrong output or kind");
  return Work{};
}
Status run_window(const Call& c, int64_t) {
  const View& y = c.out[0];
  // Sums of cosines of 0, 1 and 2 turns.
  constexpr double kWeights[3][3] = {{0.5, -0.5, 0}, {25.0 / 46, -21.0 / 46, 0}, {0.42, -0.5, 0.08}};
  const double* w = kWeights[c.ints[0]];
  int64_t n = y.dims[0], period = c.ints[1] ? n : n - 1;
  for (int64_t i = 0; i < n; ++i) {
    double turn = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    store(y, i * y.strides[0], period ? w[0] + w[1] * std::cos(turn) + w[2] * std::cos(2 * turn) : 1);
  }
  return ok();
}

Result<Work> prepare_mel(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kMel, 5, 1));
  for (size_t i = 0; i < 5; ++i)
    if (!plain_numeric(c.in[i].dtype) || c.in[i].count() != 1) return bad(kMel, format("input {} is not one number", i));
  if (!plain_numeric(c.out[0].dtype) || c.out[0].rank != 2) return bad(kMel, "wrong output");
  return Work{};
}
Status run_mel(const Call& c, int64_t) {
  const View& y = c.out[0];
  int64_t rows = y.dims[0], bins = y.dims[1];
  double length = load(c.in[1], 0), rate = load(c.in[2], 0);
  if (load(c.in[0], 0) != static_cast<double>(bins) || std::floor(length / 2) + 1 != static_cast<double>(rows))
    return error(code::kRunFailed, "MelWeightMatrix: its sizes are not those of its output");
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double low = mel(load(c.in[3], 0)), step = (mel(load(c.in[4], 0)) - low) / static_cast<double>(bins + 2);
  // Row of point i on the mel scale; points beyond the spectrum stay outside it.
  auto point = [&](int64_t i) {
    double hertz = 700 * (std::pow(10, (low + step * static_cast<double>(i)) / 2595) - 1);
    return clamp_int(std::floor((length + 1) * hertz / rate), -1, rows);
  };
  for (int64_t b = 0; b < bins; ++b) {
    int64_t left = point(b), centre = point(b + 1), right = point(b + 2);
    for (int64_t k = 0; k < rows; ++k) {
      double v = 0;
      if (k >= centre && k < right) v = static_cast<double>(right - k) / static_cast<double>(right - centre);
      else if (k == centre) v = 1;
      else if (k >= left && k < centre) v = static_cast<double>(k - left) / static_cast<double>(centre - left);
      store(y, place(y, k, b), v);
    }
  }
  return ok();
}

const Register r1({.name = kWindow, .prepare = prepare_window, .run = run_window});
const Register r2({.name = kMel, .prepare = prepare_mel, .run = run_mel});

}  // namespace
}  // namespace ge::kernels::reference
