// move.arg_max: ref.ArgMax for f32, the same parameters and results. A contiguous axis is searched in two
// passes (the largest value, then where it is); an axis across contiguous columns keeps a block of columns.
#include <limits>

#include "kernels/isa.h"
#include "kernels/move/lines.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.arg_max";
constexpr int64_t kBlock = 256;

struct State {
  LineSet lines;      // operands: x, y
  bool columns = false;
  int64_t units = 0, blocks = 1;  // columns: blocks of the last line axis
};

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  if (c.in[0].dtype != DType::f32) return bad_call(kName, "the input is not f32");
  GE_TRY(Work checked, find("ref.ArgMax")->prepare(c));
  (void)checked;
  View views[] = {c.in[0], c.out[0]};
  auto s = std::make_shared<State>();
  s->lines = LineSet::of(views, static_cast<int>(c.ints[0]));
  Nest& n = s->lines.nest;
  n.simplify();
  n.sort_for(0);
  n.simplify();
  if (n.rank == 0) n.rank = 1, n.dims[0] = 1, n.steps[0][0] = n.steps[1][0] = 0;
  int64_t last = n.dims[n.rank - 1];
  s->columns = s->lines.step[0] != 4 && n.steps[0][n.rank - 1] == 4 && last >= 8;
  if (s->columns) s->blocks = (last + kBlock - 1) / kBlock;
  s->units = s->lines.count == 0 ? 0 : s->columns ? s->lines.count / last * s->blocks : s->lines.count;
  Work w;
  w.chunks = chunks_for(s->units, s->lines.length[0] * 4 * (s->columns ? std::min(last, kBlock) : 1));
  w.state = std::move(s);
  return w;
}

// The largest of n values in 16 lanes; NaN if there is one.
inline __attribute__((always_inline)) float largest_body(const float* x, int64_t n, bool smallest) {
  float best[16];
  int32_t nan[16] = {};
  float sign = smallest ? -1.0f : 1.0f;
  for (float& b : best) b = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int k = 0; k < 16; ++k) {
      float v = x[i + k] * sign;
      best[k] = v > best[k] ? v : best[k];
      nan[k] |= v != v;
    }
  for (; i < n; ++i) {
    float v = x[i] * sign;
    best[0] = v > best[0] ? v : best[0];
    nan[0] |= v != v;
  }
  float out = best[0];
  int32_t any = 0;
  for (int k = 0; k < 16; ++k) out = best[k] > out ? best[k] : out, any |= nan[k];
  return any ? std::numeric_limits<float>::quiet_NaN() : out * sign;
}
float largest_portable(const float* x, int64_t n, bool smallest) { return largest_body(x, n, smallest); }
#if defined(__x86_64__)
__attribute__((target("avx2"))) float largest_avx2(const float* x, int64_t n, bool smallest) { return largest_body(x, n, smallest); }
#endif

int64_t search(const float* x, int64_t n, bool largest, bool last) {
  float best;
#if defined(__x86_64__)
  best = isa() >= Isa::avx2 ? largest_avx2(x, n, !largest) : largest_portable(x, n, !largest);
#else
  best = largest_portable(x, n, !largest);
#endif
  bool nan = best != best;
  if (last && !nan) {
    for (int64_t i = n - 1; i >= 0; --i)
      if (x[i] == best) return i;
    return 0;
  }
  for (int64_t i = 0; i < n; ++i)
    if (nan ? x[i] != x[i] : x[i] == best) return i;
  return 0;
}

struct Column {
  const std::byte* x;
  std::byte* y;
  int64_t step_along, y_step, n;  // along the axis; of the output between columns; length of the axis
  bool largest, last;
};

// m <= kBlock neighbouring columns.
void search_columns(const Column& c, int64_t m) {
  float best[kBlock];
  int32_t at[kBlock];
  float sign = c.largest ? 1.0f : -1.0f;
  for (int64_t j = 0; j < m; ++j) best[j] = reinterpret_cast<const float*>(c.x)[j] * sign, at[j] = 0;
  for (int64_t i = 1; i < c.n; ++i) {
    auto* x = reinterpret_cast<const float*>(c.x + i * c.step_along);
    auto row = static_cast<int32_t>(i);
    for (int64_t j = 0; j < m; ++j) {
      float v = x[j] * sign;
      bool better = (v > best[j]) | ((v != v) & (best[j] == best[j])) | (c.last & (v == best[j]));
      best[j] = better ? v : best[j];
      at[j] = better ? row : at[j];
    }
  }
  for (int64_t j = 0; j < m; ++j) store(c.y + j * c.y_step, static_cast<int64_t>(at[j]));
}

Status run(const Call& c, int64_t chunk) {
  auto& s = *static_cast<const State*>(c.state);
  const Nest& nest = s.lines.nest;
  int64_t n = s.lines.length[0], last = nest.dims[nest.rank - 1];
  bool largest = c.ints[1] != 0, final = c.ints[2] != 0;
  Span span = chunk_span(s.units, chunks_for(s.units, n * 4 * (s.columns ? std::min(last, kBlock) : 1)), chunk);
  if (s.columns) {
    Walker w(nest, nest.rank - 1, span.begin / s.blocks);
    int64_t b = span.begin % s.blocks;
    for (int64_t u = span.begin; u < span.end; ++u) {
      int64_t j = b * kBlock, y_step = nest.steps[1][nest.rank - 1];
      search_columns({c.in[0].data + w.at[0] + j * 4, c.out[0].data + w.at[1] + j * y_step, s.lines.step[0], y_step, n, largest, final},
                     std::min(kBlock, last - j));
      if (++b == s.blocks) b = 0, w.next();
    }
    return ok();
  }
  Walker w(nest, nest.rank, span.begin);
  for (int64_t u = span.begin; u < span.end; ++u, w.next()) {
    const std::byte* x = c.in[0].data + w.at[0];
    std::byte* y = c.out[0].data + w.at[1];
    if (s.lines.step[0] == 4 || n == 1) store(y, search(reinterpret_cast<const float*>(x), n, largest, final));
    else search_columns({x, y, s.lines.step[0], 0, n, largest, final}, 1);
  }
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
