// One random convolution: sizes, operands in any layout, and the plain double-precision loops that
// give its meaning. Shared by the tests of cube.conv and cube.depthwise.
#pragma once

#include "conv/conv_test_util.h"
#include "kernels/cube/conv_pack.h"
#include "kernels/vector/program.h"
#include "tensor/half.h"

namespace ge::kernels::testing {

struct ConvCase {
  int rank = 2;
  int64_t n = 1, c = 1, m = 1, groups = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, k[3] = {1, 1, 1}, stride[3] = {1, 1, 1};
  int64_t dilation[3] = {1, 1, 1}, begin[3] = {0, 0, 0}, end[3] = {0, 0, 0};
  int64_t act = 0;
  bool bias = true, residual = false;
  Layout lx = Layout::last, ly = Layout::last, lr = Layout::last;

  std::vector<int64_t> dims(int64_t channels, const int64_t (&sp)[3]) const {
    std::vector<int64_t> d = {n, channels};
    for (int a = 3 - rank; a < 3; ++a) d.push_back(sp[a]);
    return d;
  }
  std::vector<int64_t> weight_dims() const {
    std::vector<int64_t> d = {m, c / groups};
    for (int a = 3 - rank; a < 3; ++a) d.push_back(k[a]);
    return d;
  }
  std::vector<int64_t> ints() const {
    std::vector<int64_t> v = {rank, groups};
    for (auto* p : {&k, &stride, &dilation, &begin})
      for (int a = 3 - rank; a < 3; ++a) v.push_back((*p)[a]);
    v.push_back(act);
    return v;
  }
  std::vector<double> numbers() const {
    return act == 2 ? std::vector<double>{-0.25, 0.5} : std::vector<double>{0.125, 0};
  }
  // False if some window does not fit.
  bool size_output() {
    for (int a = 0; a < 3; ++a) {
      int64_t span = in[a] + begin[a] + end[a] - ((k[a] - 1) * dilation[a] + 1);
      if (span < 0) return false;
      out[a] = span / stride[a] + 1;
    }
    return true;
  }
  int64_t taps_times_pixels() const {
    return n * k[0] * k[1] * k[2] * out[0] * out[1] * out[2] / groups;
  }
  std::string text() const {
    std::string s = "ints ";
    for (int64_t v : ints()) s += std::to_string(v) + ' ';
    s += "x ";
    for (int64_t v : dims(c, in)) s += std::to_string(v) + ' ';
    s += "y ";
    for (int64_t v : dims(m, out)) s += std::to_string(v) + ' ';
    return s + "layouts " + std::to_string(static_cast<int>(lx)) +
           std::to_string(static_cast<int>(ly)) + std::to_string(static_cast<int>(lr)) +
           (residual ? " residual" : "") + " isa " + std::string(name(isa()));
  }
};

inline double apply_act(int64_t act, double v) {
  if (act == 1) return v < 0 ? 0 : v;
  if (act == 2) return std::min(std::max(v, -0.25), 0.5);
  if (act == 3) return v < 0 ? 0.125 * v : v;
  return v;
}

// Row-major over y's dims; x, w, r row-major values. `most` becomes the largest sum before the
// activation, which is what rounding errors scale with.
inline std::vector<double> conv_reference(const ConvCase& p, const std::vector<float>& x,
                                          const std::vector<float>& w,
                                          const std::vector<float>& bias,
                                          const std::vector<float>& r, double& most) {
  std::vector<double> y;
  int64_t cg = p.c / p.groups, mg = p.m / p.groups, taps = p.k[0] * p.k[1] * p.k[2];
  int64_t plane = p.in[0] * p.in[1] * p.in[2], pixels = p.out[0] * p.out[1] * p.out[2];
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t m = 0; m < p.m; ++m)
      for (int64_t o = 0; o < pixels; ++o) {
        int64_t at[3] = {o / (p.out[1] * p.out[2]), o / p.out[2] % p.out[1], o % p.out[2]};
        double sum = p.bias ? bias[static_cast<size_t>(m)] : 0;
        for (int64_t t = 0; t < taps; ++t) {
          int64_t tap[3] = {t / (p.k[1] * p.k[2]), t / p.k[2] % p.k[1], t % p.k[2]}, i[3];
          bool inside = true;
          for (int a = 0; a < 3; ++a) {
            i[a] = at[a] * p.stride[a] + tap[a] * p.dilation[a] - p.begin[a];
            inside = inside && i[a] >= 0 && i[a] < p.in[a];
          }
          if (!inside) continue;
          int64_t pixel = (i[0] * p.in[1] + i[1]) * p.in[2] + i[2];
          for (int64_t c = 0; c < cg; ++c)
            sum += static_cast<double>(
                       x[static_cast<size_t>((n * p.c + m / mg * cg + c) * plane + pixel)]) *
                   w[static_cast<size_t>((m * cg + c) * taps + t)];
        }
        if (p.residual) sum += r[y.size()];
        if (std::isfinite(sum)) most = std::max(most, std::fabs(sum));
        y.push_back(apply_act(p.act, sum));
      }
  return y;
}

