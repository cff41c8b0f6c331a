// Elementwise operators: meaning by hand-computed values, fast paths against the reference, symbols.
#include "infer_op.h"
#include "node_case.h"
#include "ops/elementwise.h"

namespace ge::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();

struct Case {
  std::string op;
  DType type;
  std::vector<std::vector<double>> in;
  std::vector<double> want;
  Attrs attrs = {};
};

Tensor run_reference(const Case& t) {
  NodeCase n;
  for (auto& v : t.in) n.in(tensor(t.type, {static_cast<int64_t>(v.size())}, v));
  auto out = n.op(t.op, t.attrs).reference();
  return out.empty() ? Tensor() : out[0];
}

TEST(Elementwise, MeansWhatOnnxSays) {
  auto f32 = DType::f32;
  auto i32 = DType::i32;
  const Case cases[] = {
      {"Div", i32, {{-7, 7, -8, 5}, {2, -2, 3, 0}}, {-3, -3, -2, 0}},
      {"Mod", i32, {{-7, 7, -6, 5}, {3, -3, 3, 0}}, {2, -2, 0, 0}},
      {"Mod", i32, {{-7, 7}, {3, -3}}, {-1, 1}, {{"fmod", int64_t{1}}}},
      {"Mod", f32, {{-7.5, 7.5, 3, 3}, {2, -2, kInf, -kInf}}, {0.5, -0.5, 3, -kInf}},
      {"Mod", f32, {{-7.5, 7.5}, {2, -2}}, {-1.5, 1.5}, {{"fmod", int64_t{1}}}},
      {"Max", f32, {{1, kNaN, 2}, {3, 1, kNaN}}, {3, kNaN, kNaN}},
      {"Min", f32, {{1, kNaN, 2}, {3, 1, kNaN}}, {1, kNaN, kNaN}},
      {"Relu", f32, {{-1, 0, kNaN, 2, -kInf, kInf}}, {0, 0, kNaN, 2, 0, kInf}},
      {"Clip", f32, {{-5, kNaN, 5, 0}, {-1}, {2}}, {-1, kNaN, 2, 0}},
      {"Clip", f32, {{-5, 5}, {3}, {1}}, {1, 1}},
      {"Round", f32, {{0.5, 1.5, 2.5, -0.5, -1.5}}, {0, 2, 2, 0, -2}},
      {"Sign", f32, {{-3, 0, 4, kNaN}}, {-1, 0, 1, kNaN}},
      {"Pow", i32, {{2, -1, 1, 3, -2}, {10, -3, -5, -1, 3}}, {1024, -1, 1, 0, -8}},
      {"Sum", f32, {{1, 2}, {3, 4}, {5, 6}}, {9, 12}},
      {"Mean", f32, {{1, 2}, {3, 4}, {5, 9}}, {3, 5}},
      {"PRelu", f32, {{-2, 3}, {0.5, 0.5}}, {-1, 3}},
      {"Elu", f32, {{-1, 2}}, {std::expm1(-1.0), 2}},
      {"Selu", f32, {{1}}, {1.05070102214813232421875}},
      {"HardSigmoid", f32, {{-5, 0, 1, 5}}, {0, 0.5, 0.7, 1}},
      {"HardSwish", f32, {{-4, 0, 3, 1}}, {0, 0, 3, 1 * (1.0 / 6 + 0.5)}},
      {"Shrink", f32, {{-2, -0.2, 0.2, 2}}, {-1.5, 0, 0, 1.5}, {{"bias", 0.5}, {"lambd", 0.5}}},
      {"ThresholdedRelu", f32, {{0.5, 1, 1.5}}, {0, 0, 1.5}},
      {"Gelu", f32, {{1}}, {0.8413447460685429}},
      {"Gelu", f32, {{1}}, {0.8411919906082768}, {{"approximate", std::string("tanh")}}},
      {"Swish", f32, {{2}}, {2 / (1 + std::exp(-2.0))}},
      {"Swish", f32, {{2}}, {2 / (1 + std::exp(-1.0))}, {{"alpha", 0.5}}},
      {"BitShift", DType::u8, {{200, 1, 3}, {1, 7, 9}}, {144, 128, 0}, {{"direction", std::string("LEFT")}}},
      {"BitShift", DType::i8, {{-128, 64, -1}, {1, 1, 100}}, {-64, 32, -1}, {{"direction", std::string("RIGHT")}}},
      {"BitwiseXor", i32, {{6, -1}, {3, 5}}, {5, -6}},
      {"BitwiseNot", DType::u8, {{0, 255}}, {255, 0}},
      {"Abs", DType::i8, {{-128, -5}}, {-128, 5}},
      {"Neg", DType::i64, {{5, -3}}, {-5, 3}},
      {"Add", DType::u8, {{250}, {10}}, {4}},
      {"Sub", DType::u32, {{1}, {2}}, {4294967295.0}},
  };
  for (auto& t : cases) {
    Tensor got = run_reference(t);
    expect_close(got, tensor(t.type, got.dims(), t.want), t.type == f32 ? 1e-6 : 0);
    if (HasFatalFailure()) FAIL() << "in " << t.op;
  }
}

