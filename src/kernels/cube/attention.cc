// Kernel "cube.attention": out = softmax(scale * Q x K^T, capped and masked) x V, without a matrix of
// scores larger than a block.
//
//   in[0]  Q f32 [B, H, S, D], any strides (inner stride 1 is read in place)
//   in[1]  K, H a multiple g of Hkv: packed panels of K^T, f32 [B, Hkv, ceil(T / 16), D, 16] (cube.pack_b from a
//          [B, Hkv, D, T] view), or K itself, f32, f16, bf16 or i8 [B, Hkv, T, D] with any strides
//   in[2]  V: packed panels, f32 [B, Hkv, ceil(Dv / 16), T, 16], or V itself, f32, f16, bf16 or i8 [B, Hkv, T, Dv], any strides
//   in[3]  mask f32 (added) or bool (false: not seen), broadcastable to [B, H, S, T], rank 4, any strides, or absent
//   in[4]  f32 [B, Hkv, T, 1], any strides: where K is i8, what its rows are multiplied by
//   in[5]  likewise, of V
//   out[0] f32 [B, H, S, Dv], any strides (inner stride 1 is written in place)
//   ints   [causal, offset, rows] or [causal, offset, rows, bf16, T]: causal 0 no; 1: query i sees keys j <= i + offset; 2: j <= i + T - S + offset.
//          rows: what a row gives that sees no key, or whose scores are all -inf: 0 zeros; 1 NaN, as Softmax
//          has it (zeros if T is 0); 2 zeros, and so does a row whose softmax is NaN
//          bf16 1: the operands of both products are rounded to bf16, and K and V may be pair panels (bf16.h), bf16
//          [B, Hkv, ceil(T / 16), ceil(D / 2), 32] and [B, Hkv, ceil(Dv / 16), ceil(T / 2), 32]
//   floats [scale, softcap, masked]: softcap 0 is none, else scores become softcap * tanh(score / softcap);
//          masked is what a score becomes where a bool mask is false
//
// Unpacked K and V are packed by each chunk for itself, once for up to 512 rows of g * S: the better choice
// when g * S <= 512; at g * S <= 8 nothing is packed (one token against a cache). K and V themselves in 16 or 8 bits (a cache that
// is stored so) are widened where they are read; that is no rounding of Q or of the weights. Where nothing is packed the
// scales of i8 multiply scores and weights, not each element. NaN in a
// score that is seen gives NaN, but for rows 2.
#include "kernels/cube/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cube/bf16.h"
#include "kernels/cube/check.h"
#include "kernels/cube/microkernel.h"
#include "kernels/cube/pack.h"
#include "kernels/move/cast_row.h"
#include "kernels/move/quantize_rows.h"

#define GE_TARGET_BODY "kernels/cube/attention-inl.h"
#include "kernels/cube/conv_targets.h"

