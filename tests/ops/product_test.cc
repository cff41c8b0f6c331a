// MatMul, Gemm, Conv and their fused forms: hand-computed values, lowering against the reference, shapes.
#include "infer_op.h"
#include "node_case.h"

namespace ge::test {
namespace {

TEST(MatMul, ByHand) {
  NodeCase n;
  n.in(tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6})).in(tensor(DType::f32, {3, 2}, {1, 0, 0, 1, 1, 1})).op("MatMul");
  expect_close(n.reference()[0], tensor(DType::f32, {2, 2}, {4, 5, 10, 11}), 0);
  expect_close(n.lowered()[0], tensor(DType::f32, {2, 2}, {4, 5, 10, 11}), 0);
}

struct Shape {
  std::vector<int64_t> a, b;
};

TEST(MatMul, LoweringGivesTheReference) {
  const Shape shapes[] = {{{5}, {5}},          {{7}, {7, 3}},         {{3, 7}, {7}},           {{1, 1}, {1, 1}},
                          {{13, 37}, {37, 17}}, {{2, 3, 5, 11}, {11, 16}}, {{2, 3, 5, 11}, {2, 3, 11, 19}},
                          {{3, 1, 5, 11}, {4, 11, 33}}, {{4, 11}, {3, 11, 2}}, {{0, 3}, {3, 4}}, {{2, 0}, {0, 4}}, {{6, 2100}, {2100, 5}}};
  for (DType t : {DType::f32, DType::f16, DType::bf16, DType::f64, DType::i32, DType::i64})
    for (bool constant : {false, true})
      for (auto& s : shapes) {
        NodeCase n;
        n.in(random_tensor(t, s.a, 1)).in(random_tensor(t, s.b, 2), constant).op("MatMul");
        auto want = n.reference(), got = n.lowered();
        ASSERT_EQ(got.size(), 1u);
        expect_close(got[0], want[0], t == DType::f32 ? 2e-6 : t == DType::f64 ? 1e-13 : t == DType::f16 ? 1e-3 : 8e-3);
        if (HasFatalFailure()) FAIL() << name(t) << " " << s.a.size() << " " << s.b.size();
        if (t == DType::f32) { EXPECT_EQ(n.kernels().back(), "cube.matmul"); }
        if (t == DType::i64) { EXPECT_EQ(n.kernels().back(), "matmul.typed"); }
      }
}

TEST(MatMul, OperandsInAnyOrderOfAxes) {
  NodeCase n;
  n.in(random_tensor(DType::f32, {3, 9, 11}, 1), false, {0, 2, 1})
      .in(random_tensor(DType::f32, {3, 11, 20}, 2), false, {1, 2, 0})
      .op("MatMul", {}, 1, {2, 0, 1});
  auto want = n.reference(), got = n.lowered();
  expect_close(got[0], want[0], 2e-6);
}

TEST(Gemm, LoweringGivesTheReference) {
  const std::vector<std::vector<int64_t>> biases = {{}, {1}, {17}, {1, 17}, {13, 1}, {13, 17}};
  for (DType t : {DType::f32, DType::f16, DType::f64})
    for (int flags = 0; flags < 8; ++flags)
      for (size_t k = 0; k <= biases.size(); ++k)
        for (double beta : {1.0, 0.5, 0.0}) {
          bool ta = flags & 1, tb = flags & 2, constant = flags & 4;
          NodeCase n;
          n.in(random_tensor(t, ta ? std::vector<int64_t>{37, 13} : std::vector<int64_t>{13, 37}, 1));
          n.in(random_tensor(t, tb ? std::vector<int64_t>{17, 37} : std::vector<int64_t>{37, 17}, 2), constant);
          if (k < biases.size()) n.in(random_tensor(t, biases[k], 3), constant);
          n.op("Gemm", {{"transA", int64_t{ta}}, {"transB", int64_t{tb}}, {"alpha", 0.75}, {"beta", beta}});
          auto want = n.reference(), got = n.lowered();
          ASSERT_EQ(got.size(), 1u);
          expect_close(got[0], want[0], t == DType::f32 ? 2e-6 : t == DType::f64 ? 1e-13 : 1.5e-3);
          if (HasFatalFailure()) FAIL() << name(t) << " flags " << flags << " bias " << k << " beta " << beta;
        }
}