TEST(Elementwise, ComparisonsGiveBool) {
  NodeCase n;
  n.in(tensor(DType::f32, {4}, {1, 2, kNaN, 3})).in(tensor(DType::f32, {4}, {1, 3, kNaN, 2})).op("LessOrEqual");
  auto out = n.reference();
  ASSERT_EQ(out[0].dtype(), DType::boolean);
  const double want[] = {1, 1, 0, 0};
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(out[0].at(i), want[i]);
}

TEST(Elementwise, InfinitiesByDirection) {
  NodeCase n;
  n.in(tensor(DType::f32, {3}, {kInf, -kInf, 1})).op("IsInf", {{"detect_negative", int64_t{0}}});
  auto out = n.reference();
  EXPECT_EQ(out[0].at(0), 1);
  EXPECT_EQ(out[0].at(1), 0);
  EXPECT_EQ(out[0].at(2), 0);
}

TEST(Elementwise, MixedPow) {
  NodeCase n;
  n.in(tensor(DType::i32, {2}, {4, 9})).in(tensor(DType::f32, {2}, {0.5, 0.5})).op("Pow");
  auto out = n.lowered();
  ASSERT_EQ(out[0].dtype(), DType::i32);
  EXPECT_EQ(out[0].at(0), 2);
  EXPECT_EQ(out[0].at(1), 3);
}

double tolerance(DType t) {
  switch (t) {
    case DType::f32: return 4e-6;
    case DType::f64: return 1e-13;
    case DType::f16: return 2e-3;
    case DType::bf16: return 1.6e-2;
    default: return 0;
  }
}

struct Shapes {
  std::vector<std::vector<int64_t>> in;
  std::vector<std::vector<int>> layout;  // of each input; missing: row-major
  std::vector<int> out_layout = {};
};

const Shapes kShapes[] = {
    {{{}, {}}, {}},
    {{{0}, {1}}, {}},
    {{{1}, {1}}, {}},
    {{{37}, {37}}, {}},
    {{{3, 1, 5}, {7, 1}}, {}},
    {{{2, 3, 4, 5}, {1, 3, 1, 1}}, {{0, 2, 3, 1}, {}}, {0, 2, 3, 1}},
    {{{2, 3, 4, 5}, {2, 3, 4, 5}}, {{0, 2, 3, 1}, {}}, {}},
    {{{67, 33}, {33}}, {{1, 0}, {}}, {}},
    {{{1025, 3}, {1}}, {}},
};

// Operands that keep the operator defined (acosh, log) and away from where rounding decides (floor).
Tensor operand(ops::Ew op, DType t, const std::vector<int64_t>& dims, unsigned seed) {
  double low = -2, high = 2;
  using ops::Ew;
  switch (op) {
    case Ew::log: case Ew::sqrt: case Ew::reciprocal: low = 0.1, high = 5; break;
    case Ew::acosh: low = 1.1, high = 4; break;
    case Ew::asin: case Ew::acos: case Ew::atanh: low = -0.9, high = 0.9; break;
    case Ew::tan: low = -1.2, high = 1.2; break;
    case Ew::pow: low = 0.2, high = 3; break;
    case Ew::mod: case Ew::fmod: case Ew::div: low = 1, high = 9; break;
    case Ew::bit_shift_left: case Ew::bit_shift_right: low = 0, high = 9; break;
    default: break;
  }
  if (is_integer(t)) low *= 4, high *= 4;
  return random_tensor(t, dims, seed, low, high);
}

