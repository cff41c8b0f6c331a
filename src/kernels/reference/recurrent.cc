// The meaning of LSTM, GRU and RNN: one row of the batch and one direction at a time, in double.
//
//   in[0]  X [S, B, I]      in[1] W [D, G H, I]   in[2] R [D, G H, H]   in[3] bias [D, 2 G H] or absent
//   in[4]  sequence_lens i32 [B] or absent        in[5] initial_h [D, B, H] or absent
//   in[6]  initial_c [D, B, H] or absent          in[7] P [D, 3 H] or absent
//   out[0] Y [S, D, B, H]   out[1] Y_h [D, B, H]  out[2] Y_c [D, B, H]; each may be absent
// A row of length 0 gives zeros, its final states too. ints, floats: kernels/recurrent.h. Gates lie as in ONNX: LSTM i o f c, GRU z r h.
#include "kernels/recurrent.h"

#include "kernels/reference/access.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.Recurrent";

struct Sizes {
  RecurrentParams params;
  int64_t s = 0, b = 0, i = 0, h = 0, g = 0, d = 0;
};

bool is(const View& v, std::initializer_list<int64_t> dims) {
  return v.rank == static_cast<int>(dims.size()) && std::equal(dims.begin(), dims.end(), v.dims);
}

Result<Sizes> sizes_of(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 3, 0));
  if (c.in.size() != 8 || c.out.size() != 3) return bad(kName, "takes 8 inputs and 3 outputs");
  Sizes z;
  GE_TRY(z.params, read_recurrent(c.ints, c.floats, kName));
  if (c.in[0].rank != 3 || c.in[2].rank != 3) return bad(kName, "X and R must have 3 axes");
  z.s = c.in[0].dims[0], z.b = c.in[0].dims[1], z.i = c.in[0].dims[2], z.h = c.in[2].dims[2];
  z.g = gates_of(z.params.cell), z.d = z.params.directions;
  if (!is(c.in[1], {z.d, z.g * z.h, z.i}) || !is(c.in[2], {z.d, z.g * z.h, z.h})) return bad(kName, "the weights do not fit");
  if (present(c, 3) && !is(c.in[3], {z.d, 2 * z.g * z.h})) return bad(kName, "the bias does not fit");
  if (present(c, 4) && (!is(c.in[4], {z.b}) || !is_integer(c.in[4].dtype))) return bad(kName, "sequence_lens do not fit");
  for (size_t k : {5, 6})
    if (present(c, k) && !is(c.in[k], {z.d, z.b, z.h})) return bad(kName, "an initial state does not fit");
  if (present(c, 7) && !is(c.in[7], {z.d, 3 * z.h})) return bad(kName, "the peepholes do not fit");
  if (wanted(c, 0) && !is(c.out[0], {z.s, z.d, z.b, z.h})) return bad(kName, "Y does not fit");
  for (size_t k : {1, 2})
    if (wanted(c, k) && !is(c.out[k], {z.d, z.b, z.h})) return bad(kName, "a final state does not fit");
  for (size_t k = 0; k < 8; ++k)
    if (k != 4 && present(c, k) && !plain_float(c.in[k].dtype)) return bad(kName, "an input is no float");
  for (const View& v : c.out)
    if (v.dtype != DType::none && !plain_float(v.dtype)) return bad(kName, "an output is no float");
  return z;
}

// A chunk keeps h, c, next h, the reset h, and the sums of the gates.
int64_t numbers_kept(const Sizes& z) { return z.h * (z.g + 4); }

int64_t chunks_of(const Sizes& z) {
  if (z.h == 0) return 0;
  return cut(z.d * z.b, static_cast<double>(z.s) * static_cast<double>(numbers_kept(z)) * static_cast<double>(z.i + z.h + 20));
}

Result<Work> prepare(const Call& c) {
  GE_TRY(Sizes z, sizes_of(c));
  // Another axis of size 0 lets single sizes be huge.
  if (z.h > int64_t{1} << 40 || z.b > int64_t{1} << 40) return bad(kName, "the state is too large");
  Work w;
  w.chunks = chunks_of(z);
  w.scratch = numbers_kept(z) * 8;
  return w;
}

