// Kernel "cube.recurrent": all steps of an LSTM, GRU or RNN, given the sums from its input. A chunk is one
// direction of a block of rows of the batch; it keeps the states in its scratch, and each step is one product
// with the packed recurrent weights and one pass over the gates.
//
//   in[0]  f32 [S, B, D, N], N = G * H up to 16: X x W^T + Wb in the order of recurrent.h; the last axis dense
//   in[1]  R: f32 [D, N / 16, H, 16], dense (cube.pack_gates)
//   in[2]  Rb: f32 [D, N], dense, in the same order, or absent
//   in[3]  sequence_lens i32 [B], or absent: steps from a row's length on give zeros and leave its state;
//          reversed directions start at the length; a row of length 0 gives zeros, its final states too
//   in[4]  initial_h, in[5] initial_c: f32 [D, B, H], any strides, or absent (zeros)
//   in[6]  peepholes: f32 [D, 3 H] (i, o, f), any strides, or absent
// With recurrent weights in bytes (LSTM), each row of the state is rounded to bytes over its largest magnitude in each
// step, and its sums are exact (as ONNX Runtime's DynamicQuantizeLSTM, whose scale is one for the whole batch):
//   in[1]  R: i8 [D, N / 16, 64 ceil(H / 4)], dense: panels of integer.h; in[2] absent, Rb is in the sums
//   in[7]  f32 [D, N]: scale of each column; in[8], in[9] i32 [D, N]: what each column's sum begins with (-128 times
//          the sum of its bytes), and its zero point, which may be absent. Dense
//   out[0] Y f32 [S, D, B, H], out[1] Y_h, out[2] Y_c f32 [D, B, H]: any strides, each may be absent
//   ints, floats: kernels/recurrent.h
#include "kernels/cube/recurrent.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cube/check.h"
#include "kernels/cube/integer.h"
#include "kernels/cube/microkernel.h"
#include "kernels/cube/pack.h"

