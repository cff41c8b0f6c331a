// The instruction set that kernels use: the best the CPU has, or less when GE_ISA says so
// (portable, avx2, avx512). Read once; tests switch it with set_isa().
#pragma once

#include <string_view>

namespace ge::kernels {

// avx2 includes FMA and F16C; avx512 is F+BW+CD+DQ+VL. portable is the baseline of the build
// (SSE2 on x86-64, NEON on AArch64).
enum class Isa { portable = 0, avx2 = 1, avx512 = 2 };

Isa isa();            // what dispatch uses now
Isa best_isa();       // what the CPU has
bool set_isa(Isa i);  // false if the CPU lacks it; for tests, before any run in flight
std::string_view name(Isa i);
bool has_avx512_vnni();
bool has_avx_vnni();  // the 256-bit form
bool has_avx512_bf16();

}  // namespace ge::kernels