// Operands of a case with random values; depthwise and the groups choose the format of
// the weights; narrow groups come in both.
struct ConvOperands {
  ConvOperands(const ConvCase& p, bool depthwise, std::mt19937& rng)
      : x(floats(p.dims(p.c, p.in), p.lx)),
        w(floats(p.weight_dims(), rng() % 2 ? Layout::first : Layout::odd)),
        bias(floats({p.m})),
        r(floats(p.dims(p.m, p.out), p.lr)),
        y(floats(p.dims(p.m, p.out), p.ly)),
        narrow(!depthwise && cube::narrow_groups(p.c, p.m, p.groups) && rng() % 4),
        packed(floats({depthwise ? cube::packed_depthwise_floats(w.view())
                       : narrow  ? cube::packed_narrow_floats(w.view())
                                 : cube::packed_conv_floats(w.view(), p.groups)})) {
    x.fill(rng), w.fill(rng), bias.fill(rng), r.fill(rng);
    if (depthwise)
      cube::pack_depthwise_weights(w.view(), packed.view().as<float>());
    else if (narrow)
      cube::pack_narrow_weights(w.view(), packed.view().as<float>());
    else
      cube::pack_conv_weights(w.view(), p.groups, packed.view().as<float>());
  }
  Task task(const ConvCase& p) {
    Task t{{x.view(), packed.view(), bias.view(), r.view()}, {y.view()}, p.ints(), p.numbers(), {}};
    if (!p.bias) t.in[2].dtype = DType::none;
    if (!p.residual) t.in[3].dtype = DType::none;
    return t;
  }
  std::vector<double> want(const ConvCase& p) {
    return conv_reference(p, x.values(), w.values(), bias.values(), r.values(), most);
  }
  Floats x, w, bias, r, y;
  bool narrow;  // the weights are packed for narrow groups
  Floats packed;
  double most = 0;  // set by want()
};

inline void check_conv(const ConvCase& p, std::string_view kernel, std::mt19937& rng) {
  ConvOperands o(p, kernel == "cube.depthwise", rng);
  run_kernel(kernel, o.task(p), rng);
  if (::testing::Test::HasFatalFailure()) return;
  std::vector<double> want = o.want(p);
  expect_close(o.y.values(), want, 1e-5, p.text(), o.most);
  EXPECT_TRUE(o.y.guards_intact() && o.x.guards_intact()) << p.text();
}

// A vector program behind it: y = relu(conv - a) * b + c, where a is like y, b is one number a channel
// and c one number a pixel.
struct ProgramOperands {
  ProgramOperands(const ConvCase& p, std::mt19937& rng)
      : pixels(static_cast<size_t>(p.out[0] * p.out[1] * p.out[2])), m(static_cast<size_t>(p.m)),
        a(floats(p.dims(p.m, p.out), Layout::last)), b(floats(per_channel(p))), c(floats(p.dims(1, p.out), p.lx)) {
    a.fill(rng), b.fill(rng), c.fill(rng);
  }
  static std::vector<int64_t> per_channel(const ConvCase& p) {
    std::vector<int64_t> d(p.dims(1, p.out).size() - 1, 1);
    d[0] = p.m;
    return d;
  }
  void add_to(Task& t) {
    auto program = vector::parse(
        "v0 = load 0; v1 = load 1; v2 = sub v0 v1; v3 = relu v2; v4 = load 2; v5 = mul v3 v4; v6 = "
        "load 3; "
        "v7 = add v5 v6; store 0 v7");
    ASSERT_TRUE(program.ok()) << program.error().text();
    t.blob = vector::encode(*program);
    for (Floats* f : {&a, &b, &c}) t.in.push_back(f->view());
  }
  void apply(std::vector<double>& want) {
    std::vector<float> av = a.values(), bv = b.values(), cv = c.values();
    for (size_t i = 0; i < want.size(); ++i)
      want[i] = std::max(want[i] - av[i], 0.0) * bv[i / pixels % m] +
                cv[i / pixels / m * pixels + i % pixels];
  }
  size_t pixels, m;
  Floats a, b, c;
};

inline void check_program(ConvCase p, std::string_view kernel, std::mt19937& rng) {
  p.ly = rng() % 3 ? Layout::last : p.ly;
  ConvOperands o(p, kernel == "cube.depthwise", rng);
  ProgramOperands program(p, rng);
  Task t = o.task(p);
  program.add_to(t);
  run_kernel(kernel, t, rng);
  if (::testing::Test::HasFatalFailure()) return;
  std::vector<double> want = o.want(p);
  program.apply(want);
  expect_close(o.y.values(), want, 1e-5, p.text(), o.most);
  EXPECT_TRUE(o.y.guards_intact()) << p.text();
}