void gate(const std::string& op, ops::Ew code, DType t, const Attrs& attrs) {
  using namespace kernels::reference;
  for (auto& s : kShapes) {
    size_t inputs = is_unary(code) ? 1 : is_binary(code) ? 2 : code == Ew::clip ? 1 : 3;
    NodeCase n;
    for (size_t i = 0; i < inputs; ++i) {
      size_t k = std::min<size_t>(i, 1);
      if (op == "PRelu" && s.in[0].size() < s.in[k].size()) return;
      n.in(operand(code, t, s.in[k], static_cast<unsigned>(i) * 77 + 5), false, k < s.layout.size() ? s.layout[k] : std::vector<int>{});
    }
    if (code == Ew::clip) n.in(tensor(t, {}, {1})).in(tensor(t, {}, {2}));
    n.op(op, attrs, 1, s.out_layout);
    auto want = n.reference(), got = n.lowered();
    ASSERT_EQ(got.size(), 1u) << op << " " << name(t);
    // A remainder that rounding turns into the divisor itself is right as well.
    if ((code == Ew::mod || code == Ew::fmod) && is_float(t) && t != DType::f64) continue;
    expect_close(got[0], want[0], tolerance(t));
    if (testing::Test::HasFatalFailure()) FAIL() << op << " " << name(t) << " by " << n.kernels()[0];
  }
}

TEST(Elementwise, FastPathsGiveTheReference) {
  const DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32, DType::u32,
                         DType::u64, DType::i16, DType::u16, DType::i8, DType::u8, DType::boolean};
  int checked = 0;
  for (auto* def : ops::all()) {
    if (def->vector_kind != ops::VectorKind::elementwise || def->layout != ops::inherit_layout) continue;
    auto code = ops::elementwise_entry(def->name).code;
    for (DType t : types) {
      if (!kernels::reference::takes(code, t)) continue;
      Attrs attrs;
      if (def->name == "BitShift") attrs["direction"] = std::string("LEFT");
      gate(def->name, code, t, attrs);
      if (HasFatalFailure()) return;
      ++checked;
    }
  }
  EXPECT_GT(checked, 300);
}

TEST(Elementwise, TypedKernelInPlaceAndOverManyInputs) {
  // Over the first input, with three of them: each is read before it is written.
  auto* k = kernels::find("elementwise.typed");
  std::vector<double> x{1, 2, 3}, y{10, 20, 30}, z{100, 200, 300};
  const int64_t dims[] = {3}, strides[] = {1};
  auto view = [&](std::vector<double>& v) { return View{reinterpret_cast<std::byte*>(v.data()), DType::f64, 1, dims, strides}; };
  View in[] = {view(x), view(y), view(z)}, out[] = {view(x)};
  const int64_t ints[] = {static_cast<int64_t>(ops::Ew::mean)};
  kernels::Call call{in, out, ints, {}, {}};
  auto work = k->prepare(call);
  ASSERT_TRUE(work.ok());
  call.state = work->state.get();
  ASSERT_TRUE(k->run(call, 0).ok());
  EXPECT_EQ(x, (std::vector<double>{37, 74, 111}));
}

TEST(Elementwise, HostileCallsGetErrors) {
  const int64_t dims[] = {2, 3}, strides[] = {3, 1}, negative[] = {-1, 3}, huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  auto view = [&](DType t, const int64_t* d, int32_t rank = 2) { return View{nullptr, t, rank, d, strides}; };
  for (auto* name : {"ref.elementwise", "elementwise.typed"}) {
    auto* k = kernels::find(name);
    auto refused = [&](std::vector<View> in, std::vector<View> out, std::vector<int64_t> ints) {
      const double floats[] = {0, 0};
      return !k->prepare({in, out, ints, floats, {}}).ok();
    };
    View x = view(DType::f32, dims);
    int64_t add = static_cast<int64_t>(ops::Ew::add);
    EXPECT_FALSE(refused({x, x}, {x}, {add}));
    EXPECT_TRUE(refused({}, {}, {}));
    EXPECT_TRUE(refused({x, x}, {x}, {}));
    EXPECT_TRUE(refused({x, x}, {x}, {77777}));
    EXPECT_TRUE(refused({x}, {x}, {add}));
    EXPECT_TRUE(refused({x, view(DType::i32, dims)}, {x}, {add}));
    EXPECT_TRUE(refused({x, x}, {view(DType::boolean, dims)}, {add}));
    EXPECT_TRUE(refused({x, x}, {view(DType::f32, negative)}, {add}));
    EXPECT_TRUE(refused({x, x}, {view(DType::f32, huge)}, {add}));
    EXPECT_TRUE(refused({x, x}, {view(DType::f32, dims, 13)}, {add}));
    EXPECT_TRUE(refused({x, x}, {view(DType::f32, nullptr)}, {add}));
    EXPECT_TRUE(refused({x, View{}}, {x}, {add}));
    EXPECT_TRUE(refused({view(DType::string, dims), view(DType::string, dims)}, {view(DType::string, dims)}, {add}));
  }
}

