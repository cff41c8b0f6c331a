// LSTM, GRU and RNN: values by hand, and the fast kernels against the reference on every instruction set.
#include "infer_op.h"
#include "kernels/isa.h"
#include "node_case.h"

namespace ge::test {
namespace {

using kernels::Isa;

struct Random {
  std::mt19937 engine{7};
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine); }
  bool chance(int64_t n) { return pick(1, n) == 1; }
  int64_t of(std::initializer_list<int64_t> l) { return l.begin()[pick(0, static_cast<int64_t>(l.size()) - 1)]; }
};

constexpr const char* kActivations[] = {"Affine", "Relu", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid",
                                        "Elu", "Softsign", "Softplus", "Tanh", "Sigmoid"};

struct Sizes {
  std::string op;
  int64_t s, b, i, h, d, gates;
  bool batch_first;
  std::vector<int64_t> state() const { return batch_first ? std::vector{b, d, h} : std::vector{d, b, h}; }
};

Sizes random_sizes(Random& r) {
  Sizes z;
  z.op = std::vector<std::string>{"LSTM", "GRU", "RNN"}[static_cast<size_t>(r.pick(0, 2))];
  z.gates = z.op == "LSTM" ? 4 : z.op == "GRU" ? 3 : 1;
  z.s = r.of({0, 1, 2, 5, 9}), z.b = r.of({0, 1, 2, 3, 7, 33, 70}), z.i = r.of({1, 3, 16, 40});
  z.h = r.of({1, 3, 15, 16, 17, 40, 64}), z.d = r.pick(1, 2), z.batch_first = r.chance(3);
  if (r.chance(30)) z.h = 300, z.s = 4, z.b = 2;  // weights in several slices
  return z;
}

Attrs random_attrs(Random& r, const Sizes& z) {
  Attrs a;
  if (!r.chance(4)) a["hidden_size"] = z.h;
  if (z.batch_first) a["layout"] = int64_t{1};
  a["direction"] = std::string(z.d == 2 ? "bidirectional" : r.chance(2) ? "reverse" : "forward");
  if (r.chance(2)) {
    std::vector<std::string> names;
    for (int64_t k = 0; k < z.d * (z.op == "LSTM" ? 3 : z.op == "GRU" ? 2 : 1); ++k) names.push_back(kActivations[r.pick(0, 10)]);
    a["activations"] = names;
    if (r.chance(2)) a["activation_alpha"] = std::vector<double>{0.5, 0.25, 0.75};
    if (r.chance(2)) a["activation_beta"] = std::vector<double>{0.375, 0.5};
  }
  if (r.chance(3)) a["clip"] = 0.5;
  if (z.op == "LSTM" && r.chance(3)) a["input_forget"] = int64_t{1};
  if (z.op == "GRU" && r.chance(2)) a["linear_before_reset"] = int64_t{1};
  return a;
}

// Whether a sum of the gates can leave a gate as large as it came in. Gates multiply states: without bounds a state is
// the cube of the one before it, and after nine steps rounding is all that is left of the digits.
bool unbounded(const Attrs& a) {
  auto names = a.find("activations");
  if (names == a.end() || a.contains("clip")) return false;
  for (auto& name : std::get<std::vector<std::string>>(names->second))
    for (auto no_bound : {"Affine", "Relu", "LeakyRelu", "ThresholdedRelu", "Elu", "Softplus"})
      if (name == no_bound) return true;
  return false;
}