namespace ge::kernels::cube {
namespace {

constexpr int64_t kWholeRow = 2048;        // up to so many keys a whole row of scores is kept, if K and V of
constexpr int64_t kWholeBytes = 1 << 20;   // a head take at most this, to stay in L2;
constexpr int64_t kBlockKeys = 1024;       // else so many keys at a time, for more rows
constexpr int64_t kSharedRows = 512;   // rows that share one packing of unpacked K and V
constexpr int64_t kDirectRows = 8;     // up to so many rows nothing is packed

int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

struct Plan {
  int64_t b = 0, h = 0, s = 0, d = 0, t = 0, dv = 0, hkv = 0, group = 1;
  bool k_packed = false, v_packed = false, copy_q = false, direct = false;
  bool k_narrow = false, v_narrow = false;   // not packed, and of 16 or 8 bits
  bool bf16 = false;
  MaskKind mask_kind = MaskKind::none;
  int64_t mask_stride[4] = {};
  int64_t causal = 0, offset = 0;
  float scale = 1, softcap = 0, masked = -INFINITY;
  bool zero_nan = false;       // a row whose softmax is NaN gives zeros
  float empty = 0;             // what a row that sees nothing gives
  // Rows r = (head within the group) * s + query, 0 <= r < group * s, in units of unit_rows, in blocks of
  // block_rows, against keys in blocks of block_keys.
  int64_t rows = 0, unit_rows = 0, block_rows = 0, block_keys = 0, units_per_head = 0, units = 0, chunks = 0;
  int64_t ld_scores = 0, ld_acc = 0;
  // Offsets in scratch.
  int64_t at_scores = 0, at_acc = 0, at_top = 0, at_row = 0, at_length = 0, at_offset = 0, at_mask = 0, at_q = 0,
          at_wide = 0, at_k = 0, at_v = 0, at_k_scale = 0, at_v_scale = 0, at_q16 = 0, at_p16 = 0, scratch = 0;
};

Error bad(std::string why) { return error(code::kBadOp, "cube.attention: " + why); }

bool dense_panels(const View& v, int64_t width) {
  return v.dim(-1) == width && v.stride(-1) == 1 && (v.stride(-2) == width || v.dim(-2) <= 1);
}

Status check_sizes(const Call& call, Plan& p) {
  const View &q = call.in[0], &k = call.in[1], &v = call.in[2], &o = call.out[0];
  GE_RETURN_IF_ERROR(check_view(q, DType::f32, 4, 4, "Q of cube.attention"));
  auto narrow = [](const View& x) { return x.rank == 4 && (x.dtype == DType::bf16 || x.dtype == DType::f16 || x.dtype == DType::i8); };
  p.k_narrow = narrow(k), p.v_narrow = narrow(v);
  auto expected = [&](const View& x) { return narrow(x) ? x.dtype : p.bf16 && x.rank == 5 ? DType::bf16 : DType::f32; };
  GE_RETURN_IF_ERROR(check_view(k, expected(k), 4, 5, "K of cube.attention"));
  GE_RETURN_IF_ERROR(check_view(v, expected(v), 4, 5, "V of cube.attention"));
  GE_RETURN_IF_ERROR(check_view(o, DType::f32, 4, 4, "output of cube.attention"));
  p.k_packed = k.rank == 5, p.v_packed = v.rank == 5;
  p.b = q.dims[0], p.h = q.dims[1], p.s = q.dims[2], p.d = q.dims[3];
  p.t = p.bf16 ? call.ints[4] : v.dims[p.v_packed ? 3 : 2], p.dv = o.dims[3], p.hkv = k.dims[1];
  if (o.dims[0] != p.b || o.dims[1] != p.h || o.dims[2] != p.s) return bad("Q and the output differ in shape");
  if (k.dims[0] != p.b || v.dims[0] != p.b) return bad("batch sizes differ");
  if (v.dims[1] != p.hkv || (p.hkv == 0 ? p.h != 0 : p.h % p.hkv != 0))
    return bad(format("{} heads of queries cannot share {} heads of keys and {} of values: both must be as many, and divide the first", p.h, p.hkv, v.dims[1]));
  p.group = p.hkv ? p.h / p.hkv : 1;
  if (p.t < 0 || p.t > kMaxElements) return bad("the number of keys is out of range");
  const int64_t width = p.bf16 ? 32 : 16;
  if (p.k_packed ? k.dims[2] != panels(p.t) || k.dims[3] != (p.bf16 ? even(p.d) / 2 : p.d) || !dense_panels(k, width)
                 : k.dims[2] != p.t || k.dims[3] != p.d)
    return bad("K must be as wide as Q, and as long as V");
  if (p.v_packed ? v.dims[2] != panels(p.dv) || v.dims[3] != (p.bf16 ? even(p.t) / 2 : p.t) || !dense_panels(v, width)
                 : v.dims[2] != p.t || v.dims[3] != p.dv)
    return bad("V must be as wide as the output");
  p.copy_q = q.strides[3] != 1 && p.d > 1;
  return ok();
}

Status check_scales(const Call& call, const Plan& p) {
  for (size_t i : {size_t{1}, size_t{2}}) {
    if (call.in[i].dtype != DType::i8) continue;
    if (!has_input(call, i + 3)) return bad("bytes without their scales");
    const View& scale = call.in[i + 3];
    GE_RETURN_IF_ERROR(check_view(scale, DType::f32, 4, 4, "scales of cube.attention"));
    if (scale.dims[0] != p.b || scale.dims[1] != p.hkv || scale.dims[2] != p.t || scale.dims[3] != 1) return bad("the scales are not one for each key");
  }
  return ok();
}

Status check_mask(const Call& call, Plan& p) {
  if (!has_input(call, 3)) return ok();
  const View& m = call.in[3];
  if (m.dtype != DType::f32 && m.dtype != DType::boolean) return bad("the mask must be f32 or bool");
  GE_RETURN_IF_ERROR(check_view(m, m.dtype, 4, 4, "mask of cube.attention"));
  const int64_t want[4] = {p.b, p.h, p.s, p.t};
  for (int i = 0; i < 4; ++i) {
    if (m.dims[i] != want[i] && m.dims[i] != 1) return bad(format("axis {} of the mask is {}, not {}", i, m.dims[i], want[i]));
    p.mask_stride[i] = m.dims[i] == 1 ? 0 : m.strides[i];
  }
  p.mask_kind = m.dtype == DType::f32 ? MaskKind::f32 : MaskKind::boolean;
  return ok();
}

void cut(const Call& call, Plan& p) {
  p.rows = p.group * p.s;
  const bool whole = p.t <= kBlockKeys || (p.t <= kWholeRow && p.t * (p.d + p.dv) * 4 <= kWholeBytes);
  p.block_keys = whole ? std::max<int64_t>(16, round_up(p.t, 16)) : kBlockKeys;
  p.direct = !p.k_packed && !p.v_packed && p.rows <= kDirectRows && (call.in[1].strides[3] == 1 || p.d <= 1) &&
             (call.in[2].strides[3] == 1 || p.dv <= 1);
  if (p.direct) p.bf16 = false;
  const int64_t most = p.block_keys > kBlockKeys ? 48 : 96;
  p.block_rows = std::min(p.rows, round_up(ceil_div(p.rows, ceil_div(p.rows, most)), 6));
  p.unit_rows = p.block_rows;
  if (!p.k_packed || !p.v_packed) p.unit_rows = std::max<int64_t>(1, kSharedRows / p.block_rows) * p.block_rows;
  p.units_per_head = ceil_div(p.rows, p.unit_rows);
  p.units = p.b * p.hkv * p.units_per_head;
  const double cycles = static_cast<double>(std::min(p.unit_rows, p.rows)) * static_cast<double>(p.t) *
                        (static_cast<double>(p.d + p.dv) / 32 + 1);
  const int64_t together = cycles >= 60000 ? 1 : static_cast<int64_t>(60000 / std::max(cycles, 100.0)) + 1;
  p.chunks = std::min<int64_t>(ceil_div(p.units, together), 1024);
  if (p.chunks > 2) p.chunks = p.chunks / 2 * 2;
}

void lay_out_scratch(Plan& p) {
  p.ld_scores = p.block_keys, p.ld_acc = round_up(std::max<int64_t>(1, p.dv), 16);
  auto place = [&](int64_t& at, int64_t bytes) {
    at = p.scratch;
    p.scratch += round_up(bytes, 64);
  };
  const int64_t own_rows = std::min(p.unit_rows, p.rows);
  place(p.at_scores, p.block_rows * p.ld_scores * 4);
  place(p.at_acc, own_rows * p.ld_acc * 4);
  place(p.at_top, p.block_rows * 16 * 4);
  place(p.at_row, own_rows * 2 * 4);
  place(p.at_length, p.block_rows * 8);
  place(p.at_offset, p.block_rows * 8);
  place(p.at_mask, p.block_rows * 8);
  if (p.copy_q) place(p.at_q, p.block_rows * p.d * 4);
  if (p.bf16) place(p.at_q16, p.block_rows * bf16_row(p.d) * 2), place(p.at_p16, p.block_rows * bf16_row(p.block_keys) * 2);
  if (p.direct) {
    if (p.k_narrow) place(p.at_k_scale, p.block_keys * 4);
    if (p.v_narrow) place(p.at_v_scale, p.block_keys * 4);
    return;
  }
  if (p.k_narrow || p.v_narrow) place(p.at_wide, p.block_keys * std::max(p.d, p.dv) * 4);
  if (!p.k_packed) place(p.at_k, p.block_keys * p.d * 4);
  if (!p.v_packed) place(p.at_v, p.block_keys * p.ld_acc * 4);
}

Result<Work> prepare(const Call& call) {
  if (call.in.size() < 3 || call.in.size() > 6 || call.out.size() != 1) return bad("takes 3 to 6 inputs and 1 output");
  if ((call.ints.size() != 3 && call.ints.size() != 5) || call.floats.size() != 3 || !call.blob.empty())
    return bad("takes 3 or 5 integers and 3 floats");
  auto plan = std::make_shared<Plan>();
  if (call.ints.size() == 5 && (call.ints[3] < 0 || call.ints[3] > 1)) return bad("bf16 is neither 0 nor 1");
  plan->bf16 = call.ints.size() == 5 && call.ints[3] == 1;
  GE_RETURN_IF_ERROR(check_sizes(call, *plan));
  GE_RETURN_IF_ERROR(check_scales(call, *plan));
  GE_RETURN_IF_ERROR(check_mask(call, *plan));
  plan->causal = call.ints[0], plan->offset = call.ints[1];
  if (plan->causal < 0 || plan->causal > 2) return bad(format("no causal mode {}", plan->causal));
  if (std::abs(static_cast<double>(plan->offset)) > 0x1p46) return bad("the causal offset is out of range");
  plan->scale = static_cast<float>(call.floats[0]), plan->softcap = static_cast<float>(call.floats[1]);
  plan->masked = static_cast<float>(call.floats[2]);
  if (!(plan->softcap >= 0)) return bad("the soft cap is negative");
  if (std::isnan(plan->masked)) return bad("masked scores cannot be NaN");
  if (call.ints[2] < 0 || call.ints[2] > 2) return bad(format("no kind of rows {}", call.ints[2]));
  plan->zero_nan = call.ints[2] == 2;
  if (call.ints[2] == 1 && plan->t > 0) plan->empty = std::numeric_limits<float>::quiet_NaN();
  Work work;
  work.chunks = 0;
  if (call.out[0].count() == 0) return work;
  if (plan->d > (int64_t{1} << 30) || plan->dv > (int64_t{1} << 30)) return bad("a head is too wide");
  cut(call, *plan);
  lay_out_scratch(*plan);
  work.chunks = plan->chunks, work.scratch = plan->scratch, work.state = plan;
  return work;
}

// One (batch, key head, unit of rows): running maxima, sums and outputs of its rows in scratch.
class RowUnit {
 public:
  RowUnit(const Call& call, const Plan& p, int64_t unit)
      : call_(call), p_(p), batch_(unit / p.units_per_head / p.hkv), head_(unit / p.units_per_head % p.hkv),
        row0_(unit % p.units_per_head * p.unit_rows), row1_(std::min(p.rows, row0_ + p.unit_rows)) {}