namespace ge::kernels::cube {
namespace {

// A chunk has the rows of one tile of the microkernel, which keeps a core busy while the weights come from a
// cache in every step; where they come from memory it has more.
constexpr int64_t kCachedBytes = 4 << 20;  // weights of a direction
constexpr int64_t kRows = 6, kFarRows = 24;
constexpr int64_t kMaxBlocks = 64;

struct Plan {
  RecurrentParams params;
  int64_t s = 0, b = 0, d = 0, h = 0, units = 0, gates = 0, n = 0;
  int64_t blocks = 1, rows = 0;   // of the batch; rows: of the largest block
  bool reset_first = false;       // GRU: the product with R_h comes after the reset
  bool usual[kMaxDirections] = {};
  bool bytes = false;             // recurrent weights
  int64_t at_h = 0, at_c = 0, at_sum = 0, at_reset = 0, at_peep = 0, at_length = 0, scratch = 0;
  int64_t at_bytes = 0, at_bytes_sum = 0, at_scale = 0, at_zeros = 0;
};

Error bad(std::string why) { return error(code::kBadOp, "cube.recurrent: " + why); }

bool wanted(const Call& c, size_t i) { return c.out[i].dtype != DType::none; }

bool is(const View& v, std::initializer_list<int64_t> dims) {
  return v.rank == static_cast<int>(dims.size()) && std::equal(dims.begin(), dims.end(), v.dims);
}

Status check_types(const Call& c) {
  if ((c.in.size() != 7 && c.in.size() != 10) || c.out.size() != 3 || !c.blob.empty()) return bad("takes 7 or 10 inputs and 3 outputs");
  const bool bytes = c.in.size() == 10;
  const int rank_in[10] = {4, bytes ? 3 : 4, 2, 1, 3, 3, 2, 2, 2, 2}, rank_out[3] = {4, 3, 3};
  for (size_t i = 0; i < c.in.size(); ++i) {
    const DType type = i == 1 && bytes ? DType::i8 : i == 3 || i > 7 ? DType::i32 : DType::f32;
    if (i < 2 || i == 7 || i == 8 || has_input(c, i))
      GE_RETURN_IF_ERROR(check_view(c.in[i], type, rank_in[i], rank_in[i], format("input {} of cube.recurrent", i)));
  }
  for (size_t i = 0; i < 3; ++i)
    if (wanted(c, i))
      GE_RETURN_IF_ERROR(check_view(c.out[i], DType::f32, rank_out[i], rank_out[i], format("output {} of cube.recurrent", i)));
  return ok();
}

Status check_bytes(const Call& c, const Plan& p) {
  if (p.params.cell != Cell::lstm || has_input(c, 2)) return bad("only an LSTM without a bias has weights in bytes");
  for (size_t i : {7, 8, 9})
    if (i < 9 || has_input(c, i))
      if (!is(c.in[i], {p.d, p.n}) || !c.in[i].dense()) return bad("a parameter of the columns does not fit");
  return ok();
}

// The number of units, as the outputs have it; weights in bytes do not tell.
int64_t units_of_outputs(const Call& c) {
  for (size_t i = 0; i < 3; ++i)
    if (wanted(c, i)) return c.out[i].dims[c.out[i].rank - 1];
  return 0;
}

Status check_sizes(const Call& c, Plan& p) {
  const View &x = c.in[0], &r = c.in[1];
  p.bytes = c.in.size() == 10;
  p.s = x.dims[0], p.b = x.dims[1], p.d = x.dims[2], p.n = x.dims[3], p.h = p.bytes ? units_of_outputs(c) : r.dims[2];
  p.gates = gates_of(p.params.cell), p.units = panels(p.h) * 16;
  if (p.d != p.params.directions) return bad(format("{} directions, not {}", p.d, p.params.directions));
  if (p.n != p.gates * p.units || r.dims[0] != p.d || r.dims[1] != p.n / 16 || (p.bytes ? r.dims[2] != quads(p.h) * 64 : r.dims[3] != 16))
    return bad("the sums and the recurrent weights do not fit");
  if (p.bytes) GE_RETURN_IF_ERROR(check_bytes(c, p));
  if ((p.n > 1 && x.strides[3] != 1) || !r.dense()) return bad("the sums and the recurrent weights must be dense");
  if (has_input(c, 2) && (!is(c.in[2], {p.d, p.n}) || !c.in[2].dense())) return bad("the bias does not fit");
  if (has_input(c, 3) && !is(c.in[3], {p.b})) return bad("sequence_lens do not fit");
  for (size_t i : {4, 5})
    if (has_input(c, i) && !is(c.in[i], {p.d, p.b, p.h})) return bad("an initial state does not fit");
  if (has_input(c, 6) && !is(c.in[6], {p.d, 3 * p.h})) return bad("the peepholes do not fit");
  if (p.params.cell != Cell::lstm && (has_input(c, 5) || has_input(c, 6) || wanted(c, 2)))
    return bad("only an LSTM has a cell state");
  if (wanted(c, 0) && !is(c.out[0], {p.s, p.d, p.b, p.h})) return bad("Y does not fit");
  for (size_t i : {1, 2})
    if (wanted(c, i) && !is(c.out[i], {p.d, p.b, p.h})) return bad("a final state does not fit");
  // Views with an axis of size 0 do not bound the product of the others.
  if (p.n > 0 && (p.b > kMaxElements / p.n || p.h > kMaxElements / p.n)) return bad("the state is too large");
  return ok();
}

bool is_usual(const RecurrentParams& p, size_t d) {
  const auto& a = p.act[d];
  if (p.clip != INFINITY) return false;
  if (p.cell == Cell::rnn) return a[0].kind == Activation::tanh;
  return a[0].kind == Activation::sigmoid && a[1].kind == Activation::tanh &&
         (p.cell == Cell::gru || a[2].kind == Activation::tanh);
}

void lay_out(const Call& c, Plan& p) {
  const int64_t rows = p.n * p.h * (p.bytes ? 1 : 4) <= kCachedBytes ? kRows : kFarRows;
  p.blocks = std::clamp<int64_t>((p.b + rows - 1) / rows, 1, kMaxBlocks);
  if (p.blocks > 2) p.blocks = (p.blocks + 1) / 2 * 2;
  p.rows = (p.b + p.blocks - 1) / p.blocks;
  p.reset_first = p.params.cell == Cell::gru && !p.params.linear_before_reset;
  for (size_t d = 0; d < static_cast<size_t>(p.d); ++d) p.usual[d] = is_usual(p.params, d);
  auto place = [&](int64_t& at, int64_t bytes) {
    at = p.scratch;
    p.scratch += round64(bytes);
  };
  place(p.at_h, p.rows * p.units * 4);
  place(p.at_sum, p.rows * p.n * 4);
  place(p.at_length, p.rows * 8);
  if (p.params.cell == Cell::lstm) place(p.at_c, p.rows * p.units * 4);
  if (p.reset_first) place(p.at_reset, p.rows * p.units * 4);
  if (has_input(c, 6)) place(p.at_peep, 3 * p.units * 4);
  if (!p.bytes) return;
  place(p.at_bytes, p.rows * p.units);
  place(p.at_bytes_sum, p.rows * 4);
  place(p.at_scale, p.rows * 4);
  place(p.at_zeros, p.n * 4);
}

Result<Work> prepare(const Call& c) {
  auto plan = std::make_shared<Plan>();
  GE_TRY(plan->params, read_recurrent(c.ints, c.floats, "cube.recurrent"));
  GE_RETURN_IF_ERROR(check_types(c));
  GE_RETURN_IF_ERROR(check_sizes(c, *plan));
  lay_out(c, *plan);
  Work work;
  work.chunks = plan->b == 0 || plan->h == 0 ? 0 : plan->d * plan->blocks;
  work.scratch = plan->scratch;
  work.state = plan;
  return work;
}

// A row of H values with stride `step` at p, to and from a dense one.
void read_row(const float* p, int64_t step, int64_t h, float* out) {
  if (step == 1) std::copy_n(p, h, out);
  else
    for (int64_t j = 0; j < h; ++j) out[j] = p[j * step];
}
void write_row(const float* from, int64_t h, float* p, int64_t step) {
  if (step == 1) std::copy_n(from, h, p);
  else
    for (int64_t j = 0; j < h; ++j) p[j * step] = from[j];
}

class Chunk {
 public:
  Chunk(const Call& c, const Plan& p, int64_t chunk)
      : c_(c), p_(p), d_(chunk / p.blocks), b0_(p.b * (chunk % p.blocks) / p.blocks),
        m_(p.b * (chunk % p.blocks + 1) / p.blocks - b0_), reverse_(p.params.reverse[static_cast<size_t>(d_)]) {
    h_ = scratch<float>(p.at_h), sum_ = scratch<float>(p.at_sum), length_ = scratch<int64_t>(p.at_length);
    if (p.params.cell == Cell::lstm) cell_ = scratch<float>(p.at_c);
    if (p.reset_first) reset_ = scratch<float>(p.at_reset);
    if (p.bytes) scale_ = scratch<float>(p.at_scale);
  }

