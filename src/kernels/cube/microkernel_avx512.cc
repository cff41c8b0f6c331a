// AVX-512 microkernels: 6x64, and 8x48, 8x32, 24x16 or 12x16 for what is left of the columns. Cores with two multiply-adds a
// cycle need more than 8 sums to hide their latency.
#include "kernels/cube/microkernel.h"
#include "kernels/cube/simd.h"

#if defined(__x86_64__)
GE_TARGET_BEGIN(GE_AVX512 GE_TILES)
namespace ge::kernels::cube::avx512 {
#include "kernels/cube/microkernel-inl.h"
#include "kernels/cube/few_rows-inl.h"

static constexpr Tiles make_narrow() {
  Tiles t = make_tiles<V512, 1, 12>();
  t.tall[1] = &tile<V512, EvenRows<1>, 1, 1>;
  t.tall[2] = &tile<V512, EvenRows<2>, 1, 1>;
  t.tall[3] = &tile<V512, EvenRows<3>, 1, 1>;
  return t;
}
static constexpr Tiles kTiles[4] = {make_narrow(), make_tiles<V512, 2, 8>(), make_tiles<V512, 3, 8>(),
                                make_tiles<V512, 4, 6>()};

// A last panel alone would be bound by loads: 5 panels are 3 + 2, not 4 + 1.
static const Tiles& choose(int64_t columns) {
  const int64_t panels = (columns + kPanel - 1) / kPanel;
  return kTiles[panels == 5 ? 2 : panels > 4 ? 3 : panels - 1];
}

// Tiles of 8 rows: 3 panels, 4 as 2 + 2.
static const Tiles& choose_high(int64_t columns) {
  const int64_t panels = (columns + kPanel - 1) / kPanel;
  return kTiles[panels == 4 ? 1 : panels > 3 ? 2 : panels - 1];
}

void multiply(const Block& block) {
  if (block.b_form != BForm::panels) return run_few<V512>(block);
  // Few rows against a large B: the time is that of the passes over B.
  const bool fewer_passes = block.m <= 24 && (block.m + 7) / 8 < (block.m + 5) / 6;
  run_block(block, fewer_passes ? choose_high : choose);
}

}  // namespace ge::kernels::cube::avx512
GE_TARGET_END
#endif
