// run_tile(): the rows of a tile through lowered code.
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/vector/compiled.h"
#include "kernels/vector/op_info.h"
#include "tensor/half.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ge::kernels::vector {
namespace {

template <class T>
T read(const std::byte* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

template <class T>
void write(std::byte* p, T x) {
  std::memcpy(p, &x, sizeof x);
}

template <class T>
uint32_t lane_of(T x, Lane lane) {
  if (lane == Lane::f32) return std::bit_cast<uint32_t>(static_cast<float>(x));
  return static_cast<uint32_t>(static_cast<int32_t>(x));
}

// One element as the bits of a lane; the types are those that lowering accepts.
uint32_t read_lane(const std::byte* p, DType t, Lane lane) {
  switch (t) {
    case DType::f16: return std::bit_cast<uint32_t>(f16_to_f32(read<uint16_t>(p)));
    case DType::bf16: return std::bit_cast<uint32_t>(bf16_to_f32(read<uint16_t>(p)));
    case DType::i32: return lane_of(read<int32_t>(p), lane);
    case DType::i64: return lane_of(read<int64_t>(p), lane);
    case DType::u8: return lane_of(read<uint8_t>(p), lane);
    case DType::i8: return lane_of(read<int8_t>(p), lane);
    case DType::u16: return lane_of(read<uint16_t>(p), lane);
    case DType::i16: return lane_of(read<int16_t>(p), lane);
    case DType::boolean: return lane_of(read<uint8_t>(p) != 0, lane);
    default: return read<uint32_t>(p);
  }
}

void write_lane(std::byte* p, DType t, uint32_t bits) {
  switch (t) {
    case DType::f16: return write(p, f32_to_f16(std::bit_cast<float>(bits)));
    case DType::bf16: return write(p, f32_to_bf16(std::bit_cast<float>(bits)));
    case DType::i64: return write(p, static_cast<int64_t>(static_cast<int32_t>(bits)));
    case DType::u8: case DType::i8: return write(p, static_cast<uint8_t>(bits));
    case DType::u16: case DType::i16: return write(p, static_cast<uint16_t>(bits));
    case DType::boolean: return write(p, static_cast<uint8_t>(bits != 0));
    default: return write(p, bits);
  }
}

uint32_t identity(Op op) {
  switch (op) {
    case Op::row_max: return std::bit_cast<uint32_t>(-__builtin_inff());
    case Op::row_min: return std::bit_cast<uint32_t>(__builtin_inff());
    case Op::row_prod: return std::bit_cast<uint32_t>(1.0f);
    case Op::row_imax: return 0x80000000u;
    case Op::row_imin: return 0x7fffffffu;
    default: return 0;
  }
}

class Runner {
 public:
  Runner(const Compiled& c, const TileOperand* operands, int64_t cols, std::byte* scratch)
      : c_(c), t_(*c.table), operands_(operands), base_(scratch), context_(new (scratch) Context), cols_(cols) {
    whole_ = cols / t_.wide_lanes * t_.wide_lanes;
    rest_ = static_cast<int>(cols - whole_);
    if (rest_) t_.set_tails(context_, rest_);
    // Lanes of a reduction that the steps touch, as a power of two.
    int64_t touched = cols <= t_.narrow_lanes ? t_.narrow_lanes : whole_ + (rest_ ? t_.wide_lanes : 0);
    lanes_ = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::min<int64_t>(touched, kSumLanes))));
    if (!c.constants.empty()) std::memcpy(at<std::byte>(c.scalars), c.constants.data(), c.constants.size() * 4);
    set_slots();
  }

  void rows(int64_t count) {
    size_t n = c_.operands.size();
    Slot* s = at<Slot>(c_.slots);
    for (int64_t r = 0; r < count; ++r) {
      // Written, never read back here: a wide load over a narrow store would wait for the store buffer.
      for (size_t k = 0; k < n; ++k) s[k].data = bases_[k] + r * steps_[k];
      load_scalars(r);
      if (expands_) expand(r);
      for (const PhaseCode& ph : c_.phases) phase(ph, r);
    }
  }

 private:
  template <class T>
  T* at(uint32_t offset) {
    return reinterpret_cast<T*>(base_ + offset);
  }

  void set_slots() {
    Slot* s = at<Slot>(c_.slots);
    size_t n = c_.operands.size();
    for (size_t k = 0; k < n; ++k) {
      bases_[k] = operands_[k].data;
      steps_[k] = operands_[k].row_stride_bytes;
      s[k].mask = -1;
      if (static_cast<int>(k) >= c_.inputs || c_.operands[k].broadcast || operands_[k].col_stride) continue;
      bases_[k] = at<std::byte>(c_.expanded) + expanded_bytes(c_) * static_cast<int64_t>(k);
      steps_[k] = s[k].mask = 0;
      expands_ = true;
    }
    s += n;
    for (int k = 0; k < c_.spill_count; ++k) *s++ = {base_ + c_.spills + k * t_.wide_lanes * 4, 0};
    int64_t row = (cols_ + t_.wide_lanes - 1) / t_.wide_lanes * t_.wide_lanes * 4;
    for (int k = 0; k < c_.temp_count; ++k) *s++ = {base_ + c_.temps + k * row, -1};
  }

  void load_scalars(int64_t r) {
    for (const ScalarMove& m : c_.scalar_loads) {
      const TileOperand& o = operands_[m.operand];
      if (r && !o.row_stride_bytes) continue;
      write(at<std::byte>(m.scalar), read_lane(o.data + r * o.row_stride_bytes, c_.operands[static_cast<size_t>(m.operand)].dtype, m.lane));
    }
  }

  // Inputs that turn out to have one value for the row: as many copies as a step reads.
  void expand(int64_t r) {
    for (int k = 0; k < c_.inputs; ++k) {
      const OperandSpec& spec = c_.operands[static_cast<size_t>(k)];
      const TileOperand& o = operands_[k];
      if (spec.broadcast || o.col_stride != 0 || (r && !o.row_stride_bytes)) continue;
      std::byte* to = at<std::byte>(c_.expanded) + expanded_bytes(c_) * k;
      size_t size = static_cast<size_t>(size_of(spec.dtype));
      for (int j = 0; j < t_.wide_lanes; ++j) std::memcpy(to + static_cast<size_t>(j) * size, o.data + r * o.row_stride_bytes, size);
    }
  }

  void phase(const PhaseCode& ph, int64_t r) {
    if (!ph.prologue.empty()) {
      context_->end = 0;
      t_.run_narrow(ph.prologue.data(), context_, 0);
    }
    for (const ScalarMove& m : ph.stores) {
      const TileOperand& o = operands_[m.operand];
      write_lane(o.data + r * o.row_stride_bytes, c_.operands[static_cast<size_t>(m.operand)].dtype,
                 read<uint32_t>(at<std::byte>(m.scalar)));
    }
    if (ph.loop.empty()) return;
    for (const Reduction& x : ph.reductions) t_.fill(at<float>(x.lanes), std::bit_cast<float>(identity(x.op)), lanes_);
    context_->start = ph.loop.data();
    if (ph.sums && cols_ > kSumBlock) {
      blocks(ph);
    } else if (whole_) {
      context_->end = whole_;
      t_.run_wide(ph.loop.data(), context_, 0);
    }
    if (rest_) last_step(ph);
    for (const Reduction& x : ph.reductions) finish(x);
  }

  void last_step(const PhaseCode& ph) {
    context_->end = 0;
    if (rest_ <= t_.narrow_lanes) t_.run_narrow(ph.narrow_tail.data(), context_, whole_);
    else if (rest_ == t_.half_lanes) t_.run_half(ph.half.data(), context_, whole_);
    else if (rest_ < t_.half_lanes) t_.run_half(ph.half_tail.data(), context_, whole_);
    else t_.run_wide(ph.tail.data(), context_, whole_);
  }

  // Long rows: the lanes of a sum are added up every kSumBlock columns, so that errors grow with the
  // block and the number of blocks, not with the row.
  void blocks(const PhaseCode& ph) {
    for (const Reduction& x : ph.reductions) std::memset(at<float>(x.folded), 0, kSumLanes * 4);
    for (int64_t from = 0; from < whole_; from += kSumBlock) {
      context_->end = std::min(whole_, from + kSumBlock);
      t_.run_wide(ph.loop.data(), context_, from);
      if (context_->end < from + kSumBlock) break;  // a part of a block stays in the lanes, whatever the step
      for (const Reduction& x : ph.reductions) {
        if (x.op != Op::row_sum && x.op != Op::row_mean) continue;
        float *lanes = at<float>(x.lanes), *folded = at<float>(x.folded);
        for (int j = 0; j < kSumLanes; ++j) folded[j] += lanes[j], lanes[j] = 0;
      }
    }
  }

  void finish(const Reduction& x) {
    float* lanes = at<float>(x.lanes);
    bool sum = x.op == Op::row_sum || x.op == Op::row_mean;
    if (sum && cols_ > kSumBlock) {
      const float* folded = at<float>(x.folded);
      for (int j = 0; j < kSumLanes; ++j) lanes[j] += folded[j];
    }
    float v = t_.fold(x.op, lanes, lanes_);
    if (x.op == Op::row_mean) v /= static_cast<float>(cols_);
    write(at<std::byte>(x.result), v);
  }

  const Compiled& c_;
  const Table& t_;
  const TileOperand* operands_;
  std::byte* base_;
  Context* context_;
  int64_t cols_, whole_ = 0;
  int rest_ = 0, lanes_ = 0;
  bool expands_ = false;
  std::byte* bases_[kUnrolledOperands];
  int64_t steps_[kUnrolledOperands];
};

