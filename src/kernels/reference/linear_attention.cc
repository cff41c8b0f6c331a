// ref.LinearAttention: in [query [B, T, Hq dk], key [B, T, H dk], value [B, T, H dv], past state [B, H, dk, dv] or
// absent, decay [B, T, H] or [B, T, H dk] or absent, beta [B, T, H] or [B, T, 1] or absent], out [output [B, T, Hq dv],
// present state [B, H, dk, dv] or absent]. ints [Hq, H], floats [scale; 0: 1 / sqrt(dk)]. For each step in order, per head: the state
// S decays by e^decay, takes key (x) value, or with beta key (x) beta (value - S^T key), and gives scale S^T query.
// Sums in double, one chunk a batch entry and head.
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.LinearAttention";
enum : size_t { kQuery = 0, kKey, kValue, kPast, kDecay, kBeta };

struct Sizes {
  int64_t batch, steps, heads, query_heads, dk, dv;
};

Status check(const Call& c, Sizes& s) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 3, 1, 2, 1));
  for (size_t i = 0; i < c.in.size(); ++i)
    if (present(c, i) && (i > kBeta || !plain_float(c.in[i].dtype) || c.in[i].rank != (i == kPast ? 4 : 3))) return bad(kName, "wrong types or ranks");
  const View &q = c.in[kQuery], &k = c.in[kKey], &v = c.in[kValue], &y = c.out[0];
  s.query_heads = c.ints[0], s.heads = c.ints[1];
  if (s.heads < 1 || s.query_heads < 1 || s.query_heads % s.heads || q.dims[2] % s.query_heads || v.dims[2] % s.heads)
    return bad(kName, "heads do not fit");
  s.batch = q.dims[0], s.steps = q.dims[1], s.dk = q.dims[2] / s.query_heads, s.dv = v.dims[2] / s.heads;
  if (s.dk > (1 << 20) || s.dv > (1 << 20)) return bad(kName, "heads are too large");
  auto fits = [&](const View& x, int64_t width) { return x.dims[0] == s.batch && x.dims[1] == s.steps && x.dims[2] == width; };
  if (!fits(k, s.heads * s.dk) || !fits(v, s.heads * s.dv)) return bad(kName, "query, key and value do not fit");
  if (!plain_float(y.dtype) || y.rank != 3 || !fits(y, s.query_heads * s.dv)) return bad(kName, "wrong output");
  auto state = [&](const View& x) {
    return x.rank == 4 && x.dims[0] == s.batch && x.dims[1] == s.heads && x.dims[2] == s.dk && x.dims[3] == s.dv;
  };
  if (present(c, kPast) && !state(c.in[kPast])) return bad(kName, "wrong past state");
  if (wanted(c, 1) && (!plain_float(c.out[1].dtype) || !state(c.out[1]))) return bad(kName, "wrong present state");
  if (present(c, kDecay) && !fits(c.in[kDecay], s.heads) && !fits(c.in[kDecay], s.heads * s.dk)) return bad(kName, "wrong decay");
  if (present(c, kBeta) && !fits(c.in[kBeta], s.heads) && !fits(c.in[kBeta], 1)) return bad(kName, "wrong beta");
  return ok();
}

Result<Work> prepare(const Call& c) {
  Sizes s;
  GE_RETURN_IF_ERROR(check(c, s));
  Work w;
  w.chunks = s.batch * s.heads;
  w.scratch = (s.dk * s.dv + s.dv) * 8;
  return w;
}

// One step of one head's state [dk, dv]; `v` holds dv numbers.
void update(const Call& c, const Sizes& s, int64_t n, int64_t t, int64_t h, double* state, double* v) {
  const View &key = c.in[kKey], &value = c.in[kValue];
  if (present(c, kDecay)) {
    const View& d = c.in[kDecay];
    bool shared = d.dims[2] == s.heads;
    for (int64_t i = 0; i < s.dk; ++i) {
      double factor = std::exp(load(d, place(d, n, t, shared ? h : h * s.dk + i)));
      for (int64_t j = 0; j < s.dv; ++j) state[i * s.dv + j] *= factor;
    }
  }
  auto k = [&](int64_t i) { return load(key, place(key, n, t, h * s.dk + i)); };
  for (int64_t j = 0; j < s.dv; ++j) v[j] = load(value, place(value, n, t, h * s.dv + j));
  if (present(c, kBeta)) {
    const View& b = c.in[kBeta];
    double beta = load(b, place(b, n, t, b.dims[2] == 1 ? 0 : h));
    for (int64_t i = 0; i < s.dk; ++i)
      for (int64_t j = 0; j < s.dv; ++j) v[j] -= state[i * s.dv + j] * k(i);
    for (int64_t j = 0; j < s.dv; ++j) v[j] *= beta;
  }
  for (int64_t i = 0; i < s.dk; ++i)
    for (int64_t j = 0; j < s.dv; ++j) state[i * s.dv + j] += k(i) * v[j];
}

Status run(const Call& c, int64_t chunk) {
  Sizes s;
  GE_RETURN_IF_ERROR(check(c, s));
  const double scale = c.floats[0] != 0 ? c.floats[0] : 1 / std::sqrt(static_cast<double>(s.dk));
  const View &query = c.in[kQuery], &y = c.out[0];
  int64_t n = chunk / s.heads, h = chunk % s.heads, group = s.query_heads / s.heads;
  auto* state = reinterpret_cast<double*>(c.scratch);
  double* v = state + s.dk * s.dv;
  for (int64_t i = 0; i < s.dk; ++i)
    for (int64_t j = 0; j < s.dv; ++j) state[i * s.dv + j] = present(c, kPast) ? load(c.in[kPast], place(c.in[kPast], n, h, i, j)) : 0;
  for (int64_t t = 0; t < s.steps; ++t) {
    update(c, s, n, t, h, state, v);
    for (int64_t q = h * group; q < (h + 1) * group; ++q)
      for (int64_t j = 0; j < s.dv; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < s.dk; ++i) sum += load(query, place(query, n, t, q * s.dk + i)) * state[i * s.dv + j];
        store(y, place(y, n, t, q * s.dv + j), sum * scale);
      }
  }
  if (wanted(c, 1))
    for (int64_t i = 0; i < s.dk; ++i)
      for (int64_t j = 0; j < s.dv; ++j) store(c.out[1], place(c.out[1], n, h, i, j), state[i * s.dv + j]);
  return ok();
}

const Register r({.name = kName, .unit = Unit::cube, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
