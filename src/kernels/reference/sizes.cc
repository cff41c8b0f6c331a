// Sizes that data decide, for the runtime to read between segments. out 0: i64, dense, one axis.
//   host.read           ints [sizes]; in: n numbers, floats cut to whole ones. sizes 1: the numbers. 0: 2n numbers, first
//                       those above 0 (else 0), then the negated ones below 0 (else 0).
//   host.count_nonzero  ints [most]: of the first `most` elements in flat order how many are not 0
//   host.resize         ints [0: scales; 1, 2: sizes of which the smallest or largest ratio counts; 3: scales, of
//                       the part that the roi names; 4: sizes, and a roi; then the sizes of the axes]; in: scales or sizes, and the roi:
//                       new sizes, then bits of the scales (f64), of the roi's starts and of its ends (f32)
//   host.range_count    in: start, limit, delta (one element each, one type): the elements of Range
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

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
  if (c.ints.size() != 1 || c.in[0].dtype == DType::none) return bad_call(kName, "counts no numbers");
  GE_RETURN_IF_ERROR(check_out(c, kName, 1));
  return Work{};
}
Status run_count(const Call& c, int64_t) {
  const View& x = c.in[0];
  int64_t found = 0, seen = 0;
  each_index(x, [&](const int64_t* index) {
    if (seen++ >= c.ints[0]) return false;
    const std::byte* p = address(x, index);
    found += !is_zero(x.dtype, p);
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

// The sizes and scales of a Resize. What has no size here is refused by the kernel that follows.
Result<Work> prepare_resize(const Call& c) {
  constexpr std::string_view kName = "host.resize";
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 2, 1, 1));
  if (c.ints.size() < 2 || c.ints[0] < 0 || c.ints[0] > 4) return bad_call(kName, "parameters are wrong");
  auto axes = static_cast<int64_t>(c.ints.size()) - 1;
  for (int64_t d : c.ints.subspan(1))
    if (d < 0 || d > (int64_t{1} << 40)) return bad_call(kName, "a size is wrong");
  bool crop = c.ints[0] >= 3;
  if (c.in[0].count() != axes || !is_number(c.in[0].dtype)) return bad_call(kName, "has a wrong number of scales");
  if (crop && (c.in.size() < 2 || c.in[1].count() != 2 * axes || !is_number(c.in[1].dtype))) return bad_call(kName, "the roi has not a start and an end for each axis");
  GE_RETURN_IF_ERROR(check_out(c, kName, 4 * axes));
  return Work{};
}

std::vector<double> numbers(const View& v) {
  std::vector<double> out;
  each_index(v, [&](const int64_t* index) { return out.push_back(load_f64(v.dtype, address(v, index))), true; });
  return out;
}

Status run_resize(const Call& c, int64_t) {
  auto dims = c.ints.subspan(1);
  auto given = numbers(c.in[0]);
  std::vector<double> roi;
  if (c.ints[0] >= 3) roi = numbers(c.in[1]);
  size_t n = dims.size();
  bool larger = c.ints[0] == 1, keep = larger || c.ints[0] == 2;
  double common = larger ? HUGE_VAL : 0;
  for (size_t i = 0; keep && i < n; ++i) {
    if (dims[i] == 0) return error(code::kRunFailed, "Resize: there is nothing to resize");
    double r = given[i] / static_cast<double>(dims[i]);
    common = larger ? std::min(common, r) : std::max(common, r);
  }
  int64_t* y = c.out[0].as<int64_t>();
  for (size_t i = 0; i < n; ++i) {
    double scale = keep ? common : c.ints[0] == 4 ? 1 : given[i], size = static_cast<double>(dims[i]);
    if (!(scale > 0) || scale > 1e9) return error(code::kRunFailed, format("Resize: a scale is {}", scale));
    // As where all is known while compiling: a product of floats, rounded down.
    double span = roi.empty() ? scale : scale * (roi[n + i] - roi[i]);
    double made = keep ? std::floor(scale * size + 0.5) : std::floor(static_cast<float>(size) * static_cast<float>(span));
    y[i] = static_cast<int64_t>(std::max(made, 0.0));
    y[n + i] = std::bit_cast<int64_t>(scale);
    for (size_t k = 0; k < 2; ++k) y[2 * n + k * n + i] = std::bit_cast<uint32_t>(roi.empty() ? 0.0f : static_cast<float>(roi[k * n + i]));
  }
  return ok();
}

const Register registered[] = {
    Register({.name = "host.resize", .unit = Unit::host, .prepare = prepare_resize, .run = run_resize}),
    Register({.name = "host.read", .unit = Unit::host, .prepare = prepare_read, .run = run_read}),
    Register({.name = "host.count_nonzero", .unit = Unit::host, .prepare = prepare_count, .run = run_count}),
    Register({.name = "host.range_count", .unit = Unit::host, .prepare = prepare_range, .run = run_range}),
};

}  // namespace
}  // namespace ge::kernels::move
