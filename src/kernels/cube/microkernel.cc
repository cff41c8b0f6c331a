// Dispatch, and the microkernels of the build's baseline: 6x8 with 16 registers (SSE2), 6x16 with 32 (NEON).
#include "kernels/cube/microkernel.h"

#include "kernels/cube/simd.h"
#include "kernels/isa.h"

namespace ge::kernels::cube {
namespace portable {
#include "kernels/cube/microkernel-inl.h"
#include "kernels/cube/few_rows-inl.h"

static constexpr Tiles kTiles = make_tiles<V128, V128::kRegisters == 32 ? 4 : 2, 6>();
static const Tiles& choose(int64_t) { return kTiles; }

void multiply(const Block& block) {
  if (block.b_form != BForm::panels) return run_few<V128>(block);
  run_block(block, choose);
}

}  // namespace portable

void multiply(const Block& block) {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::avx512: return avx512::multiply(block);
    case Isa::avx2: return avx2::multiply(block);
    case Isa::portable: break;
  }
#endif
  portable::multiply(block);
}

int64_t tile_rows(int64_t n) {
  const int64_t panels = (n + kPanel - 1) / kPanel;
  if (isa() != Isa::avx512) return 6;
  return panels >= 4 ? 6 : panels == 1 ? 12 : 8;
}

}  // namespace ge::kernels::cube