  void run() {
    for (int64_t r = row0_; r < row1_; ++r) top(r) = -INFINITY, sum(r) = 0;
    std::fill_n(acc(row0_), (row1_ - row0_) * p_.ld_acc, 0.f);
    for (int64_t t0 = 0; t0 < p_.t; t0 += p_.block_keys) {
      keys_ = std::min(p_.block_keys, p_.t - t0);
      t0_ = t0;
      locate_keys();
      for (int64_t r = row0_; r < row1_; r += p_.block_rows) block(r, std::min(row1_, r + p_.block_rows));
    }
    for (int64_t r = row0_; r < row1_; ++r) write(r);
  }

 private:
  template <class T>
  T* scratch(int64_t at) const {
    return reinterpret_cast<T*>(call_.scratch + at);
  }
  float& top(int64_t r) const { return scratch<float>(p_.at_row)[(r - row0_) * 2]; }
  float& sum(int64_t r) const { return scratch<float>(p_.at_row)[(r - row0_) * 2 + 1]; }
  float* acc(int64_t r) const { return scratch<float>(p_.at_acc) + (r - row0_) * p_.ld_acc; }
  int64_t head(int64_t r) const { return head_ * p_.group + r / p_.s; }
  // The keys [t0, t0 + keys) of K or V itself, [keys, width]; narrow ones are widened into scratch.
  struct Rows {
    const float* data;
    int64_t row, column;
  };
  Rows rows_of(size_t operand, int64_t width, bool narrow) const {
    const View& v = call_.in[operand];
    const int64_t start = batch_ * v.strides[0] + head_ * v.strides[1] + t0_ * v.strides[2];
    if (!narrow) return {v.as<float>() + start, v.strides[2], v.strides[3]};
    float* to = scratch<float>(p_.at_wide);
    if (v.dtype == DType::i8) {
      const View& scale = call_.in[operand + 3];
      const float* factor = scales(scale);
      for (int64_t j = 0; j < keys_; ++j)
        move::dequantize_row(v.as<int8_t>() + start + j * v.strides[2], v.strides[3], factor[j * scale.strides[2]], to + j * width, width);
      return {to, width, 1};
    }
    const auto widen = move::cast_row(v.dtype, DType::f32);
    for (int64_t j = 0; j < keys_; ++j) {
      const std::byte* from = v.data + (start + j * v.strides[2]) * 2;
      auto* row = reinterpret_cast<std::byte*>(to + j * width);
      if (v.strides[3] == 1) widen(from, row, width);
      else
        for (int64_t i = 0; i < width; ++i) widen(from + i * v.strides[3] * 2, row + i * 4, 1);
    }
    return {to, width, 1};
  }