// ge.MatMul against MatMul and elementwise operators computed here.
TEST(FusedMatMul, TailInOrder) {
  Tensor a = random_tensor(DType::f32, {2, 5, 12}, 1), b = random_tensor(DType::f32, {7, 12}, 2);
  Tensor bias = random_tensor(DType::f32, {7}, 3), residual = random_tensor(DType::f32, {2, 5, 7}, 4);
  Tensor extra = random_tensor(DType::f32, {5, 1}, 5);
  for (bool constant : {false, true}) {
    NodeCase n;
    n.in(a).in(b, constant).in(bias, constant).in(residual).in(extra);
    n.op("ge.MatMul", {{"transpose_b", int64_t{1}}, {"alpha", 0.5}, {"act", std::string("relu")},
                       {"program", std::string("v0 = load 0; v1 = load 1; v2 = mul v0 v1; store 0 v2")}});
    auto got = n.lowered();
    ASSERT_EQ(got.size(), 1u);
    Tensor want(DType::f32, {2, 5, 7});
    for (int64_t i = 0; i < 10; ++i)
      for (int64_t j = 0; j < 7; ++j) {
        double s = 0;
        for (int64_t k = 0; k < 12; ++k) s += a.at(i * 12 + k) * b.at(j * 12 + k);
        double x = std::max(0.0, 0.5 * s + bias.at(j) + residual.at(i * 7 + j));
        put(want, i * 7 + j, x * extra.at(i % 5));
      }
    expect_close(got[0], want, 2e-6);
  }
}

TEST(FusedMatMul, BiasThatIsNoColumnVectorAndResidualTogether) {
  Tensor a = random_tensor(DType::f32, {5, 12}, 1), b = random_tensor(DType::f32, {12, 7}, 2);
  Tensor bias = random_tensor(DType::f32, {5, 1}, 3), residual = random_tensor(DType::f32, {5, 7}, 4);
  NodeCase n;
  n.in(a).in(b).in(bias).in(residual).op("ge.MatMul", {{"act", std::string("leaky")}, {"act_alpha", 0.25}});
  auto got = n.lowered();
  Tensor want(DType::f32, {5, 7});
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 7; ++j) {
      double s = bias.at(i) + residual.at(i * 7 + j);
      for (int64_t k = 0; k < 12; ++k) s += a.at(i * 12 + k) * b.at(k * 7 + j);
      put(want, i * 7 + j, s < 0 ? 0.25 * s : s);
    }
  expect_close(got[0], want, 2e-6);
}

TEST(MatMulInfer, Shapes) {
  Dim b = sym("b"), s = sym("s");
  EXPECT_EQ(OneOp().in(DType::f32, {b, s, 4}).in(DType::f32, {4, 8}).op("MatMul").type(), "f32[b,s,8]");
  EXPECT_EQ(OneOp().in(DType::f32, {4}).in(DType::f32, {b, 4, 8}).op("MatMul").type(), "f32[b,8]");
  EXPECT_EQ(OneOp().in(DType::f32, {4}).in(DType::f32, {4}).op("MatMul").type(), "f32[]");
  EXPECT_NE(OneOp().in(DType::f32, {2, 3}).in(DType::f32, {4, 5}).op("MatMul").type().find("inner sizes 3 and 4"), std::string::npos);
  EXPECT_EQ(OneOp().in(DType::f32, {3, b}).in(DType::f32, {8, 3}).op("Gemm", {{"transA", int64_t{1}}, {"transB", int64_t{1}}}).type(), "f32[b,8]");
  EXPECT_NE(OneOp().in(DType::f32, {1, 3}).in(DType::f32, {3, 5}).in(DType::f32, {4, 5}).op("Gemm").type().find("C [4,5]"), std::string::npos);
}

// --- convolution ---

TEST(Conv, ByHand) {
  NodeCase n;
  n.in(tensor(DType::f32, {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})).in(tensor(DType::f32, {1, 1, 2, 2}, {1, 2, 3, 4}), true);
  n.op("Conv");
  Tensor want = tensor(DType::f32, {1, 1, 2, 2}, {37, 47, 67, 77});
  expect_close(n.reference()[0], want, 0);
  expect_close(n.lowered()[0], want, 0);
}

struct ConvCase {
  std::vector<int64_t> x, w;
  Attrs attrs;
};

using Ints = std::vector<int64_t>;