// --- inference ---

TEST(ElementwiseInfer, BroadcastsSymbols) {
  EXPECT_EQ(OneOp().in(DType::f32, {sym("b"), 1, 4}).in(DType::f32, {sym("s"), 4}).op("Add").type(), "f32[b,s,4]");
  EXPECT_EQ(OneOp().in(DType::f32, {sym("b"), 3}).in(DType::f32, {3}).op("Less").type(), "bool[b,3]");
  EXPECT_EQ(OneOp().unranked(DType::f32).in(DType::f32, {3}).op("Mul").type(), "f32[?]");
  EXPECT_NE(OneOp().in(DType::f32, {2}).in(DType::f32, {3}).op("Add").type().find("do not broadcast"), std::string::npos);
  EXPECT_NE(OneOp().in(DType::f32, {2}).in(DType::i32, {2}).op("Add").type().find("input 1 is i32"), std::string::npos);
}

TEST(ElementwiseInfer, ShapeArithmetic) {
  auto two = [](const char* op, std::vector<Dim> a, std::vector<Dim> b, Attrs attrs = {}) {
    return OneOp().elements(std::move(a)).elements(std::move(b)).op(op, std::move(attrs)).content();
  };
  Dim s = sym("s");
  EXPECT_EQ(two("Add", {s, 3}, {1, 2}), text({s + Dim(1), Dim(5)}));
  EXPECT_EQ(two("Mul", {s, 3}, {2}), text({s * Dim(2), Dim(6)}));
  EXPECT_EQ(two("Div", {s, -7}, {2, 2}), text({floordiv(s, Dim(2)), Dim(-3)}));
  // What may be negative is rounded towards 0.
  EXPECT_EQ(two("Div", {s - Dim(1)}, {2}), text({floordiv(max(s - Dim(1), Dim(0)), Dim(2))}));
  std::string quotient = two("Div", {s - Dim(9)}, {2});
  auto wide = Dim::parse(std::string_view(quotient).substr(1, quotient.size() - 2));
  ASSERT_TRUE(wide.ok()) << quotient;
  for (int64_t v : {0, 2, 8, 9, 10, 12}) EXPECT_EQ(*wide->eval([&](std::string_view) { return v; }), (v - 9) / 2) << v;
  EXPECT_EQ(two("Mod", {Dim(-7)}, {3}), "[2]");
  EXPECT_EQ(two("Equal", {s, s}, {s, -1}), "[1,0]");
  EXPECT_EQ(two("Less", {-1}, {s}), "[1]");
  EXPECT_EQ(two("Max", {s, 2}, {0, 9}), text({s, Dim(9)}));
  EXPECT_EQ(OneOp().elements({s, 4}).op("Neg").content(), text({Dim(0) - s, Dim(-4)}));
}

TEST(ElementwiseInfer, ClipBoundsWereAttributes) {
  OneOp n;
  n.in(DType::f32, {2}).op("Clip", {{"min", -1.0}, {"max", 1.0}});
  ASSERT_TRUE(n.upgrade(6).ok());
  auto& node = n.g.node(n.node);
  ASSERT_EQ(node.inputs.size(), 3u);
  EXPECT_EQ(n.g.value(node.inputs[1]).constant->at(0), -1);
  EXPECT_EQ(n.g.value(node.inputs[2]).constant->at(0), 1);
  EXPECT_TRUE(node.attrs.empty());
}

}  // namespace
}  // namespace ge::test