// A node of random operands; values stay small so that recurrences do not blow rounding up.
void build(Random& r, const Sizes& z, const Attrs& attrs, DType t, NodeCase& n) {
  const double small = unbounded(attrs) ? 0.5 : 1, w = small / std::sqrt(static_cast<double>(z.h) + 1);
  unsigned seed = static_cast<unsigned>(r.pick(0, 1 << 20));
  auto any = [&](std::vector<int64_t> dims, double most) { return random_tensor(t, std::move(dims), seed++, -most, most); };
  bool constant = r.chance(2);
  n.in(any(z.batch_first ? std::vector{z.b, z.s, z.i} : std::vector{z.s, z.b, z.i}, 1), false,
       r.chance(3) ? std::vector<int>{1, 0, 2} : r.chance(4) ? std::vector<int>{2, 0, 1} : std::vector<int>{});
  n.in(any({z.d, z.gates * z.h, z.i}, w), constant).in(any({z.d, z.gates * z.h, z.h}, w), r.chance(4) ? !constant : constant);
  auto maybe = [&](Tensor v, bool fixed) { r.chance(2) ? n.in(std::move(v), fixed) : n.none(); };
  maybe(any({z.d, 2 * z.gates * z.h}, 0.5 * small), constant);
  std::vector<double> lengths;
  for (int64_t i = 0; i < z.b; ++i) lengths.push_back(static_cast<double>(r.pick(0, z.s)));
  maybe(tensor(DType::i32, {z.b}, lengths), false);
  maybe(any(z.state(), 1), r.chance(2));
  if (z.op != "LSTM") return;
  maybe(any(z.state(), 1), false);
  maybe(any({z.d, 3 * z.h}, 0.5 * small), constant);
}

std::vector<int> any_layout(Random& r) {
  switch (r.pick(0, 4)) {
    case 0: return {0, 2, 1, 3};
    case 1: return {3, 1, 0, 2};  // the units are not side by side
    default: return {};
  }
}

double largest(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.count(); ++i) most = std::max(most, std::fabs(t.at(i)));
  return most;
}