TEST(Conv, LoweringGivesTheReference) {
  const ConvCase cases[] = {
      {{2, 3, 9, 11}, {5, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}},
      {{1, 4, 10, 7}, {6, 4, 3, 2}, {{"strides", Ints{2, 3}}, {"pads", Ints{0, 1, 2, 0}}}},
      {{1, 6, 9, 9}, {4, 3, 3, 3}, {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}}},
      {{2, 8, 6, 6}, {8, 1, 3, 3}, {{"group", int64_t{8}}, {"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}}},
      {{1, 3, 5, 5}, {6, 1, 3, 3}, {{"group", int64_t{3}}, {"auto_pad", std::string("SAME_LOWER")}}},
      {{2, 17, 5, 4}, {33, 17, 1, 1}, {}},
      {{2, 3, 20}, {4, 3, 5}, {{"pads", Ints{2, 2}}}},
      {{1, 2, 4, 5, 6}, {3, 2, 2, 2, 3}, {{"auto_pad", std::string("VALID")}}},
      {{1, 2, 3, 3, 3, 3}, {3, 2, 2, 2, 2, 2}, {}},
      {{0, 2, 4, 4}, {3, 2, 3, 3}, {}},
  };
  for (DType t : {DType::f32, DType::f16, DType::f64})
    for (auto& s : cases)
      for (int mode = 0; mode < 6; ++mode) {
        bool constant = mode & 1, with_bias = mode >= 2;
        std::vector<int> last;
        if (mode >= 4) {
          last.push_back(0);
          for (size_t a = 2; a < s.x.size(); ++a) last.push_back(static_cast<int>(a));
          last.push_back(1);
        }
        NodeCase n;
        n.in(random_tensor(t, s.x, 1), false, last).in(random_tensor(t, s.w, 2), constant);
        if (with_bias) n.in(random_tensor(t, {s.w[0]}, 3), constant);
        n.op("Conv", s.attrs, 1, last);
        auto want = n.reference(), got = n.lowered();
        ASSERT_EQ(got.size(), 1u);
        expect_close(got[0], want[0], t == DType::f32 ? 3e-6 : t == DType::f64 ? 1e-13 : 1.5e-3);
        if (HasFatalFailure()) FAIL() << name(t) << " rank " << s.x.size() << " mode " << mode << " by " << n.kernels().back();
      }
}

TEST(FusedConv, TailInOrder) {
  Tensor x = random_tensor(DType::f32, {2, 5, 6, 7}, 1), w = random_tensor(DType::f32, {8, 5, 3, 3}, 2);
  Tensor bias = random_tensor(DType::f32, {8}, 3), residual = random_tensor(DType::f32, {2, 8, 6, 7}, 4);
  Tensor per_channel = random_tensor(DType::f32, {8, 1, 1}, 5), row = random_tensor(DType::f32, {1, 8, 1, 7}, 6);
  Attrs window{{"pads", Ints{1, 1, 1, 1}}};
  NodeCase plain;
  plain.in(x).in(w, true).in(bias, true).op("Conv", window);
  Tensor y = plain.reference()[0];
  for (auto& addend : {residual, row}) {
    Attrs attrs = window;
    attrs["act"] = std::string("clip"), attrs["act_alpha"] = -1.0, attrs["act_beta"] = 2.0;
    attrs["program"] = std::string("v0 = load 0; v1 = load 1; v2 = add v0 v1; store 0 v2");
    for (std::vector<int> layout : {std::vector<int>{}, std::vector<int>{0, 2, 3, 1}}) {
      NodeCase n;
      n.in(x).in(w, true).in(bias, true).in(addend).in(per_channel).op("ge.Conv", attrs, 1, layout);
      auto got = n.lowered();
      ASSERT_EQ(got.size(), 1u);
      Tensor want(DType::f32, y.dims());
      for (int64_t i = 0; i < y.count(); ++i) {
        int64_t channel = i / 42 % 8;
        double r = addend.count() == y.count() ? addend.at(i) : addend.at(channel * 7 + i % 7);
        put(want, i, std::clamp(y.at(i) + r, -1.0, 2.0) + per_channel.at(channel));
      }
      expect_close(got[0], want, 3e-6);
    }
  }
}

TEST(ConvInfer, Shapes) {
  Dim h = sym("h"), w = sym("w");
  auto conv = [&](Attrs attrs) { return OneOp().in(DType::f32, {1, 3, h, w}).in(DType::f32, {8, 3, 3, 3}).op("Conv", std::move(attrs)).type(); };
  EXPECT_EQ(conv({{"pads", Ints{1, 1, 1, 1}}}), "f32[1,8,h,w]");
  EXPECT_EQ(conv({{"auto_pad", std::string("SAME_UPPER")}}), "f32[1,8,h,w]");
  EXPECT_EQ(conv({{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}}),
            "f32" + text({1, 8, floordiv(h - Dim(1), Dim(2)) + Dim(1), floordiv(w - Dim(1), Dim(2)) + Dim(1)}));
  EXPECT_NE(OneOp().in(DType::f32, {1, 4, 5, 5}).in(DType::f32, {8, 3, 3, 3}).op("Conv").type().find("groups"), std::string::npos);
  EXPECT_NE(OneOp().in(DType::f32, {1, 3, 2, 5}).in(DType::f32, {8, 3, 4, 3}).op("Conv").type().find("does not fit"), std::string::npos);
}

TEST(Pool, ByHandAndLowering) {
  Tensor x = tensor(DType::f32, {1, 1, 4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  NodeCase max;
  max.in(x).op("MaxPool", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}, 2);
  for (auto& out : {max.reference(), max.lowered()}) {
    expect_close(out[0], tensor(DType::f32, {1, 1, 2, 2}, {6, 8, 14, 16}), 0);
    expect_close(out[1], tensor(DType::i64, {1, 1, 2, 2}, {5, 7, 13, 15}), 0);
  }
  NodeCase column;
  column.in(x).op("MaxPool", {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"storage_order", int64_t{1}}}, 2);
  for (auto& out : {column.reference(), column.lowered()})
    expect_close(out[1], tensor(DType::i64, {1, 1, 2, 2}, {5, 13, 7, 15}), 0);
  // Padding counts or not.
  NodeCase average, padded;
  Attrs attrs{{"kernel_shape", Ints{3, 3}}, {"strides", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}};
  average.in(x).op("AveragePool", attrs);
  attrs["count_include_pad"] = int64_t{1};
  padded.in(x).op("AveragePool", attrs);
  for (auto& out : {average.reference(), average.lowered()})
    expect_close(out[0], tensor(DType::f32, {1, 1, 2, 2}, {3.5, 5.5, 11.5, 13.5}), 1e-6);
  for (auto& out : {padded.reference(), padded.lowered()})
    expect_close(out[0], tensor(DType::f32, {1, 1, 2, 2}, {14.0 / 9, 22.0 / 9, 46.0 / 9, 54.0 / 9}), 1e-6);
}

TEST(Pool, LoweringGivesTheReference) {
  const Attrs windows[] = {
      {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}},
      {{"kernel_shape", Ints{2, 3}}, {"ceil_mode", int64_t{1}}, {"strides", Ints{2, 2}}},
      {{"kernel_shape", Ints{3, 2}}, {"dilations", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}},
      {{"kernel_shape", Ints{1, 1}}},
  };
  for (auto* op : {"MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"})
    for (DType t : {DType::f32, DType::f16, DType::f64})
      for (auto& w : windows)
        for (int mode = 0; mode < 4; ++mode) {
          std::vector<int> last = mode & 1 ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{};
          Attrs attrs = w;
          if (mode & 2) attrs["count_include_pad"] = int64_t{1};
          NodeCase n;
          n.in(random_tensor(t, {2, 19, 8, 9}, 1), false, last).op(op, attrs, 1, last);
          auto want = n.reference(), got = n.lowered();
          ASSERT_EQ(got.size(), 1u);
          expect_close(got[0], want[0], t == DType::f32 ? 1e-6 : t == DType::f64 ? 1e-13 : 1e-3);
          if (HasFatalFailure()) FAIL() << op << " " << name(t) << " mode " << mode;
        }
}

TEST(PoolInfer, CeilLeavesOutWindowsThatBeginInThePadding) {
  auto pool = [](std::vector<Dim> x, Attrs a) { return OneOp().in(DType::f32, std::move(x)).op("MaxPool", std::move(a)).type(); };
  // 5 + 2 - 2 = 5, ceil(5 / 3) + 1 = 3, but the third window would begin at 6 > 5.
  EXPECT_EQ(pool({1, 1, 5}, {{"kernel_shape", Ints{2}}, {"strides", Ints{3}}, {"pads", Ints{1, 1}}, {"ceil_mode", int64_t{1}}}), "f32[1,1,2]");
  EXPECT_EQ(pool({1, 1, 6}, {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}}), "f32[1,1,3]");
  EXPECT_EQ(pool({sym("n"), 3, 8, 8}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}), "f32[n,3,4,4]");
  EXPECT_NE(pool({1, 1, 5}, {}).find("kernel_shape"), std::string::npos);
}

}  // namespace
}  // namespace ge::test
