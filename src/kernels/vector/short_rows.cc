#include "kernels/vector/short_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/vector/block_copy.h"

namespace ge::kernels::vector {
namespace {

constexpr int64_t kBlockElements = 4096;   // of an operand in a block, about
constexpr int64_t kBlockLanes = 128;       // a step of the machine
constexpr int64_t kFewRows = 64;           // fewer do not fill the lanes
constexpr double kChunkCycles = 60000;


Op of_pairs(Op reduction) {
  switch (reduction) {
    case Op::row_max: return Op::max;
    case Op::row_min: return Op::min;
    case Op::row_prod: return Op::mul;
    case Op::row_isum: return Op::iadd;
    case Op::row_imax: return Op::imax;
    case Op::row_imin: return Op::imin;
    default: return Op::add;
  }
}

// Column c with column c + half, for half = ..., 2, 1.
Reg reduced(ProgramBuilder& b, Op reduction, std::vector<Reg> x) {
  const auto cols = static_cast<int64_t>(x.size());
  for (size_t half = std::bit_ceil(x.size()) / 2; half >= 1; half /= 2)
    for (size_t c = 0; c < half && c + half < x.size(); ++c) x[c] = b.op(of_pairs(reduction), x[c], x[c + half]);
  return reduction == Op::row_mean ? b.op(Op::div, x[0], static_cast<float>(cols)) : x[0];
}

bool is_load(Op op) { return op == Op::load || op == Op::load_i32; }

}  // namespace

Result<Program> unrolled(const Program& p, int64_t cols, const std::vector<bool>& single) {
  const auto count = static_cast<size_t>(cols);
  std::vector<int> first;
  int inputs = 0, outputs = 0;
  for (size_t k = 0; k < single.size(); ++k) {
    int& next = k < p.inputs ? inputs : outputs;
    first.push_back(next);
    next += single[k] ? 1 : static_cast<int>(cols);
  }
  ProgramBuilder b;
  std::vector<std::vector<Reg>> values(kMaxRegs);   // one register, the same for the row, or one for each column
  for (auto& phase : p.phases)
    for (const Inst& i : phase) {
      if (b.size() > kMaxInsts) return error(code::kTooLarge, "the unrolled program is too long");
      auto at = [&](Reg r, size_t c) { return r == kNoReg ? kNoReg : values[r].size() == 1 ? values[r][0] : values[r][c]; };
      auto each = [&](size_t n, auto f) {
        std::vector<Reg> out;
        for (size_t c = 0; c < n; ++c) out.push_back(f(c));
        return out;
      };
      if (i.op == Op::store) {
        const size_t k = p.inputs + i.imm, n = single[k] ? 1 : count;
        for (size_t c = 0; c < n; ++c) b.store(first[k] + static_cast<int>(c), at(i.a, c));
      } else if (is_load(i.op)) {
        const Lane lane = i.op == Op::load ? Lane::f32 : Lane::i32;
        values[i.dst] = each(single[i.imm] ? 1 : count, [&](size_t c) { return b.load(first[i.imm] + static_cast<int>(c), lane); });
      } else if (i.op == Op::constant) {
        values[i.dst] = {b.constant(std::bit_cast<float>(i.imm))};
      } else if (i.op == Op::constant_i32) {
        values[i.dst] = {b.constant_i32(static_cast<int32_t>(i.imm))};
      } else if (is_reduction(i.op)) {
        values[i.dst] = {reduced(b, i.op, each(count, [&](size_t c) { return at(i.a, c); }))};
      } else {
        bool uniform = true;
        for (Reg r : {i.a, i.b, i.c}) uniform &= r == kNoReg || values[r].size() == 1;
        values[i.dst] = each(uniform ? 1 : count, [&](size_t c) { return b.op(i.op, at(i.a, c), at(i.b, c), at(i.c, c)); });
      }
    }
  return b.finish(inputs, outputs, kUnrolledOperands);
}

std::shared_ptr<const ShortRows> ShortRows::plan(const Program& p, const Geometry& g, const Call& call, const ShortRows* before) {
  if (g.outer.empty() || g.row.size() != 1 || g.row_size < 2 || g.row_size > kShortRow || g.outer.back().size < kFewRows) return nullptr;
  auto s = std::make_shared<ShortRows>();
  s->g_ = g;
  s->inputs_ = call.in.size();
  s->rows_ = g.outer.back().size;
  s->block_ = std::max(kBlockLanes, kBlockElements / g.row_size / kBlockLanes * kBlockLanes);
  s->block_ = std::min(s->block_, ceil_div(s->rows_, kBlockLanes) * kBlockLanes);
  s->blocks_ = ceil_div(s->rows_, s->block_);
  s->units_ = s->blocks_;
  for (size_t a = 0; a + 1 < g.outer.size(); ++a) s->units_ *= g.outer[a].size;

  std::vector<OperandSpec> specs;
  int64_t bytes = 0;
  double copies = 0;
  for (size_t k = 0; k < g.single.size(); ++k) {
    const View& v = k < s->inputs_ ? call.in[k] : call.out[k - s->inputs_];
    Operand o{g.single[k] ? 1 : g.row_size, size_of(v.dtype), g.outer.back().steps[k], g.row[0].steps[k], -1};
    const bool still = k < s->inputs_ && o.row_step == 0;
    specs.insert(specs.end(), static_cast<size_t>(o.columns), {v.dtype, still});
    if (!still && o.row_step != o.element) {
      o.buffer = bytes;
      bytes += o.columns * s->stride(o);
      copies += 1;
    }
    s->operands_.push_back(o);
  }
  if (before && before->g_.row_size == g.row_size && before->g_.single == g.single && fits(*before->compiled_, specs)) {
    s->compiled_ = before->compiled_;
  } else {
    auto program = unrolled(p, g.row_size, g.single);
    if (!program.ok()) return nullptr;
    auto compiled = compile(*program, specs);
    if (!compiled.ok()) return nullptr;
    s->compiled_ = *std::move(compiled);
  }
  const int64_t own = round64(scratch_bytes(*s->compiled_, s->block_));
  for (Operand& o : s->operands_)
    if (o.buffer >= 0) o.buffer += own;
  s->scratch_ = own + bytes;
  const double cycles = static_cast<double>(g.rows) * static_cast<double>(g.row_size) * (cycles_per_element(p) + copies);
  const int64_t n = std::min(static_cast<int64_t>(std::min(cycles / kChunkCycles, 512.0)), s->units_);
  s->chunks_ = n < 2 ? 1 : n / 2 * 2;
  return s;
}

int64_t ShortRows::place(size_t k, int64_t outer, int64_t row) const {
  int64_t at = row * operands_[k].row_step;
  for (size_t a = g_.outer.size(); a-- > 1;) {
    const Axis& x = g_.outer[a - 1];
    at += outer % x.size * x.steps[k];
    outer /= x.size;
  }
  return at;
}

void ShortRows::unit(const Call& call, int64_t outer, int64_t row) const {
  const int64_t rows = std::min(block_, rows_ - row);
  std::array<TileOperand, kUnrolledOperands> tiles;
  std::array<std::byte*, kMaxOperands> places;
  TileOperand* tile = tiles.data();
  for (size_t k = 0; k < operands_.size(); ++k) {
    const Operand& o = operands_[k];
    std::byte* memory = (k < inputs_ ? call.in[k] : call.out[k - inputs_]).data + place(k, outer, row);
    places[k] = memory;
    std::byte* from = o.buffer < 0 ? memory : call.scratch + o.buffer;
    const int64_t step = o.buffer < 0 ? o.column_step : stride(o);
    for (int64_t c = 0; c < o.columns; ++c) *tile++ = {from + c * step, 0, o.row_step == 0 ? 0 : 1};
    if (o.buffer >= 0 && k < inputs_)
      copy_block({from, o.element, step}, {memory, o.row_step, o.column_step}, rows, o.columns, o.element);
  }
  run_tile(*compiled_, tiles.data(), 1, rows, call.scratch);
  for (size_t k = inputs_; k < operands_.size(); ++k) {
    const Operand& o = operands_[k];
    if (o.buffer >= 0)
      copy_block({places[k], o.row_step, o.column_step}, {call.scratch + o.buffer, o.element, stride(o)}, rows, o.columns, o.element);
  }
}

void ShortRows::run(const Call& call, int64_t chunk) const {
  for (int64_t u = units_ * chunk / chunks_; u < units_ * (chunk + 1) / chunks_; ++u) unit(call, u / blocks_, u % blocks_ * block_);
}

}  // namespace ge::kernels::vector
