// Element types, numbered as in ONNX's TensorProto.DataType.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ge {

enum class DType : uint8_t {
  none = 0, f32 = 1, u8 = 2, i8 = 3, u16 = 4, i16 = 5, i32 = 6, i64 = 7, string = 8, boolean = 9,
  f16 = 10, f64 = 11, u32 = 12, u64 = 13, c64 = 14, c128 = 15, bf16 = 16, f8e4m3fn = 17, f8e4m3fnuz = 18,
  f8e5m2 = 19, f8e5m2fnuz = 20, u4 = 21, i4 = 22, f4e2m1 = 23, f8e8m0 = 24, u2 = 25, i2 = 26,
};
inline constexpr int kDTypeCount = 27;

std::string_view name(DType t);  // "f32", "i64", "bool", ...
std::optional<DType> dtype_from_name(std::string_view s);
// Bits of one element: 32 for f32, 4 for i4, 32 for string (runtime/texts.h), 0 for none. Types under 8 bits are packed in
// ONNX files; in memory each element of GE's buffers takes a whole byte.
int bits(DType t);
// Bytes of one element in GE's buffers: at least 1.
int64_t size_of(DType t);
bool is_float(DType t);     // any floating type
bool is_integer(DType t);   // any signed or unsigned integer, not bool
bool is_signed(DType t);

}  // namespace ge