double apply(const ActivationSpec& a, double x) {
  switch (a.kind) {
    case Activation::none: return x;
    case Activation::relu: return x < 0 ? 0 : x;
    case Activation::tanh: return std::tanh(x);
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::affine: return a.alpha * x + a.beta;
    case Activation::leaky_relu: return x < 0 ? a.alpha * x : x;
    case Activation::thresholded_relu: return x < a.alpha ? 0 : x;
    case Activation::scaled_tanh: return a.alpha * std::tanh(a.beta * x);
    case Activation::hard_sigmoid: {
      const double y = a.alpha * x + a.beta;
      return y < 0 ? 0 : y > 1 ? 1 : y;
    }
    case Activation::elu: return x < 0 ? a.alpha * std::expm1(x) : x;
    case Activation::softsign: return x / (1 + std::fabs(x));
    case Activation::softplus: return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
  return x;
}

double at(const View& v, int64_t i, int64_t j) { return load(v, i * v.strides[0] + j * v.strides[1]); }
double at(const View& v, int64_t i, int64_t j, int64_t k) {
  return load(v, i * v.strides[0] + j * v.strides[1] + k * v.strides[2]);
}

// One direction of one row of the batch.
class Line {
 public:
  Line(const Call& c, const Sizes& z, int64_t d, int64_t b)
      : c_(c), z_(z), act_(z.params.act[static_cast<size_t>(d)]), d_(d), b_(b) {
    auto* memory = reinterpret_cast<double*>(c.scratch);
    h_ = memory, c_state_ = h_ + z.h, next_ = c_state_ + z.h, reset_ = next_ + z.h, gate_ = reset_ + z.h;
  }

  Status run() {
    int64_t length = z_.s;
    if (present(c_, 4)) {
      length = load_int(c_.in[4], b_ * c_.in[4].strides[0]);
      if (length < 0 || length > z_.s)
        return error(code::kBadOp, format("sequence_lens[{}] is {}, outside 0..{}", b_, length, z_.s));
    }
    for (int64_t j = 0; j < z_.h; ++j) {
      h_[j] = present(c_, 5) ? at(c_.in[5], d_, b_, j) : 0;
      c_state_[j] = present(c_, 6) ? at(c_.in[6], d_, b_, j) : 0;
    }
    for (int64_t s = 0; s < z_.s; ++s) {
      const bool inside = s < length;
      const int64_t t = inside && z_.params.reverse[static_cast<size_t>(d_)] ? length - 1 - s : s;
      if (inside) step(t);
      for (int64_t j = 0; wanted(c_, 0) && j < z_.h; ++j) {
        const View& y = c_.out[0];
        store(y, t * y.strides[0] + d_ * y.strides[1] + b_ * y.strides[2] + j * y.strides[3], inside ? h_[j] : 0);
      }
    }
    for (size_t k : {1, 2}) {
      if (!wanted(c_, k)) continue;
      const View& y = c_.out[k];
      for (int64_t j = 0; j < z_.h; ++j)
        store(y, d_ * y.strides[0] + b_ * y.strides[1] + j * y.strides[2], length == 0 ? 0 : (k == 1 ? h_ : c_state_)[j]);
    }
    return ok();
  }

 private:
  double clip(double x) const {
    const double most = z_.params.clip;
    return x < -most ? -most : x > most ? most : x;
  }
  double from_x(int64_t row, int64_t t) const {
    double sum = present(c_, 3) ? at(c_.in[3], d_, row) : 0;
    for (int64_t i = 0; i < z_.i; ++i) sum += at(c_.in[0], t, b_, i) * at(c_.in[1], d_, row, i);
    return sum;
  }
  double from_h(int64_t row, const double* h) const {
    double sum = present(c_, 3) ? at(c_.in[3], d_, z_.g * z_.h + row) : 0;
    for (int64_t k = 0; k < z_.h; ++k) sum += h[k] * at(c_.in[2], d_, row, k);
    return sum;
  }
  double peep(int64_t gate, int64_t j, double c) const {
    return present(c_, 7) ? at(c_.in[7], d_, gate * z_.h + j) * c : 0;
  }

  void step(int64_t t) {
    if (z_.params.cell == Cell::gru) return gru(t);
    for (int64_t row = 0; row < z_.g * z_.h; ++row) gate_[row] = from_x(row, t) + from_h(row, h_);
    const int64_t n = z_.h;
    for (int64_t j = 0; j < n; ++j) {
      if (z_.params.cell == Cell::rnn) {
        h_[j] = apply(act_[0], clip(gate_[j]));
        continue;
      }
      const double before = c_state_[j];
      const double i = apply(act_[0], clip(gate_[j] + peep(0, j, before)));
      const double f = z_.params.input_forget ? 1 - i : apply(act_[0], clip(gate_[2 * n + j] + peep(2, j, before)));
      c_state_[j] = f * before + i * apply(act_[1], clip(gate_[3 * n + j]));
      const double o = apply(act_[0], clip(gate_[n + j] + peep(1, j, c_state_[j])));
      h_[j] = o * apply(act_[2], c_state_[j]);
    }
  }

  void gru(int64_t t) {
    const int64_t n = z_.h;
    for (int64_t row = 0; row < 2 * n; ++row) gate_[row] = apply(act_[0], clip(from_x(row, t) + from_h(row, h_)));
    for (int64_t j = 0; j < n; ++j) reset_[j] = gate_[n + j] * h_[j];
    for (int64_t j = 0; j < n; ++j) {
      const double r = z_.params.linear_before_reset ? gate_[n + j] * from_h(2 * n + j, h_) : from_h(2 * n + j, reset_);
      const double fresh = apply(act_[1], clip(from_x(2 * n + j, t) + r));
      next_[j] = (1 - gate_[j]) * fresh + gate_[j] * h_[j];
    }
    std::copy(next_, next_ + n, h_);
  }

  const Call& c_;
  const Sizes& z_;
  const std::array<ActivationSpec, kActivations>& act_;
  int64_t d_, b_;
  double *h_, *c_state_, *next_, *reset_, *gate_;
};

Status run(const Call& c, int64_t chunk) {
  GE_TRY(Sizes z, sizes_of(c));
  const Span span = slice(z.d * z.b, chunk, chunks_of(z));
  for (int64_t u = span.begin; u < span.end; ++u) GE_RETURN_IF_ERROR(Line(c, z, u / z.b, u % z.b).run());
  return ok();
}

const Register r({.name = kName, .unit = Unit::cube, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
