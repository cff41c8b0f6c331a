// Sizes that data decide, for the runtime to read between segments. out 0: i64, dense, one axis.
//   host.read           ints [sizes]; in: n numbers, floats cut to whole ones. sizes 1: the numbers. 0: 2n numbers, first
//                       those above 0 (else 0), then the negated ones below 0 (else 0).
//   host.count_nonzero  ints [most]: of the first `most` elements in flat order how many are not 0
//   host.range_count    in: start, limit, delta (one element each, one type): the elements of Range
#include <algorithm>
#include <cmath>

#include "kernels/reference/index.h"

namespace ge::kernels::move {
namespace {

Status check_out(const Call& c, std::string_view kernel, int64_t n) {
  const View& y = c.out[0];
  if (y.dtype != DType::i64 || y.rank != 1 || y.dims[0] != n || !y.dense()) return bad_call(kernel, format("{} is no list of {} sizes", dims_text(y), n));
  return ok();
}

bool is_whole(DType t) { return (is_integer(t) || is_float(t) || t == DType::boolean) && bits(t) >= 8; }

Result<Work> prepare_read(const Call& c) {
  constexpr std::string_view kName = "host.read";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  if (c.ints.size() != 1 || !is_whole(c.in[0].dtype)) return bad_call(kName, "reads no integers");
  GE_RETURN_IF_ERROR(check_out(c, kName, c.in[0].count() * (c.ints[0] ? 1 : 2)));
  return Work{};
}
Status run_read(const Call& c, int64_t) {
  const View& x = c.in[0];
  int64_t n = x.count(), at = 0, *y = c.out[0].as<int64_t>();
  each_index(x, [&](const int64_t* index) {
    int64_t v = load_i64(x.dtype, address(x, index));
    if (c.ints[0]) {
      y[at] = v;
    } else {
      y[at] = std::max<int64_t>(v, 0);
      y[n + at] = v == INT64_MIN ? INT64_MAX : std::max<int64_t>(-v, 0);
    }
    ++at;
    return true;
  });
  return ok();
}

Result<Work> prepare_count(const Call& c) {
  constexpr std::string_view kName = "host.count_nonzero";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  if (c.ints.size() != 1 || !is_number(c.in[0].dtype)) return bad_call(kName, "counts no numbers");
  GE_RETURN_IF_ERROR(check_out(c, kName, 1));
  return Work{};
}
Status run_count(const Call& c, int64_t) {
  const View& x = c.in[0];
  int64_t found = 0, seen = 0;
  each_index(x, [&](const int64_t* index) {
    if (seen++ >= c.ints[0]) return false;
    const std::byte* p = address(x, index);
    found += is_float(x.dtype) ? load_f64(x.dtype, p) != 0 : load_i64(x.dtype, p) != 0;
    return true;
  });
  *c.out[0].as<int64_t>() = found;
  return ok();
}

Result<Work> prepare_range(const Call& c) {
  constexpr std::string_view kName = "host.range_count";
  GE_RETURN_IF_ERROR(check_call(c, kName, 3, 3, 1, 1));
  for (auto& v : c.in)
    if (v.dtype != c.in[0].dtype || v.count() != 1 || !is_number(v.dtype)) return bad_call(kName, "start, limit and delta are not one number each");
  GE_RETURN_IF_ERROR(check_out(c, kName, 1));
  return Work{};
}
Status run_range(const Call& c, int64_t) {
  DType t = c.in[0].dtype;
  int64_t& count = *c.out[0].as<int64_t>();
  auto refuse = [](std::string what) { return error(code::kRunFailed, format("Range: {}", what)); };
  if (is_integer(t)) {
    __int128 v[3];
    for (size_t i = 0; i < 3; ++i) v[i] = load_i64(t, c.in[i].data);
    if (v[2] == 0) return refuse("delta is 0");
    __int128 span = v[1] - v[0], n = span / v[2] + (span % v[2] != 0 && (span < 0) == (v[2] < 0));
    if (n > INT64_MAX) return refuse("it would have too many elements");
    count = static_cast<int64_t>(std::max<__int128>(n, 0));
    return ok();
  }
  double v[3];
  for (size_t i = 0; i < 3; ++i) v[i] = load_f64(t, c.in[i].data);
  if (v[2] == 0) return refuse("delta is 0");
  // In the precision of the type, as the other runtimes compute it.
  double n = t == DType::f64 ? std::ceil((v[1] - v[0]) / v[2])
                             : std::ceil((static_cast<float>(v[1]) - static_cast<float>(v[0])) / static_cast<float>(v[2]));
  if (!(n <= 1e15)) return refuse(format("it would have {} elements", n));
  count = static_cast<int64_t>(std::max(n, 0.0));
  return ok();
}

const Register registered[] = {
    Register({.name = "host.read", .unit = Unit::host, .prepare = prepare_read, .run = run_read}),
    Register({.name = "host.count_nonzero", .unit = Unit::host, .prepare = prepare_count, .run = run_count}),
    Register({.name = "host.range_count", .unit = Unit::host, .prepare = prepare_range, .run = run_range}),
};

}  // namespace
}  // namespace ge::kernels::move
