// Reference kernels of attention; any strides, double inside.
//
// ref.Attention: in q [B, H, S, D], k [B, G, T, D], v [B, G, T, Dv], H a multiple of G; mask or absent: rank 4, bool
//   (false: hidden) or float (added), broadcast to [B, H, S, M], keys from M <= T on hidden; lengths i64 [B] or
//   absent: the keys of a batch entry that count. out y [B, H, S, Dv]; scores [B, H, S, T] or absent.
//   ints [causal, past, left, right, mode]: query i stands at p = past + i, with lengths at p = length - S + i;
//   causal hides keys j > p, left >= 0 those j < p - left, right >= 0 those j > p + right. mode, what scores
//   are: 0 scale * q k', 1 with the soft cap, 2 with the masks, 3 the softmax. floats [scale (NaN: 1 / sqrt(D)),
//   softcap (0: none)]. A row whose keys are all hidden gives zeros.
// ref.RotaryEmbedding: in x [B, H, S, D], cos and sin, positions i64 [B or 1, S] or absent; with positions the
//   tables are [rows, R / 2], else [B or 1, S, R / 2]. out y as x. ints [interleaved, R]: the first R of D are
//   turned.
#include <cmath>

#include "kernels/reference/access.h"

namespace ge::kernels::reference {
namespace {

// --- attention ---

constexpr std::string_view kAttention = "ref.Attention";

bool fits(const View& v, std::initializer_list<int64_t> dims) {
  return v.rank == static_cast<int>(dims.size()) && std::equal(dims.begin(), dims.end(), v.dims);
}

Status check_mask(const Call& c) {
  if (!present(c, 3)) return ok();
  const View &m = c.in[3], &q = c.in[0], &v = c.in[2];
  if ((!plain_float(m.dtype) && m.dtype != DType::boolean) || m.rank != 4) return bad(kAttention, "the mask is neither bool nor float of rank 4");
  for (int a = 0; a < 3; ++a)
    if (m.dims[a] != 1 && m.dims[a] != q.dims[a]) return bad(kAttention, "the mask does not broadcast to the scores");
  if (m.dims[3] > v.dims[2]) return bad(kAttention, format("the mask is for {} keys, there are {}", m.dims[3], v.dims[2]));
  return ok();
}

int64_t attention_chunks(const Call& c) {
  const View &q = c.in[0], &v = c.in[2];
  return cut(q.dims[0] * q.dims[1] * q.dims[2], 4.0 * static_cast<double>(v.dims[2]) * static_cast<double>(q.dims[3] + v.dims[3] + 8));
}

Result<Work> prepare_attention(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kAttention, 3, 1, 5, 2));
  const View &q = c.in[0], &k = c.in[1], &v = c.in[2], &y = c.out[0];
  for (const View* x : {&q, &k, &v, &y})
    if (!plain_float(x->dtype) || x->rank != 4) return bad(kAttention, "q, k, v and y must be floats of rank 4");
  if (!fits(k, {q.dims[0], v.dims[1], v.dims[2], q.dims[3]}) || v.dims[0] != q.dims[0] || !fits(y, {q.dims[0], q.dims[1], q.dims[2], v.dims[3]}))
    return bad(kAttention, "q, k, v and y do not fit together");
  if (v.dims[1] == 0 ? q.dims[1] != 0 : q.dims[1] % v.dims[1] != 0) return bad(kAttention, "heads cannot be shared evenly");
  GE_RETURN_IF_ERROR(check_mask(c));
  if (present(c, 4) && (c.in[4].dtype != DType::i64 || !fits(c.in[4], {q.dims[0]}))) return bad(kAttention, "lengths must be i64, one for a batch entry");
  if (wanted(c, 1) && (!plain_float(c.out[1].dtype) || !fits(c.out[1], {q.dims[0], q.dims[1], q.dims[2], v.dims[2]})))
    return bad(kAttention, "the scores have another shape");
  for (size_t i = 1; i < 4; ++i)
    if (c.ints[i] < -kMaxCount || c.ints[i] > kMaxCount) return bad(kAttention, "a position is out of range");
  if (c.ints[4] < 0 || c.ints[4] > 3) return bad(kAttention, "unknown mode");
  Work w;
  w.chunks = attention_chunks(c);
  w.scratch = v.dims[2] * 8;
  return w;
}

