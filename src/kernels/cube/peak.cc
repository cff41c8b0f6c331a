#include "kernels/cube/peak.h"

#define GE_TARGET_BODY "kernels/cube/peak-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {
volatile float g_sink;
}  // namespace

int64_t run_multiply_adds(int64_t steps) {
  g_sink = GE_ON_ISA(multiply_adds)(steps);
  return GE_ON_ISA(operations)(steps);
}

float read_floats(const float* data, int64_t n) { return GE_ON_ISA(sum_floats)(data, n); }

}  // namespace ge::kernels::cube
