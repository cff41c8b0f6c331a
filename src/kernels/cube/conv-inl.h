// Filling the buffer of input rows; see conv.cc. Included by conv_targets.h only, inside a
// namespace. The loops are plain: the compiler vectorises them for each instruction set.

static void interleave3(const float* __restrict a, const float* __restrict b,
                        const float* __restrict c, int64_t n, float* __restrict out) {
  for (int64_t i = 0; i < n; ++i) out[3 * i] = a[i], out[3 * i + 1] = b[i], out[3 * i + 2] = c[i];
}

static void interleave4(const float* __restrict a, const float* __restrict b,
                        const float* __restrict c, const float* __restrict d, int64_t n,
                        float* __restrict out) {
  for (int64_t i = 0; i < n; ++i)
    out[4 * i] = a[i], out[4 * i + 1] = b[i], out[4 * i + 2] = c[i], out[4 * i + 3] = d[i];
}

// Runs of whole pixels: short ones do not pay for a call of memcpy.
GE_INLINE void copy_floats(const float* __restrict from, int64_t n, float* __restrict to) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(to + i, V::load(from + i));
  if (i < n) V::store_n(to + i, V::load_n(from + i, n - i), n - i);
}

GE_INLINE void fill_zero(float* to, int64_t n) {
  int64_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(to + i, V::zero());
  if (i < n) V::store_n(to + i, V::zero(), n - i);
}

// Copies `columns` pixels of one input row from input column iw on, channels-last, zeros outside
// the input.
static void copy_row(const ConvShape& s, const float* row, int64_t cg, int64_t iw, int64_t columns,
                     float* dst) {
  int64_t before = std::min(columns, std::max<int64_t>(0, -iw));
  int64_t inside = std::clamp<int64_t>(s.in[2] - iw - before, 0, columns - before);
  fill_zero(dst, before * cg);
  fill_zero(dst + (before + inside) * cg, (columns - before - inside) * cg);
  if (inside <= 0) return;
  dst += before * cg;
  const float* src = row + (iw + before) * s.xs[2];
  if ((s.xc == 1 || cg == 1) && s.xs[2] == cg) {
    copy_floats(src, inside * cg, dst);
  } else if (s.xc == 1) {
    for (int64_t i = 0; i < inside; ++i) copy_floats(src + i * s.xs[2], cg, dst + i * cg);
  } else if (s.xs[2] == 1 && cg == 3) {
    interleave3(src, src + s.xc, src + 2 * s.xc, inside, dst);
  } else if (s.xs[2] == 1 && cg == 4) {
    interleave4(src, src + s.xc, src + 2 * s.xc, src + 3 * s.xc, inside, dst);
  } else {
    // 16 pixels at a time: their cache lines stay while the channels pass.
    for (int64_t i0 = 0; i0 < inside; i0 += 16) {
      int64_t i1 = std::min(inside, i0 + 16);
      for (int64_t c = 0; c < cg; ++c)
        for (int64_t i = i0; i < i1; ++i) dst[i * cg + c] = src[c * s.xc + i * s.xs[2]];
    }
  }
}
