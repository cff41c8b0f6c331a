// move.cast: in 0 to out 0 of the same sizes and another type, both of any strides, by the rules of
// ONNX's Cast (element.h says what happens where ONNX leaves it open).
// ints: [saturate = 1, round_mode = 0 (0 up, 1 down, 2 nearest; f8e8m0 only)], both optional.
#include <algorithm>

#include "kernels/move/cast_row.h"
#include "kernels/move/check.h"
#include "kernels/move/copy.h"
#include "kernels/move/element.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.cast";
constexpr int64_t kPiece = 4096;  // elements of a row done at a time

struct State {
  CopyPlan copy;         // same type on both sides
  bool same = false;
  CastRow row = nullptr;
  CastMode mode;
  Nest nest;             // operand 0: from, 1: to
  DType from, to;
  int64_t pieces = 1, units = 0, unit_bytes = 1;
};

Result<CastMode> mode_of(const Call& c) {
  CastMode m;
  if (c.ints.size() > 2) return bad_call(kName, "has too many parameters");
  if (!c.ints.empty()) m.saturate = c.ints[0] != 0;
  if (c.ints.size() > 1) {
    if (c.ints[1] < 0 || c.ints[1] > 2) return bad_call(kName, format("unknown rounding {}", c.ints[1]));
    m.round = static_cast<Round>(c.ints[1]);
  }
  return m;
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  const View &x = c.in[0], &y = c.out[0];
  if (!same_dims(x, y)) return bad_call(kName, format("the input {} and the output {} differ in shape", dims_text(x), dims_text(y)));
  if (x.dtype != y.dtype && (!is_number(x.dtype) || !is_number(y.dtype)))
    return bad_call(kName, format("cannot convert {} to {}", name(x.dtype), name(y.dtype)));
  auto s = std::make_shared<State>();
  GE_TRY(s->mode, mode_of(c));
  s->from = x.dtype, s->to = y.dtype;
  s->same = x.dtype == y.dtype;
  View views[] = {x, y};
  s->nest = Nest::of(views);
  Work w;
  if (s->same) {
    s->copy = plan_copy(s->nest, size_of(x.dtype));
    w.chunks = s->copy.chunks();
  } else {
    s->nest.simplify();
    s->nest.sort_for(1);
    s->nest.simplify();
    if (s->nest.rank == 0) s->nest.rank = 1, s->nest.dims[0] = 1, s->nest.steps[0][0] = s->nest.steps[1][0] = 0;
    int64_t n = s->nest.dims[s->nest.rank - 1], count = s->nest.count();
    int64_t bytes = std::max(size_of(s->from), size_of(s->to));
    if (count > 0) {
      s->pieces = (n + kPiece - 1) / kPiece;
      s->units = count / n * s->pieces;
      s->unit_bytes = std::min(n, kPiece) * bytes;
      int last = s->nest.rank - 1;
      bool contiguous = n == 1 || (s->nest.steps[0][last] == size_of(s->from) && s->nest.steps[1][last] == size_of(s->to));
      if (contiguous) s->row = cast_row(s->from, s->to);
    }
    w.chunks = chunks_for(s->units, s->unit_bytes);
  }
  w.state = std::move(s);
  return w;
}

void cast_piece(const State& s, const std::byte* from, std::byte* to, int64_t n) {
  if (s.row) return s.row(from, to, n);
  constexpr int64_t kBlock = 256;
  int last = s.nest.rank - 1;
  int64_t step0 = s.nest.steps[0][last], step1 = s.nest.steps[1][last];
  for (int64_t i = 0; i < n; i += kBlock) {
    int64_t m = std::min(kBlock, n - i);
    if (is_float(s.from)) {
      double block[kBlock];
      load_run(s.from, from + i * step0, step0, m, block);
      store_run(s.to, to + i * step1, step1, m, block, s.mode);
    } else {
      int64_t block[kBlock];
      load_run(s.from, from + i * step0, step0, m, block);
      store_run(s.to, to + i * step1, step1, m, block, s.from == DType::u64, s.mode);
    }
  }
}

Status run(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const State*>(c.state);
  if (s.same) {
    run_copy_chunk(s.copy, c.in[0].data, c.out[0].data, chunk);
    return ok();
  }
  Span span = chunk_span(s.units, chunks_for(s.units, s.unit_bytes), chunk);
  int last = s.nest.rank - 1;
  int64_t n = s.nest.dims[last];
  Walker w(s.nest, last, span.begin / s.pieces);
  int64_t k = span.begin % s.pieces;
  for (int64_t u = span.begin; u < span.end; ++u) {
    int64_t i = k * kPiece;
    cast_piece(s, c.in[0].data + w.at[0] + i * s.nest.steps[0][last], c.out[0].data + w.at[1] + i * s.nest.steps[1][last],
               std::min(kPiece, n - i));
    if (++k == s.pieces) k = 0, w.next();
  }
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
