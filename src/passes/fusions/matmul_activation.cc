//   MatMul|Gemm -> Relu|Clip|LeakyRelu  becomes  ge.MatMul {act}
#include "passes/fusions/activation.h"

namespace ge::passes {
namespace {
const RegisterFusion r(Fusion{.name = "matmul_activation",
                              .doc = "an activation applied to a product's sums in registers",
                              .order = 1,
                              .patterns = {R"(%t = MatMul|Gemm|ge.MatMul(%x, %w, ...)
                                              %y = Relu|Clip|LeakyRelu(%t, ...))"},
                              .require = {group_takes_activation},
                              .build = build_activation});
}  // namespace
}  // namespace ge::passes
