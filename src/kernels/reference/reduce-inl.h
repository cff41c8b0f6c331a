// Inner loops of reduce.axes on f32 that lies together, with accumulators of f64. Compiled once for each instruction
// set by conv_targets.h; no include guard on purpose. The order of the sums is that of the plain loops.

using Eight = double __attribute__((vector_size(64)));
using EightF32 = float __attribute__((vector_size(32)));

struct ReduceSum {
  GE_INLINE void step(Eight& acc, const Eight& v) { acc += v; }
  GE_INLINE void step(double& acc, double v) { acc += v; }
};
struct ReduceSquares {
  GE_INLINE void step(Eight& acc, const Eight& v) { acc += v * v; }
  GE_INLINE void step(double& acc, double v) { acc += v * v; }
};
struct ReduceMax {  // NaN stays
  GE_INLINE void step(Eight& acc, const Eight& v) { acc = ((v > acc) | (v != v)) ? v : acc; }
  GE_INLINE void step(double& acc, double v) { acc = v > acc || v != v ? v : acc; }
};
struct ReduceMin {
  GE_INLINE void step(Eight& acc, const Eight& v) { acc = ((v < acc) | (v != v)) ? v : acc; }
  GE_INLINE void step(double& acc, double v) { acc = v < acc || v != v ? v : acc; }
};

GE_INLINE void load_eight(const float* p, Eight& v) {
  EightF32 x;
  __builtin_memcpy(&x, p, sizeof x);
  v = __builtin_convertvector(x, Eight);
}

// acc[i] with p[i], p[i + stride], ... of `count` rows, for n columns.
template <class Op>
GE_INLINE void reduce_columns(const float* p, int64_t count, int64_t stride, int64_t n, double* acc) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    Eight a, b, v, w;
    __builtin_memcpy(&a, acc + i, sizeof a), __builtin_memcpy(&b, acc + i + 8, sizeof b);
    for (int64_t k = 0; k < count; ++k) {
      load_eight(p + k * stride + i, v), load_eight(p + k * stride + i + 8, w);
      Op::step(a, v), Op::step(b, w);
    }
    __builtin_memcpy(acc + i, &a, sizeof a), __builtin_memcpy(acc + i + 8, &b, sizeof b);
  }
  for (; i < n; ++i)
    for (int64_t k = 0; k < count; ++k) Op::step(acc[i], p[k * stride + i]);
}

// chain[k mod 8] with p[k], for whole eights of the n elements; how many those are.
template <class Op>
GE_INLINE int64_t reduce_eights(const float* p, int64_t n, double* chain) {
  Eight a, v;
  __builtin_memcpy(&a, chain, sizeof a);
  int64_t k = 0;
  for (; k + 8 <= n; k += 8) load_eight(p + k, v), Op::step(a, v);
  __builtin_memcpy(chain, &a, sizeof a);
  return k;
}

// kind: 0 sum, 1 sum of squares, 2 largest, 3 smallest.
static void f32_columns(int kind, const float* p, int64_t count, int64_t stride, int64_t n, double* acc) {
  if (kind == 0) return reduce_columns<ReduceSum>(p, count, stride, n, acc);
  if (kind == 1) return reduce_columns<ReduceSquares>(p, count, stride, n, acc);
  if (kind == 2) return reduce_columns<ReduceMax>(p, count, stride, n, acc);
  return reduce_columns<ReduceMin>(p, count, stride, n, acc);
}

static int64_t f32_eights(int kind, const float* p, int64_t n, double* chain) {
  if (kind == 0) return reduce_eights<ReduceSum>(p, n, chain);
  if (kind == 1) return reduce_eights<ReduceSquares>(p, n, chain);
  if (kind == 2) return reduce_eights<ReduceMax>(p, n, chain);
  return reduce_eights<ReduceMin>(p, n, chain);
}
