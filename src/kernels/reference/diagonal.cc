// Parameters in ints:
//   ref.EyeLike  k: ones at column = row + k of the matrix out 0; no inputs
//   ref.Trilu    upper, k; in: x, and k (one i64) when it is known only at run time. Keeps the upper
//                (column >= row + k) or lower (column <= row + k) triangle of the last two axes, zero bytes
//                elsewhere
#include <algorithm>
#include <array>

#include "kernels/reference/index.h"

namespace ge::kernels::move {
namespace {

Result<Work> prepare_eye(const Call& c) {
  constexpr std::string_view kName = "ref.EyeLike";
  GE_RETURN_IF_ERROR(check_call(c, kName, 0, 0, 1, 1));
  if (c.out[0].rank != 2 || !is_number(c.out[0].dtype) || c.ints.size() != 1) return bad_call(kName, "makes a matrix of numbers from one parameter");
  return one_chunk(c);
}
Status run_eye(const Call& c, int64_t) {
  const View& y = c.out[0];
  each_index(y, [&](const int64_t* index) {
    store_i64(y.dtype, address(y, index), index[1] - index[0] == c.ints[0]);
    return true;
  });
  return ok();
}

Result<Work> prepare_trilu(const Call& c) {
  constexpr std::string_view kName = "ref.Trilu";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 2, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (x.rank < 2 || !same_dims(x, y) || x.dtype != y.dtype) return bad_call(kName, "wrong types or sizes");
  if (c.ints.size() != 2) return bad_call(kName, "has a wrong number of parameters");
  if (has_input(c, 1) && (c.in[1].dtype != DType::i64 || c.in[1].count() != 1)) return bad_call(kName, "k is not one i64");
  return one_chunk(c);
}
Status run_trilu(const Call& c, int64_t) {
  const View &x = c.in[0], &y = c.out[0];
  bool upper = c.ints[0] != 0;
  int64_t k = has_input(c, 1) ? load_index(c.in[1], 0) : c.ints[1];
  // Beyond any matrix, so that the sum below cannot overflow.
  k = std::clamp<int64_t>(k, -(int64_t{1} << 53), int64_t{1} << 53);
  static constexpr std::array<std::byte, 16> kZero{};
  fill_from(y, [&](const int64_t* index) {
    int64_t row = index[y.rank - 2], column = index[y.rank - 1];
    bool keep = upper ? column >= row + k : column <= row + k;
    return keep ? static_cast<const std::byte*>(address(x, index)) : kZero.data();
  });
  return ok();
}

const Register eye({.name = "ref.EyeLike", .prepare = prepare_eye, .run = run_eye});
const Register trilu({.name = "ref.Trilu", .prepare = prepare_trilu, .run = run_trilu});

}  // namespace
}  // namespace ge::kernels::move