  Status run() {
    GE_RETURN_IF_ERROR(read_lengths());
    begin();
    for (int64_t s = 0; s < steps_; ++s) {
      int64_t active = m_;
      while (length_[active - 1] <= s) --active;
      step(s, active);
    }
    if (wanted(c_, 0)) zero_padding();
    for (int64_t i = 0; i < m_; ++i) {
      if (length_[i] > 0) continue;
      std::fill_n(h_ + i * p_.units, p_.units, 0.f);
      if (cell_) std::fill_n(cell_ + i * p_.units, p_.units, 0.f);
    }
    write_states(1, h_);
    write_states(2, cell_);
    return ok();
  }

 private:
  template <class T>
  T* scratch(int64_t at) const {
    return reinterpret_cast<T*>(c_.scratch + at);
  }

  Status read_lengths() {
    steps_ = 0;
    for (int64_t i = 0; i < m_; ++i) {
      int64_t n = p_.s;
      if (has_input(c_, 3)) {
        n = c_.in[3].as<int32_t>()[(b0_ + i) * c_.in[3].strides[0]];
        if (n < 0 || n > p_.s)
          return error(code::kBadOp, format("sequence_lens[{}] is {}, outside 0..{}", b0_ + i, n, p_.s));
      }
      length_[i] = n;
      steps_ = std::max(steps_, n);
    }
    return ok();
  }

