// The elementwise part of the recurrent cells, for each instruction set.
#include <bit>

#include "kernels/cube/recurrent.h"
#include "kernels/isa.h"
#include "kernels/vector/simd_avx2.h"
#include "kernels/vector/simd_avx512.h"
#include "kernels/vector/simd_portable.h"

namespace ge::kernels::cube {
namespace {

namespace on_portable {
using namespace vector::portable;
#include "kernels/cube/recurrent_gates-inl.h"
}  // namespace on_portable

#if defined(__x86_64__)
GE_TARGET_AVX2_BEGIN
namespace on_avx2 {
using namespace vector::avx2;
#include "kernels/cube/recurrent_gates-inl.h"
}  // namespace on_avx2
GE_TARGET_END

GE_TARGET_AVX512_BEGIN
namespace on_avx512 {
using namespace vector::avx512;
#include "kernels/cube/recurrent_gates-inl.h"
}  // namespace on_avx512
GE_TARGET_END

#define GE_STEP(f) (isa() == Isa::avx512 ? on_avx512::f : isa() == Isa::avx2 ? on_avx2::f : on_portable::f)
#else
#define GE_STEP(f) on_portable::f
#endif

}  // namespace

float quantize_state(const float* h, int64_t units, uint8_t* bytes) { return GE_STEP(quantize_state)(h, units, bytes); }
void lstm_step(const CellPlan& p, const CellStep& s) { GE_STEP(lstm_step)(p, s); }
void rnn_step(const CellPlan& p, const CellStep& s) { GE_STEP(rnn_step)(p, s); }
void gru_reset(const CellPlan& p, const CellStep& s) { GE_STEP(gru_reset)(p, s); }
void gru_after_reset(const CellPlan& p, const CellStep& s) { GE_STEP(gru_after_reset)(p, s); }
void gru_step(const CellPlan& p, const CellStep& s) { gru_reset(p, s), gru_after_reset(p, s); }

}  // namespace ge::kernels::cube