struct Row {
  const Call& c;
  int64_t b, h, s;
  double* score;
  bool seen = false;   // some key is not hidden

  int64_t at(const View& v, int64_t head) const { return b * v.strides[0] + head * v.strides[1]; }
  void keep(int64_t mode) const {
    if (!wanted(c, 1) || c.ints[4] != mode) return;
    const View& o = c.out[1];
    for (int64_t j = 0; j < o.dims[3]; ++j) store(o, at(o, h) + s * o.strides[2] + j * o.strides[3], score[j]);
  }

  void multiply(int64_t g) const {
    const View &q = c.in[0], &k = c.in[1];
    double scale = std::isnan(c.floats[0]) ? 1 / std::sqrt(static_cast<double>(q.dims[3])) : c.floats[0], cap = c.floats[1];
    for (int64_t j = 0; j < k.dims[2]; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < q.dims[3]; ++i)
        sum += load(q, at(q, h) + s * q.strides[2] + i * q.strides[3]) * load(k, at(k, g) + j * k.strides[2] + i * k.strides[3]);
      score[j] = sum * scale;
    }
    keep(0);
    for (int64_t j = 0; cap > 0 && j < k.dims[2]; ++j) score[j] = std::tanh(score[j] / cap) * cap;
    keep(1);
  }

  void hide() {
    const int64_t keys = c.in[2].dims[2], left = c.ints[2], right = c.ints[3];
    int64_t p = c.ints[1] + s, length = keys;
    if (present(c, 4)) {
      length = std::clamp<int64_t>(load_int(c.in[4], b * c.in[4].strides[0]), -kMaxCount, kMaxCount);
      p = length - c.in[0].dims[2] + s;
    }
    for (int64_t j = 0; j < keys; ++j) {
      double bias = 0;
      if (present(c, 3)) {
        const View& m = c.in[3];
        auto step = [&](int a) { return m.dims[a] == 1 ? 0 : m.strides[a]; };
        int64_t i = b * step(0) + h * step(1) + s * step(2) + j * m.strides[3];
        if (j >= m.dims[3] || (m.dtype == DType::boolean && !load_int(m, i))) bias = -INFINITY;
        else if (m.dtype != DType::boolean) bias = load(m, i);
      }
      bool hidden = j >= length || (c.ints[0] && j > p) || (left >= 0 && j < p - left) || (right >= 0 && j > p + right);
      if (hidden || bias == -INFINITY) score[j] = -INFINITY;
      else score[j] += bias, seen = true;
    }
    keep(2);
  }

  void softmax() const {
    const int64_t keys = c.in[2].dims[2];
    double best = -INFINITY, sum = 0;
    for (int64_t j = 0; j < keys; ++j) best = score[j] > best || std::isnan(score[j]) ? score[j] : best;
    const bool zero = !seen || best == -INFINITY;
    for (int64_t j = 0; j < keys; ++j) sum += score[j] = zero ? 0 : std::exp(score[j] - best);
    for (int64_t j = 0; j < keys; ++j) score[j] = zero ? 0 : score[j] / sum;
    keep(3);
  }

  void mix(int64_t g) const {
    const View &v = c.in[2], &y = c.out[0];
    for (int64_t i = 0; i < v.dims[3]; ++i) {
      double sum = 0;
      for (int64_t j = 0; seen && j < v.dims[2]; ++j) sum += score[j] * load(v, at(v, g) + j * v.strides[2] + i * v.strides[3]);
      store(y, at(y, h) + s * y.strides[2] + i * y.strides[3], sum);
    }
  }
};

Status run_attention(const Call& c, int64_t chunk) {
  const View& q = c.in[0];
  Span span = slice(q.dims[0] * q.dims[1] * q.dims[2], chunk, attention_chunks(c));
  for (int64_t r = span.begin; r < span.end; ++r) {
    Row row{c, r / (q.dims[1] * q.dims[2]), r / q.dims[2] % q.dims[1], r % q.dims[2], reinterpret_cast<double*>(c.scratch)};
    const int64_t g = row.h / (q.dims[1] / c.in[2].dims[1]);
    row.multiply(g);
    row.hide();
    row.softmax();
    row.mix(g);
  }
  return ok();
}