void compare(DType t, double tolerance, int rounds) {
  Random r;
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(round);
    Sizes z = random_sizes(r);
    // Arguments of one call are drawn in an order that compilers choose: each draw is a statement.
    Attrs attrs = random_attrs(r, z);
    std::vector<int> layout = any_layout(r);
    NodeCase n;
    build(r, z, attrs, t, n);
    const int outputs = z.op == "LSTM" ? 3 : 2;
    for (int k = 0; k < outputs; ++k)
      if (r.chance(4)) n.without(k);
    n.op(z.op, attrs, outputs, layout);
    if (::testing::Test::HasFailure()) return;
    auto want = n.reference(), got = n.lowered();
    ASSERT_EQ(want.size(), got.size());
    EXPECT_EQ(n.kernels().back() == "ref.Recurrent", t == DType::f64);
    for (size_t k = 0; k < want.size(); ++k) {
      if (want[k].empty()) continue;
      EXPECT_LE(largest(want[k]), 8) << "rounding grows with such values";
      expect_close(got[k], want[k], tolerance);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(Recurrent, LoweringGivesTheReferenceOnEveryIsa) {
  for (Isa i : {Isa::portable, Isa::avx2, Isa::avx512}) {
    if (i > kernels::best_isa()) continue;
    ASSERT_TRUE(kernels::set_isa(i));
    SCOPED_TRACE(std::string(kernels::name(i)));
    compare(DType::f32, 1e-5, 400);
  }
  ASSERT_TRUE(kernels::set_isa(kernels::best_isa()));
}

TEST(Recurrent, OtherFloats) {
  compare(DType::f16, 4e-3, 60);
  compare(DType::f64, 0, 30);
}

// One unit, one input: every sum can be written down.
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(Recurrent, LstmByHand) {
  NodeCase n;
  n.in(tensor(DType::f32, {2, 1, 1}, {0.5, -1})).in(tensor(DType::f32, {1, 4, 1}, {1, 2, 3, 4}));
  n.in(tensor(DType::f32, {1, 4, 1}, {0.1, 0.2, 0.3, 0.4})).in(tensor(DType::f32, {1, 8}, {1, 0, 0, 0, 0, 0, -1, 0.5})).none();
  n.in(tensor(DType::f32, {1, 1, 1}, {0.25})).in(tensor(DType::f32, {1, 1, 1}, {-0.5})).in(tensor(DType::f32, {1, 3}, {0.5, -2, 1.5}));
  n.op("LSTM", {}, 3);
  double h = 0.25, c = -0.5;
  std::vector<double> y;
  for (double x : {0.5, -1.0}) {
    double i = sigmoid(x + 0.1 * h + 1 + 0.5 * c), f = sigmoid(3 * x + 0.3 * h - 1 + 1.5 * c);
    c = f * c + i * std::tanh(4 * x + 0.4 * h + 0.5);
    h = sigmoid(2 * x + 0.2 * h - 2 * c) * std::tanh(c);
    y.push_back(h);
  }
  for (auto& got : {n.reference(), n.lowered()}) {
    ASSERT_EQ(got.size(), 3u);
    expect_close(got[0], tensor(DType::f32, {2, 1, 1, 1}, y), 1e-6);
    expect_close(got[1], tensor(DType::f32, {1, 1, 1}, {h}), 1e-6);
    expect_close(got[2], tensor(DType::f32, {1, 1, 1}, {c}), 1e-6);
  }
}

TEST(Recurrent, GruByHandInBothForms) {
  for (bool before : {false, true}) {
    NodeCase n;
    n.in(tensor(DType::f32, {2, 1, 1}, {0.5, -1})).in(tensor(DType::f32, {1, 3, 1}, {1, 2, 3}));
    n.in(tensor(DType::f32, {1, 3, 1}, {0.1, 0.2, 0.3})).in(tensor(DType::f32, {1, 6}, {0, 0, 0.5, 0, 0, 0.75})).none();
    n.in(tensor(DType::f32, {1, 1, 1}, {0.25}));
    n.op("GRU", {{"linear_before_reset", int64_t{before}}}, 2);
    double h = 0.25;
    for (double x : {0.5, -1.0}) {
      double z = sigmoid(x + 0.1 * h), r = sigmoid(2 * x + 0.2 * h);
      double state = before ? r * (0.3 * h + 0.75) : 0.3 * (r * h) + 0.75;
      h = (1 - z) * std::tanh(3 * x + 0.5 + state) + z * h;
    }
    for (auto& got : {n.reference(), n.lowered()}) expect_close(got[1], tensor(DType::f32, {1, 1, 1}, {h}), 1e-6);
  }
}

// A sum of inputs: RNN with the identity as activation, so lengths and directions show in whole numbers.
TEST(Recurrent, LengthsAndDirections) {
  NodeCase n;
  n.in(tensor(DType::f32, {3, 3, 1}, {1, 2, 3, 10, 20, 30, 100, 200, 300})).in(tensor(DType::f32, {2, 1, 1}, {1, 1}));
  n.in(tensor(DType::f32, {2, 1, 1}, {1, 1})).none().in(tensor(DType::i32, {3}, {2, 0, 3}));
  n.in(tensor(DType::f32, {2, 3, 1}, {1000, 1000, 0, 1000, 1000, 0}));
  n.op("RNN", {{"direction", std::string("bidirectional")}, {"activations", std::vector<std::string>{"Affine", "Affine"}}}, 2);
  for (auto& got : {n.reference(), n.lowered()}) {
    ASSERT_EQ(got.size(), 2u);
    expect_close(got[0], tensor(DType::f32, {3, 2, 3, 1}, {1001, 0, 3, 1011, 0, 333, 1011, 0, 33, 1010, 0, 330, 0, 0, 333, 0, 0, 300}), 0);
    expect_close(got[1], tensor(DType::f32, {2, 3, 1}, {1011, 0, 333, 1011, 0, 333}), 0);
  }
}

TEST(Recurrent, NanReachesItsOwnRowOnly) {
  Tensor x = random_tensor(DType::f32, {4, 3, 5}, 1);
  x.as<float>()[1 * 15 + 1 * 5 + 2] = NAN;  // step 1, row 1
  for (const char* op : {"LSTM", "GRU", "RNN"}) {
    const int64_t gates = op[0] == 'L' ? 4 : op[0] == 'G' ? 3 : 1;
    NodeCase n;
    n.in(x).in(random_tensor(DType::f32, {1, gates * 6, 5}, 2), true).in(random_tensor(DType::f32, {1, gates * 6, 6}, 3), true);
    n.op(op, {}, 2);
    for (auto& got : {n.reference(), n.lowered()})
      for (int64_t i = 0; i < got[0].count(); ++i)
        EXPECT_EQ(std::isnan(got[0].at(i)), i / 6 % 3 == 1 && i / 18 >= 1) << op << " " << i;
  }
}

TEST(Recurrent, BadLengthsAreErrors) {
  for (double length : {-1.0, 4.0})
    for (const char* kernel : {"ref.Recurrent", "cube.recurrent"}) {
      Tensor x(DType::f32, {3, 1, 1, 16}), w(DType::f32, {1, 1, 1, 16}), lengths = tensor(DType::i32, {1}, {length});
      Tensor x3(DType::f32, {3, 1, 1}), w3(DType::f32, {1, 1, 1}), y(DType::f32, {3, 1, 1, 1});
      std::vector<View> in = {x.view(), w.view(), {}, lengths.view(), {}, {}, {}}, out = {y.view(), {}, {}};
      if (kernel[0] == 'r') in = {x3.view(), w3.view(), w3.view(), {}, lengths.view(), {}, {}, {}};
      const std::vector<int64_t> ints = {0, 0, 1, 0, 2, 0, 0};
      Status s = ops::run_kernel(kernel, in, out, ints, std::vector<double>{1, 0, 0, 0, 0, 0, 0});
      ASSERT_FALSE(s.ok());
      EXPECT_NE(s.error().text().find("sequence_lens[0]"), std::string::npos) << s.error().text();
    }
}

// The number of units is told by any operand; symbols of X stay.
TEST(Recurrent, Types) {
  OneOp a;
  a.in(DType::f32, {sym("s"), sym("b"), 3}).in(DType::f32, {1, 16, 3}).in(DType::f32, {1, 16, sym("h")}).op("LSTM", {}, 3);
  EXPECT_EQ(a.type(0), "f32[s,1,b,4]");
  EXPECT_EQ(a.type(2), "f32[1,b,4]");
  OneOp b;
  b.in(DType::f32, {sym("b"), sym("s"), 3}).unranked(DType::f32).unranked(DType::f32);
  b.op("GRU", {{"layout", int64_t{1}}, {"hidden_size", int64_t{4}}, {"direction", std::string("bidirectional")}}, 2);
  EXPECT_EQ(b.type(0), "f32[b,s,2,4]");
  EXPECT_EQ(b.type(1), "f32[b,2,4]");
}

TEST(Recurrent, RefusedNodes) {
  const std::vector<std::pair<Attrs, const char*>> bad = {
      {{{"direction", std::string("sideways")}}, "sideways"},
      {{{"activations", std::vector<std::string>{"Tanh"}}}, "activations"},
      {{{"activations", std::vector<std::string>{"Sigmoid", "Tan", "Tanh"}}}, "tan"},
      {{{"hidden_size", int64_t{5}}}, "hidden_size"},
      {{{"layout", int64_t{2}}}, "layout"},
      {{{"clip", -1.0}}, "clip"},
      {{{"direction", std::string("bidirectional")}}, "W"}};
  for (auto& [attrs, word] : bad) {
    OneOp one;
    one.in(DType::f32, {5, 2, 3}).in(DType::f32, {1, 16, 3}).in(DType::f32, {1, 16, 4}).op("LSTM", attrs, 3);
    std::string error = one.type();
    EXPECT_NE(error.find(word), std::string::npos) << word << ": " << error;
  }
}

}  // namespace
}  // namespace ge::test
