//   Add(Conv(x, w, b), r)  becomes  ge.Conv(x, w, b, r)     r of the output's shape
#include "passes/fusions/residual.h"

namespace ge::passes {
namespace {
const RegisterFusion r(Fusion{.name = "conv_residual",
                              .doc = "a residual added to a convolution's sums in registers",
                              .order = 1,
                              .patterns = {R"(%t = Conv|ge.Conv|ConvTranspose|ge.ConvTranspose(%x, %w, ...)
                                              %y = Add(%t, %r))"},
                              .require = {group_takes_residual},
                              .build = build_residual});
}  // namespace
}  // namespace ge::passes