  // The first of these keys' scales.
  const float* scales(const View& v) const { return v.as<float>() + batch_ * v.strides[0] + head_ * v.strides[1] + t0_ * v.strides[2]; }
  // All of them, one after the other; null where the operand is not bytes.
  const float* dense_scales(size_t operand, int64_t at) const {
    if (call_.in[operand].dtype != DType::i8) return nullptr;
    const View& v = call_.in[operand + 3];
    const float* from = scales(v);
    if (v.strides[2] == 1) return from;
    float* to = scratch<float>(at);
    for (int64_t j = 0; j < keys_; ++j) to[j] = from[j * v.strides[2]];
    return to;
  }

  // Panels of the keys [t0, t0 + keys), packing what is not packed.
  void locate_keys() {
    const View &k = call_.in[1], &v = call_.in[2];
    if (p_.direct) return locate_direct();
    if (p_.bf16) return locate_pairs();
    auto start = [&](const View& x) { return batch_ * x.strides[0] + head_ * x.strides[1]; };
    if (p_.k_packed) {
      k_ = k.as<float>() + start(k) + t0_ / 16 * k.strides[2], k_stride_ = k.strides[2];
    } else {
      float* out = scratch<float>(p_.at_k);
      const Rows r = rows_of(1, p_.d, p_.k_narrow);
      pack_panels(r.data, p_.d, keys_, r.column, r.row, 0, panels(keys_), out);
      k_ = out, k_stride_ = p_.d * 16;
    }
    if (p_.v_packed) {
      v_ = v.as<float>() + start(v) + t0_ * 16, v_stride_ = v.strides[2];
    } else {
      float* out = scratch<float>(p_.at_v);
      const Rows r = rows_of(2, p_.dv, p_.v_narrow);
      pack_panels(r.data, keys_, p_.dv, r.row, r.column, 0, panels(p_.dv), out);
      v_ = out, v_stride_ = keys_ * 16;
    }
  }