  void read_states(size_t input, float* state) {
    std::fill_n(state, m_ * p_.units, 0.f);
    if (!has_input(c_, input)) return;
    const View& v = c_.in[input];
    for (int64_t i = 0; i < m_; ++i)
      read_row(v.as<float>() + d_ * v.strides[0] + (b0_ + i) * v.strides[1], v.strides[2], p_.h, state + i * p_.units);
  }

  void begin() {
    plan_.cell = p_.params.cell, plan_.clip = p_.params.clip, plan_.input_forget = p_.params.input_forget;
    if (p_.bytes) std::fill_n(scratch<float>(p_.at_zeros), p_.n, 0.f);
    plan_.act = p_.params.act[static_cast<size_t>(d_)], plan_.usual = p_.usual[d_];
    read_states(4, h_);
    if (cell_) read_states(5, cell_);
    if (has_input(c_, 6)) {
      float* out = scratch<float>(p_.at_peep);
      std::fill_n(out, 3 * p_.units, 0.f);
      const View& v = c_.in[6];
      for (int64_t k = 0; k < 3; ++k)
        read_row(v.as<float>() + d_ * v.strides[0] + k * p_.h * v.strides[1], v.strides[1], p_.h, out + k * p_.units);
      plan_.peepholes = out;
    }
  }

  // sum = state x R^T + Rb for columns [from, to). Every second step goes backwards, slice by slice: it begins
  // with the weights that the caches still hold from the step before. One row is bound by reading them alone.
  void product(const float* state, int64_t rows, int64_t from, int64_t to, bool backwards) {
    Block t;
    t.m = rows, t.a = state, t.lda = p_.units, t.segment_k = p_.h;
    t.b_stride = p_.h * 16, t.ldc = p_.n;
    const float* r = c_.in[1].as<float>() + d_ * p_.n * p_.h;
    const float* bias = has_input(c_, 2) ? c_.in[2].as<float>() + d_ * p_.n : nullptr;
    const int64_t width = rows < 4 ? 64 : 256, slices = (to - from + width - 1) / width;
    for (int64_t i = 0; i < slices; ++i) {
      const int64_t at = from + (backwards ? slices - 1 - i : i) * width;
      t.n = std::min(width, to - at);
      t.b = r + at * p_.h, t.c = sum_ + at;
      t.epilogue.bias = bias ? bias + at : nullptr;
      multiply(t);
    }
  }

  // The same with weights in bytes; row i's sums are still to be multiplied by scale_[i].
  void product_of_bytes(int64_t rows, bool backwards) {
    const int64_t at = d_ * p_.n, width = 256, slices = (p_.n + width - 1) / width;
    uint8_t* bytes = scratch<uint8_t>(p_.at_bytes);
    int32_t* sums = scratch<int32_t>(p_.at_bytes_sum);
    const bool zeros = has_input(c_, 9);
    for (int64_t i = 0; i < rows; ++i) {
      scale_[i] = quantize_state(h_ + i * p_.units, p_.units, bytes + i * p_.units);
      if (!zeros) continue;
      sums[i] = 0;
      for (int64_t j = 0; j < p_.h; ++j) sums[i] += bytes[i * p_.units + j] - 128;
    }
    IntegerBlock t;
    t.m = rows, t.quads = quads(p_.h), t.a = bytes, t.lda = p_.units, t.b_stride = t.quads * 64, t.ldc = p_.n;
    t.to_float = true, t.bias = scratch<float>(p_.at_zeros), t.row_sum = zeros ? sums : nullptr;
    for (int64_t i = 0; i < slices; ++i) {
      const int64_t j = (backwards ? slices - 1 - i : i) * width;
      t.n = std::min(width, p_.n - j);
      t.b = c_.in[1].as<int8_t>() + (at + j) / 16 * t.b_stride;
      t.start = c_.in[8].as<int32_t>() + at + j, t.scale = c_.in[7].as<float>() + at + j;
      if (zeros) t.column_zero = c_.in[9].as<int32_t>() + at + j;
      t.c = reinterpret_cast<int32_t*>(sum_ + j);
      multiply_integer(t);
    }
  }

