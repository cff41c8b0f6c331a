//   Conv|ConvTranspose -> Relu|Clip|LeakyRelu  becomes  ge.Conv|ge.ConvTranspose {act}
#include "passes/fusions/activation.h"

namespace ge::passes {
namespace {
const RegisterFusion r(Fusion{.name = "conv_activation",
                              .doc = "an activation applied to a convolution's sums in registers",
                              .order = 1,
                              .patterns = {R"(%t = Conv|ge.Conv|ConvTranspose|ge.ConvTranspose(%x, %w, ...)
                                              %y = Relu|Clip|LeakyRelu(%t, ...))"},
                              .require = {group_takes_activation},
                              .build = build_activation});
}  // namespace
}  // namespace ge::passes