  // K and V as they lie.
  void locate_direct() {
    const View &k = call_.in[1], &v = call_.in[2];
    auto start = [&](const View& x) { return batch_ * x.strides[0] + head_ * x.strides[1] + t0_ * x.strides[2]; };
    k_stride_ = k.strides[2], v_stride_ = v.strides[2];
    if (p_.k_narrow) k_narrow_ = k.data + start(k) * size_of(k.dtype);
    else k_ = k.as<float>() + start(k);
    if (p_.v_narrow) v_narrow_ = v.data + start(v) * size_of(v.dtype);
    else v_ = v.as<float>() + start(v);
    k_scale_ = dense_scales(1, p_.at_k_scale), v_scale_ = dense_scales(2, p_.at_v_scale);
  }

  void locate_pairs() {
    const View &k = call_.in[1], &v = call_.in[2];
    auto start = [&](const View& x) { return batch_ * x.strides[0] + head_ * x.strides[1]; };
    if (p_.k_packed) {
      k16_ = k.as<uint16_t>() + start(k) + t0_ / 16 * k.strides[2], k_stride_ = k.strides[2];
    } else {
      auto* out = scratch<uint16_t>(p_.at_k);
      const Rows r = rows_of(1, p_.d, p_.k_narrow);
      pack_pair_panels(r.data, p_.d, keys_, r.column, r.row, 0, panels(keys_), out);
      k16_ = out, k_stride_ = even(p_.d) * 16;
    }
    if (p_.v_packed) {
      v16_ = v.as<uint16_t>() + start(v) + t0_ * 16, v_stride_ = v.strides[2];
    } else {
      auto* out = scratch<uint16_t>(p_.at_v);
      const Rows r = rows_of(2, p_.dv, p_.v_narrow);
      pack_pair_panels(r.data, keys_, p_.dv, r.row, r.column, 0, panels(p_.dv), out);
      v16_ = out, v_stride_ = even(keys_) * 16;
    }
  }

