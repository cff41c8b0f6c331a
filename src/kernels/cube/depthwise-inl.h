// The loops of cube.depthwise; see depthwise.h. Included by conv_targets.h only, inside a
// namespace.
//
// A tile is T neighbouring pixels of a row and one vector of channels: T sums and KW weights stay
// in registers, every input column is read once a kernel row (and input channel of the group, where
// groups have more than one: see Mode). Which columns lie outside the input is known at compile
// time in the usual cases: on small maps most tiles touch an edge.

#if defined(__clang__)
#define GE_UNROLL_COLUMNS _Pragma("clang loop unroll(full)")
#else
#define GE_UNROLL_COLUMNS _Pragma("GCC unroll 32")
#endif

// How a vector of output channels reads input channel `ci` of each one's group.
enum Mode {
  kDepth,   // groups of one: as it lies
  kSpread,  // several groups in a vector: each lane takes its group's channel ci
  kSplat,   // a vector inside of a group: all lanes take the same
};

template <int M>
GE_INLINE V::F read(const float* p, const DepthwiseRow& r, int64_t c, int ci, V::I index) {
  if constexpr (M == kSplat) return V::set1(p[c / r.group * r.group + ci]);
  if constexpr (M == kSpread) return V::permute(V::load(p + c), index);
  return V::load(p + c);
}

template <int M>
GE_INLINE V::I read_index(const DepthwiseRow& r, int ci) {
  if constexpr (M == kSpread) return V::group_index(static_cast<int>(r.group), ci);
  return V::I{};
}

GE_INLINE V::F activate(V::F x, const DepthwiseRow& r) {
  switch (r.act) {
    case Act::none:
      return x;
    case Act::relu:
      return V::max(V::zero(), x);
    case Act::clip:
      return V::min(V::set1(r.hi), V::max(V::set1(r.lo), x));
    case Act::leaky:
      return V::if_negative(x, V::mul(V::set1(r.alpha), x));
  }
  return x;
}

// Stores T finished sums. The branches are outside of the loops: the sums must stay in registers.
template <int T>
GE_INLINE void finish(V::F (&acc)[T], const DepthwiseRow& r, int64_t c, int64_t ow, void* out,
                      const float* residual) {
  if (residual) {
    const float* p = residual + ow * r.residual_step + c;
    GE_UNROLL
    for (int t = 0; t < T; ++t) acc[t] = V::add(acc[t], V::load(p + t * r.residual_step));
  }
  if (r.act == Act::relu) {
    GE_UNROLL
    for (int t = 0; t < T; ++t) acc[t] = V::max(V::zero(), acc[t]);
  } else if (r.act != Act::none) {
    GE_UNROLL
    for (int t = 0; t < T; ++t) acc[t] = activate(acc[t], r);
  }
  const int64_t at = ow * r.y_step + c;
  if (r.y16) {
    uint16_t* y = static_cast<uint16_t*>(out) + at;
    GE_UNROLL
    for (int t = 0; t < T; ++t) V::narrow(y + t * r.y_step, acc[t]);
  } else {
    float* y = static_cast<float*>(out) + at;
    GE_UNROLL
    for (int t = 0; t < T; ++t) V::store(y + t * r.y_step, acc[t]);
  }
}

