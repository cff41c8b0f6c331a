// Tensors made from parameters:
//   move.fill      out 0 (any strides) filled with one element. blob: its bytes, of the output's type; or
//                  no blob and ints [value], converted.
//   move.elements  out 0 gets ints[i] as element i of its row-major order, converted to its type.
//   move.range     out 0 (1 axis): start + i * delta, in the output's type. in: start, delta (one element
//                  each, of the output's type); or no inputs and ints [start, delta].
#include <algorithm>

#include "kernels/move/check.h"
#include "kernels/move/copy.h"
#include "kernels/move/element.h"
#include "kernels/move/element_size.h"

namespace ge::kernels::move {
namespace {

// ---- move.fill: a copy from one element with strides 0.

struct FillState {
  CopyPlan plan;
  std::byte element[16];
};

Result<Work> prepare_fill(const Call& c) {
  constexpr std::string_view kName = "move.fill";
  GE_RETURN_IF_ERROR(check_call(c, kName, 0, 0, 1, 1));
  const View& y = c.out[0];
  auto s = std::make_shared<FillState>();
  auto bytes = static_cast<size_t>(size_of(y.dtype));
  if (!c.blob.empty()) {
    if (c.blob.size() != bytes) return bad_call(kName, format("a value of {} bytes for {}", c.blob.size(), name(y.dtype)));
    std::memcpy(s->element, c.blob.data(), bytes);
  } else {
    if (c.ints.size() != 1 || !is_number(y.dtype)) return bad_call(kName, "has no value");
    store_i64(y.dtype, s->element, c.ints[0]);
  }
  int64_t zeros[kMaxRank] = {};
  View views[] = {{nullptr, y.dtype, y.rank, y.dims, zeros}, y};
  s->plan = plan_copy(Nest::of(views), static_cast<int64_t>(bytes));
  Work w;
  w.chunks = s->plan.chunks();
  w.state = std::move(s);
  return w;
}

Status run_fill(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const FillState*>(c.state);
  run_copy_chunk(s.plan, s.element, c.out[0].data, chunk);
  return ok();
}

// ---- move.elements

Result<Work> prepare_elements(const Call& c) {
  constexpr std::string_view kName = "move.elements";
  GE_RETURN_IF_ERROR(check_call(c, kName, 0, 0, 1, 1));
  const View& y = c.out[0];
  if (!is_number(y.dtype)) return bad_call(kName, format("cannot make {}", name(y.dtype)));
  if (y.count() != static_cast<int64_t>(c.ints.size()))
    return bad_call(kName, format("there are {} elements for an output {}", c.ints.size(), dims_text(y)));
  Work w;
  w.chunks = c.ints.empty() ? 0 : 1;
  return w;
}

Status run_elements(const Call& c, int64_t) {
  const View& y = c.out[0];
  Nest n = Nest::of({&y, 1});
  Walker w(n, n.rank, 0);
  for (int64_t v : c.ints) {
    store_i64(y.dtype, y.data + w.at[0], v);
    w.next();
  }
  return ok();
}

// ---- move.range

constexpr int64_t kRangeUnit = 4096;

Result<Work> prepare_range(const Call& c) {
  constexpr std::string_view kName = "move.range";
  GE_RETURN_IF_ERROR(check_call(c, kName, 0, 2, 1, 1));
  const View& y = c.out[0];
  if (y.rank != 1) return bad_call(kName, "makes one axis");
  if (!is_number(y.dtype)) return bad_call(kName, format("cannot make {}", name(y.dtype)));
  if (c.in.empty() ? c.ints.size() != 2 : c.in.size() != 2) return bad_call(kName, "needs start and delta");
  for (auto& v : c.in)
    if (v.dtype != y.dtype || v.count() != 1) return bad_call(kName, "start and delta must be single elements of the output's type");
  Work w;
  w.chunks = chunks_for((y.dims[0] + kRangeUnit - 1) / kRangeUnit, kRangeUnit * size_of(y.dtype));
  return w;
}

// Integers wrap; floats are computed in T, as start + i * delta.
template <class T>
void range_plain(const Call& c, int64_t begin, int64_t end) {
  const View& y = c.out[0];
  using U = std::conditional_t<std::is_integral_v<T>, uint64_t, T>;
  U start, delta;
  if (c.in.empty()) start = static_cast<U>(c.ints[0]), delta = static_cast<U>(c.ints[1]);
  else start = static_cast<U>(load<T>(c.in[0].data)), delta = static_cast<U>(load<T>(c.in[1].data));
  T* q = y.as<T>();
  for (int64_t i = begin; i < end; ++i) q[i * y.strides[0]] = static_cast<T>(start + static_cast<U>(i) * delta);
}

Status run_range(const Call& c, int64_t chunk) {
  const View& y = c.out[0];
  int64_t units = (y.dims[0] + kRangeUnit - 1) / kRangeUnit;
  Span s = chunk_span(units, chunks_for(units, kRangeUnit * size_of(y.dtype)), chunk);
  int64_t begin = s.begin * kRangeUnit, end = std::min(y.dims[0], s.end * kRangeUnit);
  switch (y.dtype) {
    case DType::f32: range_plain<float>(c, begin, end); break;
    case DType::f64: range_plain<double>(c, begin, end); break;
    case DType::i16: range_plain<int16_t>(c, begin, end); break;
    case DType::i32: range_plain<int32_t>(c, begin, end); break;
    case DType::i64: range_plain<int64_t>(c, begin, end); break;
    default: {
      bool whole = c.in.empty();
      double start = whole ? static_cast<double>(c.ints[0]) : load_f64(y.dtype, c.in[0].data);
      double delta = whole ? static_cast<double>(c.ints[1]) : load_f64(y.dtype, c.in[1].data);
      int64_t step = y.strides[0] * size_of(y.dtype);
      for (int64_t i = begin; i < end; ++i) store_f64(y.dtype, y.data + i * step, start + static_cast<double>(i) * delta);
    }
  }
  return ok();
}

const Register fill({.name = "move.fill", .prepare = prepare_fill, .run = run_fill});
const Register elements({.name = "move.elements", .unit = Unit::host, .prepare = prepare_elements, .run = run_elements});
const Register range({.name = "move.range", .prepare = prepare_range, .run = run_range});

}  // namespace
}  // namespace ge::kernels::move