  // The product of t, whose A is `rows` rounded: row i at rows + (offset ? offset[i] : i * lda).
  void multiply_rounded(Block& t, const float* rows, const int64_t* offset, int64_t lda, int64_t k, uint16_t* a, const uint16_t* b) {
    for (int64_t i = 0; i < t.m; ++i) {
      uint16_t* to = a + i * bf16_row(k);
      round_to_bf16(rows + (offset ? offset[i] : i * lda), k, to);
      if (k & 1) to[k] = 0;
    }
    t.a = nullptr, t.row_offset = nullptr, t.lda = bf16_row(k), t.segment_k = even(k);
    multiply(Bf16Block{t, a, b});
  }

  // Where the rows' queries and masks are, and how many of these keys each sees; gives the most.
  int64_t describe_rows(int64_t r0, int64_t r1) {
    int64_t most = 0;
    for (int64_t r = r0; r < r1; ++r) {
      const int64_t h = head(r), s = r % p_.s, i = r - r0;
      int64_t sees = p_.t;
      if (p_.causal) sees = s + 1 + p_.offset + (p_.causal == 2 ? p_.t - p_.s : 0);
      const int64_t n = std::clamp<int64_t>(sees - t0_, 0, keys_);
      scratch<int64_t>(p_.at_length)[i] = n;
      most = std::max(most, n);
      const View& q = call_.in[0];
      scratch<int64_t>(p_.at_offset)[i] = h * q.strides[1] + s * q.strides[2];
      if (p_.mask_kind == MaskKind::none) continue;
      const View& m = call_.in[3];
      const int64_t* ms = p_.mask_stride;
      scratch<const void*>(p_.at_mask)[i] =
          m.data + (batch_ * ms[0] + h * ms[1] + s * ms[2] + t0_ * ms[3]) * size_of(m.dtype);
    }
    return most;
  }

  void block(int64_t r0, int64_t r1) {
    const int64_t n = describe_rows(r0, r1), m = r1 - r0;
    if (n == 0) return;
    ScoreBlock s;
    s.scores = scratch<float>(p_.at_scores), s.ld = p_.ld_scores;
    s.length = scratch<int64_t>(p_.at_length);
    s.key_scale = k_scale_, s.softcap = p_.softcap, s.masked = p_.masked;
    s.mask_kind = p_.mask_kind, s.mask = scratch<const void*>(p_.at_mask), s.mask_step = p_.mask_stride[3];
    s.top = scratch<float>(p_.at_top);
    std::fill_n(s.top, m * 16, -INFINITY);
    score(s, m, n);
    for (int64_t i = 0; i < m; ++i) {
      float best = -INFINITY;
      for (int64_t j = 0; j < 16; ++j) best = std::max(best, s.top[i * 16 + j]);
      const float before = top(r0 + i), now = std::max(before, best);
      top(r0 + i) = now;
      const float base = now == -INFINITY ? 0 : now;
      const float kept = before == -INFINITY ? 0 : std::exp(before - now);
      sum(r0 + i) = sum(r0 + i) * kept + GE_ON_ISA(exp_row)(s.scores + i * s.ld, s.scores + i * s.ld, round_up(n, 16), base);
      if (t0_ > 0 && kept != 1) GE_ON_ISA(scale_row)(acc(r0 + i), kept, acc(r0 + i), p_.ld_acc);
    }
    mix(s, r0, m, n);
  }