template <int M, int KW, int S, int T, int E>
GE_INLINE void dw_vector(const DepthwiseRow& r, int64_t c, int64_t ow) {
  constexpr int kColumns = (T - 1) * S + KW;
  V::F acc[T];
  V::F bias = r.bias ? V::load(r.bias + c) : V::zero();
  GE_UNROLL
  for (int t = 0; t < T; ++t) acc[t] = bias;
  const int64_t start = ow * S - r.pad, tap = M == kDepth ? r.weight_step : r.weight_step * r.group;
  const int group = M == kDepth ? 1 : static_cast<int>(r.group);
  for (int64_t k = 0; k < r.rows; ++k) {
    for (int ci = 0; ci < group; ++ci) {
      const V::I index = read_index<M>(r, ci);
      V::F w[KW];
      GE_UNROLL
      for (int i = 0; i < KW; ++i) w[i] = V::load(r.w[k] + i * tap + ci * r.weight_step + c);
      const float* p = r.x[k] + start * r.x_step;
      GE_UNROLL_COLUMNS
      for (int j = 0; j < kColumns; ++j, p += r.x_step) {
        if (E != kAny && (E & kLeft) && j == 0) continue;
        if (E != kAny && (E & kRight) && j == kColumns - 1) continue;
        if (E == kAny && static_cast<uint64_t>(start + j) >= static_cast<uint64_t>(r.width))
          continue;
        V::F x = read<M>(p, r, c, ci, index);
        GE_UNROLL
        for (int i = 0; i < KW; ++i)
          if (j >= i && (j - i) % S == 0 && (j - i) / S < T)
            acc[(j - i) / S] = V::fma(x, w[i], acc[(j - i) / S]);
      }
    }
  }
  finish<T>(acc, r, c, ow, r.y, r.residual);
}

// All channels of pixels [ow, ow + T): neighbouring channels one after another, as they lie in
// memory.
template <int M, int KW, int S, int T, int E>
static void dw_tile(const DepthwiseRow& r, int64_t ow) {
  const int64_t last = r.channels - V::kLanes;
  // The last vector may overlap the one before it and compute the same again.
  for (int64_t c = 0; c < r.channels; c += V::kLanes)
    dw_vector<M, KW, S, T, E>(r, c < last ? c : last, ow);
}

using TileFn = void (*)(const DepthwiseRow&, int64_t);

template <int M, int KW, int S, int E>
struct TileTable {
  static constexpr TileFn fn[kMaxTile + 1] = {nullptr,
                                              dw_tile<M, KW, S, 1, E>,
                                              dw_tile<M, KW, S, 2, E>,
                                              dw_tile<M, KW, S, 3, E>,
                                              dw_tile<M, KW, S, 4, E>,
                                              dw_tile<M, KW, S, 5, E>,
                                              dw_tile<M, KW, S, 6, E>,
                                              dw_tile<M, KW, S, 7, E>,
                                              dw_tile<M, KW, S, 8, E>};
};

// Tiles by Edge; where one is null, kAny serves.
struct Family {
  const TileFn* edge[5] = {};
};

template <int M, int KW, int S>
GE_INLINE Family small_family() {
  return {
      {TileTable<M, KW, S, kInside>::fn, nullptr, nullptr, nullptr, TileTable<M, KW, S, kAny>::fn}};
}

template <int S>
GE_INLINE Family full_family3() {
  return {{TileTable<kDepth, 3, S, kInside>::fn, TileTable<kDepth, 3, S, kLeft>::fn,
           TileTable<kDepth, 3, S, kRight>::fn, TileTable<kDepth, 3, S, kBoth>::fn,
           TileTable<kDepth, 3, S, kAny>::fn}};
}

// The tiles for a row's kernel width and stride; all null where only the general loop will do.
static Family choose(const DepthwiseRow& r) {
  if (r.dilation != 1) return {};
  if (r.group > 1) {
    const bool splat = r.group >= V::kLanes;
    if (r.kw == 3 && r.stride == 1)
      return splat ? small_family<kSplat, 3, 1>() : small_family<kSpread, 3, 1>();
    if (r.kw == 3 && r.stride == 2)
      return splat ? small_family<kSplat, 3, 2>() : small_family<kSpread, 3, 2>();
    return {};
  }
  if (r.kw == 3 && r.stride == 1) return full_family3<1>();
  if (r.kw == 3 && r.stride == 2) return full_family3<2>();
  if (r.kw == 5 && r.stride == 1) return small_family<kDepth, 5, 1>();
  if (r.kw == 5 && r.stride == 2) return small_family<kDepth, 5, 2>();
  if (r.kw == 7 && r.stride == 1) return small_family<kDepth, 7, 1>();
  return {};
}