// --- rotary embedding ---

constexpr std::string_view kRotary = "ref.RotaryEmbedding";

int64_t rotary_chunks(const Call& c) { return cut(c.in[0].count(), 10); }

Result<Work> prepare_rotary(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kRotary, 3, 1, 2));
  const View& x = c.in[0];
  if (!plain_float(x.dtype) || x.rank != 4 || c.out[0].dtype != x.dtype || !same_dims(x, c.out[0])) return bad(kRotary, "output unlike the input");
  const int64_t width = c.ints[1];
  if (width < 0 || width % 2 || width > x.dims[3]) return bad(kRotary, format("{} of the {} features of a head cannot be turned", width, x.dims[3]));
  for (size_t i : {1, 2}) {
    const View& t = c.in[i];
    bool good = plain_float(t.dtype) && t.rank == (present(c, 3) ? 2 : 3) && t.dims[t.rank - 1] == width / 2;
    if (good && t.rank == 3) good = (t.dims[0] == x.dims[0] || t.dims[0] == 1) && t.dims[1] == x.dims[2];
    if (!good) return bad(kRotary, "a table has the wrong shape");
  }
  if (present(c, 3)) {
    const View& p = c.in[3];
    bool good = p.dtype == DType::i64 && p.rank == 2;
    if (good) good = (p.dims[0] == x.dims[0] || p.dims[0] == 1) && p.dims[1] == x.dims[2];
    if (!good) return bad(kRotary, "the positions have the wrong shape");
  }
  Work w;
  w.chunks = std::min(rotary_chunks(c), x.dims[0] * x.dims[1] * x.dims[2]);
  return w;
}

// Where the table's row for (b, s) begins; -1: no such row.
int64_t table_row(const Call& c, const View& t, int64_t b, int64_t s) {
  if (!present(c, 3)) return (t.dims[0] == 1 ? 0 : b * t.strides[0]) + s * t.strides[1];
  const View& p = c.in[3];
  int64_t at = load_int(p, (p.dims[0] == 1 ? 0 : b * p.strides[0]) + s * p.strides[1]);
  if (at < 0) at += t.dims[0];
  return at < 0 || at >= t.dims[0] ? -1 : at * t.strides[0];
}

Status run_rotary(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0], &cos = c.in[1], &sin = c.in[2];
  const int64_t rows = x.dims[0] * x.dims[1] * x.dims[2], half = c.ints[1] / 2, across = c.ints[0] ? 1 : half, along = c.ints[0] ? 2 : 1;
  Span span = slice(rows, chunk, std::min(rotary_chunks(c), rows));
  for (int64_t r = span.begin; r < span.end; ++r) {
    const int64_t b = r / (x.dims[1] * x.dims[2]), h = r / x.dims[2] % x.dims[1], s = r % x.dims[2];
    auto at = [&](const View& v, int64_t i) { return b * v.strides[0] + h * v.strides[1] + s * v.strides[2] + i * v.strides[3]; };
    const int64_t cos_row = table_row(c, cos, b, s), sin_row = table_row(c, sin, b, s);
    if (cos_row < 0 || sin_row < 0) return bad(kRotary, "a position is outside the tables");
    for (int64_t i = 0; i < half; ++i) {
      const double u = load(x, at(x, i * along)), v = load(x, at(x, i * along + across));
      const double p = load(cos, cos_row + i * cos.stride(-1)), q = load(sin, sin_row + i * sin.stride(-1));
      store(y, at(y, i * along), u * p - v * q);
      store(y, at(y, i * along + across), u * q + v * p);
    }
    for (int64_t i = 2 * half; i < x.dims[3]; ++i) store(y, at(y, i), load(x, at(x, i)));
  }
  return ok();
}

const Register r1(Kernel{.name = kAttention, .prepare = prepare_attention, .run = run_attention});
const Register r2(Kernel{.name = kRotary, .prepare = prepare_rotary, .run = run_rotary});

}  // namespace
}  // namespace ge::kernels::reference