  void score(const ScoreBlock& s, int64_t m, int64_t n) {
    const View& q = call_.in[0];
    const float* base = q.as<float>() + batch_ * q.strides[0];
    const int64_t* offset = scratch<int64_t>(p_.at_offset);
    if (p_.copy_q) {
      float* copy = scratch<float>(p_.at_q);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < p_.d; ++j) copy[i * p_.d + j] = base[offset[i] + j * q.strides[3]];
      base = copy;
    }
    Block t;
    t.m = m, t.n = n, t.a = base, t.segment_k = p_.d;
    if (p_.copy_q)
      t.lda = p_.d;
    else
      t.row_offset = offset;
    if (p_.direct) t.b_form = BForm::columns, t.b_narrow = k_narrow_, t.narrow = narrow(call_.in[1]);
    t.b = k_, t.b_stride = k_stride_, t.c = s.scores, t.ldc = s.ld;
    t.epilogue.scale = p_.scale;
    t.epilogue.context = &s;
    t.epilogue.finish = [](const void* x, float*, int64_t, int64_t row, int64_t rows, int64_t column, int64_t columns) {
      GE_ON_ISA(prepare_scores)(*static_cast<const ScoreBlock*>(x), row, rows, column, columns);
    };
    if (p_.bf16) return multiply_rounded(t, base, p_.copy_q ? nullptr : offset, p_.d, p_.d, scratch<uint16_t>(p_.at_q16), k16_);
    multiply(t);
  }

  static Narrow narrow(const View& v) { return v.dtype == DType::f16 ? Narrow::f16 : v.dtype == DType::i8 ? Narrow::i8 : Narrow::bf16; }

  void mix(const ScoreBlock& s, int64_t r0, int64_t m, int64_t n) {
    if (v_scale_)
      for (int64_t i = 0; i < m; ++i) GE_ON_ISA(multiply_row)(s.scores + i * s.ld, v_scale_, n);
    Block t;
    t.m = m, t.n = p_.dv, t.a = s.scores, t.lda = s.ld, t.segment_k = n;
    if (p_.direct) t.b_form = BForm::rows, t.b_narrow = v_narrow_, t.narrow = narrow(call_.in[2]);
    t.b = v_, t.b_stride = v_stride_, t.c = acc(r0), t.ldc = p_.ld_acc;
    t.epilogue.accumulate = t0_ > 0;
    if (p_.bf16) return multiply_rounded(t, s.scores, nullptr, s.ld, n, scratch<uint16_t>(p_.at_p16), v16_);
    multiply(t);
  }

  void write(int64_t r) {
    const View& o = call_.out[0];
    float* out = o.as<float>() + batch_ * o.strides[0] + head(r) * o.strides[1] + r % p_.s * o.strides[2];
    const bool nothing = sum(r) == 0 || (p_.zero_nan && std::isnan(sum(r)));
    const float factor = nothing ? p_.empty : 1 / sum(r);
    if (nothing) std::fill_n(acc(r), p_.dv, 1.f);
    if (o.strides[3] == 1 || p_.dv == 1) return GE_ON_ISA(scale_row)(acc(r), factor, out, p_.dv);
    for (int64_t j = 0; j < p_.dv; ++j) out[j * o.strides[3]] = acc(r)[j] * factor;
  }

  const Call& call_;
  const Plan& p_;
  int64_t batch_, head_, row0_, row1_;
  int64_t t0_ = 0, keys_ = 0, k_stride_ = 0, v_stride_ = 0;
  const float *k_ = nullptr, *v_ = nullptr;
  const uint16_t *k16_ = nullptr, *v16_ = nullptr;         // pair panels in bf16
  const void *k_narrow_ = nullptr, *v_narrow_ = nullptr;   // 16 or 8 bits as they lie
  const float *k_scale_ = nullptr, *v_scale_ = nullptr;    // of 8 bits as they lie
};

Status run(const Call& call, int64_t chunk) {
  const Plan& p = *static_cast<const Plan*>(call.state);
  const int64_t last = p.units * (chunk + 1) / p.chunks;
  for (int64_t u = p.units * chunk / p.chunks; u < last; ++u) RowUnit(call, p, u).run();
  return ok();
}

double operations(const Call& call) {
  const Plan& p = *static_cast<const Plan*>(call.state);
  double seen = 0;   // pairs of a query and a key of one head
  for (int64_t s = 0; s < p.s; ++s)
    seen += static_cast<double>(p.causal ? std::clamp<int64_t>(s + 1 + p.offset + (p.causal == 2 ? p.t - p.s : 0), 0, p.t) : p.t);
  return 2.0 * static_cast<double>(p.b * p.h) * seen * static_cast<double>(p.d + p.dv);
}

const Register kAttention(
    Kernel{.name = "cube.attention", .unit = Unit::cube, .prepare = prepare, .run = run, .operations = operations});

}  // namespace
}  // namespace ge::kernels::cube