  CellStep row(int64_t s, int64_t i) const {
    const View& x = c_.in[0];
    CellStep row;
    row.units = p_.units;
    row.x = x.as<float>() + time(i, s) * x.strides[0] + (b0_ + i) * x.strides[1] + d_ * x.strides[2];
    row.r = sum_ + i * p_.n, row.h = h_ + i * p_.units;
    row.c = cell_ ? cell_ + i * p_.units : nullptr;
    row.reset = reset_ ? reset_ + i * p_.units : nullptr;
    if (scale_) row.scale = scale_[i];
    return row;
  }

  void step(int64_t s, int64_t rows) {
    const bool backwards = s % 2 != 0;
    if (p_.reset_first) {
      product(h_, rows, 0, 2 * p_.units, backwards);
      for (int64_t i = 0; i < rows; ++i)
        if (s < length_[i]) gru_reset(plan_, row(s, i));
        else std::fill_n(reset_ + i * p_.units, p_.units, 0.f);
      product(reset_, rows, 2 * p_.units, p_.n, backwards);
    } else if (p_.bytes) {
      product_of_bytes(rows, backwards);
    } else {
      product(h_, rows, 0, p_.n, backwards);
    }
    for (int64_t i = 0; i < rows; ++i) {
      if (length_[i] <= s) continue;
      const CellStep r = row(s, i);
      if (plan_.cell == Cell::lstm) lstm_step(plan_, r);
      else if (plan_.cell == Cell::rnn) rnn_step(plan_, r);
      else if (p_.reset_first) gru_after_reset(plan_, r);
      else gru_step(plan_, r);
      if (wanted(c_, 0)) write_row(r.h, p_.h, y(time(i, s), i), c_.out[0].strides[3]);
    }
  }

  int64_t time(int64_t i, int64_t s) const { return reverse_ ? length_[i] - 1 - s : s; }
  float* y(int64_t t, int64_t i) const {
    const View& v = c_.out[0];
    return v.as<float>() + t * v.strides[0] + d_ * v.strides[1] + (b0_ + i) * v.strides[2];
  }

  void zero_padding() {
    const int64_t step = c_.out[0].strides[3];
    for (int64_t i = 0; i < m_; ++i)
      for (int64_t t = length_[i]; t < p_.s; ++t) {
        float* out = y(t, i);
        for (int64_t j = 0; j < p_.h; ++j) out[j * step] = 0;
      }
  }

  void write_states(size_t output, const float* state) {
    if (!wanted(c_, output)) return;
    const View& v = c_.out[output];
    for (int64_t i = 0; i < m_; ++i)
      write_row(state + i * p_.units, p_.h, v.as<float>() + d_ * v.strides[0] + (b0_ + i) * v.strides[1], v.strides[2]);
  }

  const Call& c_;
  const Plan& p_;
  int64_t d_, b0_, m_, steps_ = 0;
  bool reverse_;
  CellPlan plan_;
  float *h_ = nullptr, *cell_ = nullptr, *sum_ = nullptr, *reset_ = nullptr, *scale_ = nullptr;
  int64_t* length_ = nullptr;
};

Status run(const Call& call, int64_t chunk) {
  return Chunk(call, *static_cast<const Plan*>(call.state), chunk).run();
}

double operations(const Call& call) {
  const Plan& p = *static_cast<const Plan*>(call.state);
  return 2.0 * static_cast<double>(p.s * p.b * p.d * p.n) * static_cast<double>(p.h);
}

const Register kRecurrent(
    Kernel{.name = "cube.recurrent", .unit = Unit::cube, .prepare = prepare, .run = run, .operations = operations});

}  // namespace
}  // namespace ge::kernels::cube
