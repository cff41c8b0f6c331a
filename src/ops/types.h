// Types: a set of element types, which an operator's data input may have (OpDef::types).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "tensor/dtype.h"

namespace ge::ops {

class Types {
 public:
  constexpr Types(std::initializer_list<DType> types) {
    for (DType t : types) bits_ |= 1u << static_cast<unsigned>(t);
  }
  constexpr bool has(DType t) const { return bits_ >> static_cast<unsigned>(t) & 1; }
  constexpr bool has(Types o) const { return (bits_ & o.bits_) == o.bits_; }
  constexpr bool empty() const { return !bits_; }
  constexpr Types operator|(Types o) const { return Types(bits_ | o.bits_); }
  constexpr Types operator-(Types o) const { return Types(bits_ & ~o.bits_); }

 private:
  constexpr explicit Types(uint32_t bits) : bits_(bits) {}
  uint32_t bits_ = 0;
};

namespace types {
inline constexpr Types floats{DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr Types integers{DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr Types numbers = floats | integers;
inline constexpr Types float8{DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz};
inline constexpr Types complex{DType::c64, DType::c128};
inline constexpr Types text{DType::string};
inline constexpr Types boolean{DType::boolean};
// What QuantizeLinear makes.
inline constexpr Types quantised = float8 | Types{DType::u8, DType::i8, DType::u16, DType::i16, DType::u4, DType::i4, DType::u2, DType::i2, DType::f4e2m1};
inline constexpr Types indices{DType::i32, DType::i64};
inline constexpr Types all = numbers | quantised | complex | text | boolean | Types{DType::f8e8m0};
}  // namespace types

// "float", "number bool", "all but complex": the names are those of docs/operators.md.
std::string text(Types t);

}  // namespace ge::ops
