#include "kernels/cube/pack.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "kernels/cube/bf16.h"
#include "kernels/cube/check.h"
#include "kernels/kernel.h"

namespace ge::kernels::cube {
namespace {

typedef float F4 __attribute__((vector_size(16)));

F4 load4(const float* p) {
  F4 x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

// out[k * 16 + j] = b[j * n_stride + k] for 4 columns j and 4 rows k.
void transpose4x4(const float* b, int64_t n_stride, float* out) {
  const F4 r0 = load4(b), r1 = load4(b + n_stride), r2 = load4(b + 2 * n_stride), r3 = load4(b + 3 * n_stride);
  const F4 a0 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5), a1 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
  const F4 a2 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5), a3 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  const F4 t[4] = {__builtin_shufflevector(a0, a2, 0, 1, 4, 5), __builtin_shufflevector(a0, a2, 2, 3, 6, 7),
                   __builtin_shufflevector(a1, a3, 0, 1, 4, 5), __builtin_shufflevector(a1, a3, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(out + i * 16, &t[i], sizeof t[i]);
}

void pack_any(const float* b, int64_t k, int64_t width, int64_t k_stride, int64_t n_stride, float* out) {
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = 0; j < width; ++j) out[i * 16 + j] = b[i * k_stride + j * n_stride];
    for (int64_t j = width; j < 16; ++j) out[i * 16 + j] = 0;
  }
}

// One panel of `width` <= 16 columns.
void pack_panel(const float* b, int64_t k, int64_t width, int64_t k_stride, int64_t n_stride, float* out) {
  if (width < 16 || (k_stride != 1 && n_stride != 1)) return pack_any(b, k, width, k_stride, n_stride, out);
  if (n_stride == 1) {
    for (int64_t i = 0; i < k; ++i) std::memcpy(out + i * 16, b + i * k_stride, 16 * sizeof(float));
    return;
  }
  const int64_t whole = k / 4 * 4;
  for (int64_t i = 0; i < whole; i += 4)
    for (int64_t j = 0; j < 16; j += 4) transpose4x4(b + i + j * n_stride, n_stride, out + i * 16 + j);
  pack_any(b + whole, k - whole, 16, 1, n_stride, out + whole * 16);
}

// kTogether whole panels of a B with contiguous rows, which are then read in longer runs.
constexpr int64_t kTogether = 4;
void pack_together(const float* b, int64_t k, int64_t k_stride, float* out) {
  for (int64_t i = 0; i < k; ++i)
    for (int64_t p = 0; p < kTogether; ++p)
      std::memcpy(out + (p * k + i) * 16, b + i * k_stride + p * 16, 16 * sizeof(float));
}

// A chunk packs kChunkFloats or more; the count is even where there is more than one.
constexpr int64_t kChunkFloats = 64 * 1024;

struct PackShape {
  int64_t k = 0, n = 0, batch = 1, units = 0;  // unit: one panel of one batch
};

PackShape pack_shape(const Call& call) {
  const View& b = call.in[0];
  PackShape s;
  s.k = b.dim(-2), s.n = b.dim(-1);
  for (int i = 0; i < b.rank - 2; ++i) s.batch *= b.dims[i];
  s.units = s.batch * panels(s.n);
  return s;
}

int64_t pack_chunks(const PackShape& s) {
  if (s.units * s.k == 0) return 0;
  const int64_t want = std::min<int64_t>(64, s.units * s.k * 16 / kChunkFloats);
  if (want < 2) return 1;
  return std::min(s.units, want / 2 * 2);
}

Result<Work> prepare(const Call& call) {
  auto bad = [](std::string why) { return error(code::kBadOp, "cube.pack_b: " + why); };
  if (call.in.size() != 1 || call.out.size() != 1) return bad("takes one input and one output");
  if (!call.ints.empty() || !call.floats.empty() || !call.blob.empty()) return bad("takes no parameters");
  const View &b = call.in[0], &o = call.out[0];
  GE_RETURN_IF_ERROR(check_view(b, DType::f32, 2, kMaxRank - 1, "input of cube.pack_b"));
  const bool pairs = o.dtype == DType::bf16;
  GE_RETURN_IF_ERROR(check_view(o, pairs ? DType::bf16 : DType::f32, b.rank + 1, b.rank + 1, "output of cube.pack_b"));
  for (int i = 0; i < b.rank - 2; ++i)
    if (o.dims[i] != b.dims[i]) return bad(format("batch dimension {} differs", i));
  const int64_t width = pairs ? 32 : 16, rows = pairs ? pair_rows(b.dim(-2), b.dim(-2)) : b.dim(-2);
  if (o.dim(-3) != panels(b.dim(-1)) || o.dim(-2) != rows || o.dim(-1) != width)
    return bad(format("output must end in [{}, {}, {}]", panels(b.dim(-1)), rows, width));
  if (!o.dense()) return bad("the output must be dense");
  Work work;
  work.chunks = pack_chunks(pack_shape(call));
  return work;
}

Status run(const Call& call, int64_t chunk) {
  const View& b = call.in[0];
  const PackShape s = pack_shape(call);
  const int64_t chunks = pack_chunks(s), per_batch = panels(s.n);
  const int64_t last = s.units * (chunk + 1) / chunks;
  for (int64_t u = s.units * chunk / chunks; u < last;) {
    int64_t batch = u / per_batch, offset = 0;
    for (int64_t i = b.rank - 3, rest = batch; i >= 0; --i) {
      offset += rest % b.dims[i] * b.strides[i];
      rest /= b.dims[i];
    }
    const int64_t first = u % per_batch, end = std::min(per_batch, first + last - u);
    const float* from = b.as<float>() + offset;
    const View& o = call.out[0];
    if (o.dtype == DType::bf16)
      pack_pair_panels(from, s.k, s.n, b.stride(-2), b.stride(-1), first, end, o.as<uint16_t>() + u * even(s.k) * 16);
    else
      pack_panels(from, s.k, s.n, b.stride(-2), b.stride(-1), first, end, o.as<float>() + u * s.k * 16);
    u += end - first;
  }
  return ok();
}

const Register kPackB(Kernel{.name = "cube.pack_b", .unit = Unit::cube, .prepare = prepare, .run = run});

}  // namespace

void pack_panels(const float* b, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride, int64_t first,
                 int64_t last, float* out) {
  int64_t p = first;
  if (n_stride == 1)
    for (; p + kTogether <= last && (p + kTogether) * 16 <= n; p += kTogether)
      pack_together(b + p * 16, k, k_stride, out + (p - first) * k * 16);
  for (; p < last; ++p)
    pack_panel(b + p * 16 * n_stride, k, std::min<int64_t>(16, n - p * 16), k_stride, n_stride,
               out + (p - first) * k * 16);
}

void pack_b(const View& b, float* out) {
  pack_panels(b.as<float>(), b.dim(0), b.dim(1), b.stride(0), b.stride(1), 0, panels(b.dim(1)), out);
}

}  // namespace ge::kernels::cube
