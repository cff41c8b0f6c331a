// Elements of any plain type as double or 64-bit integers, one at a time or a strided run at a time, with
// the rules of ONNX's Cast. What ONNX leaves undefined is defined here: a float outside i32 (i64 for 64-bit
// and u32 targets) or NaN becomes the smallest i32 (i64), as x86 converts; narrower integers take the low
// bits of that. Complex types are not numbers here.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/dtype.h"
#include "tensor/float8.h"

namespace ge::kernels::move {

bool is_number(DType t);  // convertible by the functions below: all but string, complex and none

struct CastMode {
  bool saturate = true;      // float8 targets
  Round round = Round::up;   // f8e8m0 targets
};

bool is_zero(DType t, const std::byte* p);   // of any type; a string's number 0 is ""
double load_f64(DType t, const std::byte* p);
int64_t load_i64(DType t, const std::byte* p);  // u64 as its bits; floats truncated
void store_f64(DType t, std::byte* p, double v, CastMode mode = {});
void store_i64(DType t, std::byte* p, int64_t v, CastMode mode = {});  // for u64 targets: the bits

// Runs of n elements; steps in bytes. Floats load as double, integers and bool as i64 (u64: its bits).
void load_run(DType t, const std::byte* p, int64_t step, int64_t n, double* to);
void load_run(DType t, const std::byte* p, int64_t step, int64_t n, int64_t* to);
void store_run(DType t, std::byte* p, int64_t step, int64_t n, const double* from, CastMode mode);
// from_unsigned: the integers are the bits of u64.
void store_run(DType t, std::byte* p, int64_t step, int64_t n, const int64_t* from, bool from_unsigned, CastMode mode);

// A float to an integer type; defined for every value.
template <class To, class From>
inline __attribute__((always_inline)) To float_to_int(From x) {
  constexpr bool kWide = sizeof(To) == 8 || std::is_same_v<To, uint32_t>;
  using Wide = std::conditional_t<kWide, int64_t, int32_t>;
  constexpr From kLimit = kWide ? From(9223372036854775808.0) : From(2147483648.0);
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (x >= kLimit && x < 2 * kLimit)
      return static_cast<uint64_t>(static_cast<int64_t>(x - kLimit)) ^ (uint64_t{1} << 63);
  }
  bool fits;
  if constexpr (!kWide && sizeof(From) == 8) fits = x > -kLimit - 1 && x < kLimit;
  else fits = x >= -kLimit && x < kLimit;
  Wide w = static_cast<Wide>(fits ? x : From(0));
  return static_cast<To>(fits ? w : std::numeric_limits<Wide>::min());
}

// double to float with the last bit sticky, so that rounding it again to 16 bits is right.
float f64_to_f32_odd(double d);

}  // namespace ge::kernels::move