// Whether the rows follow one another in every operand, so that the tile is one long row.
bool one_row(const Compiled& c, const TileOperand* operands, int64_t cols) {
  for (size_t k = 0; k < c.operands.size(); ++k) {
    bool single = c.operands[k].broadcast || operands[k].col_stride == 0;
    int64_t expect = single ? 0 : cols * size_of(c.operands[k].dtype);
    if (operands[k].row_stride_bytes != expect) return false;
  }
  return true;
}

}  // namespace

int64_t scratch_bytes(const Compiled& c, int64_t cols) {
  int64_t row = (cols + c.table->wide_lanes - 1) / c.table->wide_lanes * c.table->wide_lanes * 4;
  return (static_cast<int64_t>(c.temps) + row * c.temp_count + 63) / 64 * 64;
}

void run_tile(const Compiled& c, const TileOperand* operands, int64_t rows, int64_t cols, std::byte* scratch) {
  if (rows <= 0 || cols < 0 || (cols == 0 && c.elementwise)) return;
  if (c.elementwise && rows > 1 && one_row(c, operands, cols)) {
    cols *= rows;
    rows = 1;
  }
  Runner(c, operands, cols, scratch).rows(rows);
#if defined(__x86_64__)
  if (c.stream) _mm_sfence();
#endif
}

}  // namespace ge::kernels::vector
