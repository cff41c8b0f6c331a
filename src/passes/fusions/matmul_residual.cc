//   Add(MatMul(a, b), r)  becomes  ge.MatMul(a, b, bias, r)     r of the output's shape
#include "passes/fusions/residual.h"

namespace ge::passes {
namespace {
const RegisterFusion r(Fusion{.name = "matmul_residual",
                              .doc = "a residual added to a product's sums in registers",
                              .order = 2,
                              .patterns = {R"(%t = MatMul|Gemm|ge.MatMul(%x, %w, ...)
                                              %y = Add(%t, %r))"},
                              .require = {group_takes_residual},
                              .build = build_residual});
}  // namespace
}  // namespace ge::passes