// The values of x, which bf16 must hold exactly, as a bf16 operand of layout l.
inline Operand<uint16_t> halves(Floats& x, Layout l) {
  Operand<uint16_t> h(DType::bf16, x.dims(), l);
  std::vector<float> values = x.values();
  size_t i = 0;
  h.each([&](uint16_t& v) { v = f32_to_bf16(values[i++]); });
  return h;
}

// y in bf16: what rounding may move, beside what the order of the sums does.
inline void expect_halves(Operand<uint16_t>& y, const std::vector<double>& want, double most, const std::string& what) {
  std::vector<uint16_t> got = y.values();
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(bf16_to_f32(got[i]), want[i], std::abs(want[i]) / 250 + 1e-5 * std::max(most, 1.0)) << what << " at " << i;
  EXPECT_TRUE(y.guards_intact()) << what;
}

// A task of f32 operands whose x, y and residual are bf16 as `which` says (bits 0, 1 and 2), run and checked.
inline void check_halves(ConvCase p, ConvOperands& o, Task t, std::string_view kernel, unsigned which, const std::vector<double>& want,
                         std::mt19937& rng) {
  Operand<uint16_t> x = halves(o.x, p.lx), r = halves(o.r, p.lr), y(DType::bf16, o.y.dims(), p.ly);
  if (which & 1) t.in[0] = x.view();
  if (which & 2) t.out[0] = y.view();
  if (which & 4 && p.residual) t.in[3] = r.view();
  run_kernel(kernel, t, rng);
  if (::testing::Test::HasFatalFailure()) return;
  const std::string what = p.text() + " bf16 operands " + std::to_string(which);
  if (which & 2) return expect_halves(y, want, o.most, what);
  expect_close(o.y.values(), want, 1e-5, what, o.most);
  EXPECT_TRUE(o.y.guards_intact()) << what;
}

// Makes x and the residual such that bf16 holds them; gives what is then wanted.
inline std::vector<double> want_of_halves(const ConvCase& p, ConvOperands& o) {
  auto round = [](float& v) { v = bf16_to_f32(f32_to_bf16(v)); };
  o.x.each(round), o.r.each(round);
  return o.want(p);
}

// With bf16 operands, without and with a program.
inline void check_conv_halves(const ConvCase& p, std::string_view kernel, std::mt19937& rng) {
  ConvOperands o(p, kernel == "cube.depthwise", rng);
  std::vector<double> want = want_of_halves(p, o);
  check_halves(p, o, o.task(p), kernel, rng() % 8, want, rng);
  if (::testing::Test::HasFatalFailure()) return;
  ProgramOperands program(p, rng);
  Task t = o.task(p);
  program.add_to(t);
  program.apply(want);
  check_halves(p, o, t, kernel, rng() % 8, want, rng);
}

inline Layout any_layout(std::mt19937& rng) {
  return static_cast<Layout>(pick(rng, {0, 1, 1, 1, 2}));
}

// Spatial sizes, windows, layouts, epilogue; channels are the caller's. False if no window fits.
inline bool random_geometry(ConvCase& p, std::mt19937& rng) {
  p.rank = static_cast<int>(pick(rng, {1, 2, 2, 2, 3}));
  p.n = pick(rng, {0, 1, 1, 1, 2, 3});
  for (int a = 3 - p.rank; a < 3; ++a) {
    p.in[a] = pick(rng, {1, 2, 3, 5, 7, 8, 13, 17, 23});
    p.k[a] = pick(rng, {1, 1, 2, 3, 3, 5, 7});
    p.stride[a] = pick(rng, {1, 1, 2, 3});
    p.dilation[a] = pick(rng, {1, 1, 1, 2, 3, 11});
    p.begin[a] = pick(rng, {0, 0, 1, 1, 2, 3, 6});
    p.end[a] = pick(rng, {0, 0, 1, 1, 2, 3, 5});
  }
  if (rng() % 4 == 0)  // square kernels without padding
    for (int a = 0; a < 3; ++a) p.begin[a] = p.end[a] = 0;
  if (rng() % 5 == 0)
    for (int a = 0; a < 3; ++a) p.k[a] = 1;
  p.act = pick(rng, {0, 1, 2, 3});
  p.bias = rng() % 4;
  p.residual = rng() % 3 == 0;
  p.lx = any_layout(rng), p.ly = any_layout(rng), p.lr = rng() % 2 ? p.ly : any_layout(rng);
  return p.size_output();
}

}  // namespace ge::kernels::testing
