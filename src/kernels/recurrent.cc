#include "kernels/recurrent.h"

#include <cmath>

#include "base/text.h"

namespace ge::kernels {

Result<RecurrentParams> read_recurrent(std::span<const int64_t> ints, std::span<const double> floats,
                                       std::string_view kernel) {
  auto bad = [&](std::string why) { return error(code::kBadOp, format("{}: {}", kernel, why)); };
  if (ints.size() < 4) return bad("too few integers");
  RecurrentParams p;
  if (ints[0] < 0 || ints[0] > 2) return bad(format("no cell {}", ints[0]));
  p.cell = static_cast<Cell>(ints[0]);
  p.input_forget = p.cell == Cell::lstm && ints[1] != 0;
  p.linear_before_reset = p.cell == Cell::gru && ints[1] != 0;
  if (ints[2] != 1 && ints[2] != 2) return bad(format("{} directions", ints[2]));
  p.directions = ints[2];
  const auto directions = static_cast<size_t>(p.directions);
  if (ints.size() != 4 + directions * kActivations || floats.size() != 1 + directions * kActivations * 2)
    return bad("wrong number of parameters");
  p.clip = static_cast<float>(floats[0]);
  if (!(p.clip >= 0)) return bad("clip must not be negative");
  for (size_t d = 0; d < directions; ++d) {
    p.reverse[d] = (ints[3] >> d & 1) != 0;
    for (size_t i = 0; i < kActivations; ++i) {
      const size_t at = d * kActivations + i;
      if (ints[4 + at] < 0 || ints[4 + at] >= kActivationCount) return bad(format("no activation {}", ints[4 + at]));
      p.act[d][i] = {static_cast<Activation>(ints[4 + at]), static_cast<float>(floats[1 + 2 * at]),
                     static_cast<float>(floats[2 + 2 * at])};
    }
  }
  return p;
}

}  // namespace ge::kernels
