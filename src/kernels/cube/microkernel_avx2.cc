// AVX2 + FMA microkernels: 6x16, a panel as two registers.
#include "kernels/cube/microkernel.h"
#include "kernels/cube/simd.h"

#if defined(__x86_64__)
GE_TARGET_BEGIN(GE_AVX2)
namespace ge::kernels::cube::avx2 {
#include "kernels/cube/microkernel-inl.h"
#include "kernels/cube/few_rows-inl.h"

static constexpr Tiles kTiles = make_tiles<V256, 2, 6>();
static const Tiles& choose(int64_t) { return kTiles; }

void multiply(const Block& block) {
  if (block.b_form != BForm::panels) return run_few<V256>(block);
  run_block(block, choose);
}

}  // namespace ge::kernels::cube::avx2
GE_TARGET_END
#endif
