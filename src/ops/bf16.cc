#include "ops/bf16.h"

#include "kernels/cube/bf16.h"

namespace ge::ops {

bool computes_bf16(const Node& n) { return ir::attr_string(n, kCompute, "") == "bf16"; }

Tensor pair_panels(const Tensor& panels, int64_t run) {
  std::vector<int64_t> dims = panels.dims();
  const int64_t k = dims[dims.size() - 2];
  int64_t count = 1;
  for (size_t a = 0; a + 2 < dims.size(); ++a) count *= dims[a];
  dims[dims.size() - 2] = kernels::cube::pair_rows(k, run);
  dims.back() = 32;
  Tensor out(DType::bf16, dims);
  kernels::cube::pair_panels(panels.as<float>(), count, k, run, out.as<uint16_t>());
  return out;
}

}  // namespace ge::ops