// U vectors of channels (or n channels) of one pixel, any kernel.
template <int M, int U, bool kPart>
GE_INLINE void dw_pixel(const DepthwiseRow& r, int64_t c, int64_t n, int64_t ow) {
  int64_t start = ow * r.stride - r.pad;
  int64_t first = start >= 0 ? 0 : (-start + r.dilation - 1) / r.dilation;
  int64_t last =
      std::min(r.kw, start >= r.width ? 0 : (r.width - start + r.dilation - 1) / r.dilation);
  V::F acc[U];
  GE_UNROLL
  for (int u = 0; u < U; ++u)
    acc[u] = !r.bias ? V::zero()
             : kPart ? V::load_n(r.bias + c, n)
                     : V::load(r.bias + c + u * V::kLanes);
  const int group = M == kDepth ? 1 : static_cast<int>(r.group);
  for (int64_t k = 0; k < r.rows; ++k) {
    const float* x = r.x[k] + (start + first * r.dilation) * r.x_step;
    const float* w = r.w[k] + first * r.weight_step * group + c;
    for (int64_t i = first; i < last; ++i, x += r.dilation * r.x_step) {
      for (int ci = 0; ci < group; ++ci, w += r.weight_step) {
        const V::I index = read_index<M>(r, ci);
        GE_UNROLL
        for (int u = 0; u < U; ++u) {
          V::F t = kPart ? V::load_n(w, n) : V::load(w + u * V::kLanes);
          V::F v;
          if constexpr (!kPart)
            v = read<M>(x, r, c + u * V::kLanes, ci, index);
          else if constexpr (M == kSpread)
            v = V::permute(V::load_n(x + c, n), index);
          else if constexpr (M == kSplat)
            v = V::set1(x[c / r.group * r.group + ci]);
          else
            v = V::load_n(x + c, n);
          acc[u] = V::fma(v, t, acc[u]);
        }
      }
    }
  }
  const float* residual = r.residual ? r.residual + ow * r.residual_step + c : nullptr;
  const int64_t at = ow * r.y_step + c;
  float* y = static_cast<float*>(r.y) + at;
  uint16_t* y16 = static_cast<uint16_t*>(r.y) + at;
  GE_UNROLL
  for (int u = 0; u < U; ++u) {
    V::F v = acc[u];
    if (residual) v = V::add(v, kPart ? V::load_n(residual, n) : V::load(residual + u * V::kLanes));
    v = activate(v, r);
    if constexpr (kPart)
      r.y16 ? V::narrow_n(y16, v, n) : V::store_n(y, v, n);
    else
      r.y16 ? V::narrow(y16 + u * V::kLanes, v) : V::store(y + u * V::kLanes, v);
  }
}

template <int M>
static void dw_general(const DepthwiseRow& r) {
  for (int64_t ow = 0; ow < r.out; ++ow) {
    int64_t c = 0;
    for (; c + 4 * V::kLanes <= r.channels; c += 4 * V::kLanes) dw_pixel<M, 4, false>(r, c, 0, ow);
    for (; c + V::kLanes <= r.channels; c += V::kLanes) dw_pixel<M, 1, false>(r, c, 0, ow);
    if (c < r.channels) dw_pixel<M, 1, true>(r, c, r.channels - c, ow);
  }
}

static void dw_row(const DepthwiseRow& r) {
  Family f = choose(r);
  if (!f.edge[kInside] || r.channels < V::kLanes) {
    if (r.group == 1) return dw_general<kDepth>(r);
    return r.group >= V::kLanes ? dw_general<kSplat>(r) : dw_general<kSpread>(r);
  }
  for (int64_t i = 0; i < r.tile_count; ++i) {
    const DepthwiseTile t = r.tiles ? r.tiles[i] : depthwise_tile(r, i);
    const TileFn* fn = f.edge[t.edge] ? f.edge[t.edge] : f.edge[kAny];
    fn[t.width](r, t.begin);
  }
}

#include "kernels/cube/depthwise_rows-inl.h"

#undef GE_UNROLL_COLUMNS
