// Compiles the file named by GE_TARGET_BODY once for each instruction set: in the namespaces
// portable, avx2 and avx512 of ge::kernels::cube, where V is the vector type of simd.h. No pragma
// once: a source file defines GE_TARGET_BODY, includes this after its other headers, and calls
// through GE_ON_ISA. Bodies include nothing: whatever they define may use the wider instructions,
// so it must not carry a name that the linker could merge with one compiled for a lesser CPU.
#include "kernels/cube/simd.h"
#include "kernels/isa.h"

namespace ge::kernels::cube::portable {
using V = V128;
#include GE_TARGET_BODY
}  // namespace ge::kernels::cube::portable

#if defined(__x86_64__)

GE_TARGET_BEGIN(GE_AVX2)
namespace ge::kernels::cube::avx2 {
using V = V256;
#include GE_TARGET_BODY
}  // namespace ge::kernels::cube::avx2
GE_TARGET_END

GE_TARGET_BEGIN(GE_AVX512)
namespace ge::kernels::cube::avx512 {
using V = V512;
#include GE_TARGET_BODY
}  // namespace ge::kernels::cube::avx512
GE_TARGET_END

#define GE_ON_ISA(f)                                                                   \
  (::ge::kernels::isa() == ::ge::kernels::Isa::avx512 ? ::ge::kernels::cube::avx512::f \
   : ::ge::kernels::isa() == ::ge::kernels::Isa::avx2 ? ::ge::kernels::cube::avx2::f   \
                                                      : ::ge::kernels::cube::portable::f)
#else
#define GE_ON_ISA(f) (::ge::kernels::cube::portable::f)
#endif
