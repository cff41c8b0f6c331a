#include "tensor/dtype.h"

#include <array>

namespace ge {
namespace {
struct Info {
  std::string_view name;
  int bits;
  char kind;  // f float, s signed, u unsigned, b bool, c complex, t text, n none
};
constexpr std::array<Info, kDTypeCount> kInfo = {{
    {"none", 0, 'n'},   {"f32", 32, 'f'},     {"u8", 8, 'u'},     {"i8", 8, 's'},     {"u16", 16, 'u'},
    {"i16", 16, 's'},   {"i32", 32, 's'},     {"i64", 64, 's'},   {"string", 32, 't'}, {"bool", 8, 'b'},
    {"f16", 16, 'f'},   {"f64", 64, 'f'},     {"u32", 32, 'u'},   {"u64", 64, 'u'},   {"c64", 64, 'c'},
    {"c128", 128, 'c'}, {"bf16", 16, 'f'},    {"f8e4m3fn", 8, 'f'}, {"f8e4m3fnuz", 8, 'f'}, {"f8e5m2", 8, 'f'},
    {"f8e5m2fnuz", 8, 'f'}, {"u4", 4, 'u'},   {"i4", 4, 's'},     {"f4e2m1", 4, 'f'}, {"f8e8m0", 8, 'f'},
    {"u2", 2, 'u'},     {"i2", 2, 's'},
}};
const Info& info(DType t) {
  auto i = static_cast<size_t>(t);
  return kInfo[i < kInfo.size() ? i : 0];
}
}  // namespace

std::string_view name(DType t) { return info(t).name; }
std::optional<DType> dtype_from_name(std::string_view s) {
  for (size_t i = 1; i < kInfo.size(); ++i)
    if (kInfo[i].name == s) return static_cast<DType>(i);
  return std::nullopt;
}
int bits(DType t) { return info(t).bits; }
int64_t size_of(DType t) { return info(t).bits == 0 ? 0 : info(t).bits < 8 ? 1 : info(t).bits / 8; }
bool is_float(DType t) { return info(t).kind == 'f'; }
bool is_integer(DType t) { return info(t).kind == 's' || info(t).kind == 'u'; }
bool is_signed(DType t) { return info(t).kind == 's' || info(t).kind == 'f'; }

}  // namespace ge
