// Reductions, softmax and normalizations: hand-computed values, fast paths against the reference, shapes.
#include "infer_op.h"
#include "node_case.h"

namespace ge::test {
namespace {

using Ints = std::vector<int64_t>;
constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
const char* const kReduce[] = {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSumSquare",
                               "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"};

TEST(Reduce, ByHand) {
  Tensor x = tensor(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const double want[][2] = {{6, 15}, {2, 5}, {3, 6}, {1, 4}, {6, 120}, {14, 77}, {6, 15}, {std::sqrt(14.0), std::sqrt(77.0)},
                            {std::log(6.0), std::log(15.0)}, {std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)), std::log(std::exp(4.0) + std::exp(5.0) + std::exp(6.0))}};
  for (size_t i = 0; i < 10; ++i) {
    NodeCase n;
    n.in(x).in(Tensor::vector_i64(Ints{-1}), true).op(kReduce[i], {{"keepdims", int64_t{0}}});
    expect_close(n.reference()[0], tensor(DType::f32, {2}, {want[i][0], want[i][1]}), 1e-6);
    expect_close(n.lowered()[0], tensor(DType::f32, {2}, {want[i][0], want[i][1]}), 1e-6);
  }
}

TEST(Reduce, EmptyRowsAndInfinities) {
  const double want[] = {0, kNaN, -kInf, kInf, 1, 0, 0, 0, -kInf, -kInf};
  for (size_t i = 0; i < 10; ++i)
    for (Ints axis : {Ints{0}, Ints{1}}) {
      NodeCase n;
      n.in(Tensor(DType::f32, axis[0] ? Ints{2, 0} : Ints{0, 2})).in(Tensor::vector_i64(axis), true).op(kReduce[i]);
      Tensor expected = tensor(DType::f32, axis[0] ? Ints{2, 1} : Ints{1, 2}, {want[i], want[i]});
      expect_close(n.reference()[0], expected, 0);
      expect_close(n.lowered()[0], expected, 0);
      if (HasFatalFailure()) FAIL() << kReduce[i] << " axis " << axis[0];
    }
  for (double v : {kInf, -kInf}) {
    for (Ints axis : {Ints{0}, Ints{1}}) {
      NodeCase n;
      n.in(tensor(DType::f32, axis[0] ? Ints{1, 2} : Ints{2, 1}, {v, v})).in(Tensor::vector_i64(axis), true).op("ReduceLogSumExp");
      EXPECT_EQ(n.reference()[0].at(0), v);
      EXPECT_EQ(n.lowered()[0].at(0), v) << axis[0];
    }
  }
  for (auto* op : {"ReduceMax", "ReduceMin"})
    for (Ints axis : {Ints{0}, Ints{1}}) {
      NodeCase n;
      n.in(tensor(DType::f32, {2, 2}, {1, kNaN, kNaN, 2})).in(Tensor::vector_i64(axis), true).op(op);
      for (auto& out : {n.reference(), n.lowered()}) EXPECT_TRUE(std::isnan(out[0].at(0)) && std::isnan(out[0].at(1))) << op;
    }
}

TEST(Reduce, FastPathsGiveTheReference) {
  const Ints shapes[] = {{7}, {5, 33}, {3, 4, 5}, {2, 3, 4, 70}, {2, 1, 300, 2}};
  for (auto* op : kReduce)
    for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8})
      for (auto& s : shapes)
        for (unsigned mask = 0; mask < 1u << s.size(); ++mask)
          for (int mode = 0; mode < 2; ++mode) {
            std::string name_of = op;
            bool root = name_of == "ReduceL2" || name_of.starts_with("ReduceLog");
            if (is_integer(t) && root) continue;
            if (t == DType::u8 && name_of != "ReduceMax" && name_of != "ReduceMin") continue;
            Ints axes;
            for (size_t a = 0; a < s.size(); ++a)
              if (mask >> a & 1) axes.push_back(static_cast<int64_t>(a) - (mode ? static_cast<int64_t>(s.size()) : 0));
            std::vector<int> layout;
            if (mode && s.size() == 4) layout = {0, 2, 3, 1};
            NodeCase n;
            bool positive = name_of == "ReduceLogSum";
            n.in(random_tensor(t, s, mask, positive ? 0.5 : name_of == "ReduceProd" ? 0.9 : -3, name_of == "ReduceProd" ? 1.1 : 3), false, layout);
            n.in(Tensor::vector_i64(axes), true).op(op, {{"keepdims", int64_t{mode == 0}}});
            auto want = n.reference(), got = n.lowered();
            ASSERT_EQ(got.size(), 1u);
            expect_close(got[0], want[0], t == DType::f32 ? 5e-6 : t == DType::f64 ? 1e-12 : t == DType::f16 ? 2e-3 : t == DType::bf16 ? 1e-2 : 0);
            if (HasFatalFailure()) FAIL() << op << " " << name(t) << " rank " << s.size() << " mask " << mask << " mode " << mode << " by " << n.kernels()[0];
          }
}

TEST(ReduceInfer, AxesAndElements) {
  Dim b = sym("b"), s = sym("s");
  EXPECT_EQ(OneOp().in(DType::f32, {b, s, 4}).ints({1}).op("ReduceSum").type(), "f32[b,1,4]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, s, 4}).ints({-1, 0}).op("ReduceMean", {{"keepdims", int64_t{0}}}).type(), "f32[s]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, s}).op("ReduceMax").type(), "f32[1,1]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, s}).ints({}).op("ReduceMax", {{"noop_with_empty_axes", int64_t{1}}}).type(), "f32[b,s]");
  EXPECT_EQ(OneOp().elements({s, 3, b}).op("ReduceProd", {{"keepdims", int64_t{0}}}).content(), text({s * Dim(3) * b}));
  EXPECT_EQ(OneOp().elements({s, 3}).op("ReduceMax").content(), text({max(s, Dim(3))}));
  EXPECT_NE(OneOp().in(DType::f32, {2}).ints({1}).op("ReduceSum").type().find("axis 1"), std::string::npos);
  OneOp old;
  old.in(DType::f32, {2, 3}).op("ReduceSum", {{"axes", Ints{1}}});
  ASSERT_TRUE(old.upgrade(11).ok());
  EXPECT_EQ(old.type(), "f32[2,1]");
}

TEST(Softmax, ByHandAndLowering) {
  double e = std::exp(1.0);
  for (auto* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    NodeCase n;
    n.in(tensor(DType::f32, {1, 2}, {0, 1})).op(op);
    std::string s = op;
    Tensor want = s == "Softmax" ? tensor(DType::f32, {1, 2}, {1 / (1 + e), e / (1 + e)})
                  : s == "Hardmax" ? tensor(DType::f32, {1, 2}, {0, 1})
                                   : tensor(DType::f32, {1, 2}, {-std::log(1 + e), 1 - std::log(1 + e)});
    expect_close(n.reference()[0], want, 1e-6);
    expect_close(n.lowered()[0], want, 1e-6);
  }
  for (auto* op : {"Softmax", "LogSoftmax", "Hardmax"})
    for (DType t : {DType::f32, DType::f16, DType::f64})
      for (Ints s : {Ints{5}, Ints{3, 1}, Ints{4, 129}, Ints{2, 3, 5, 7}, Ints{2, 0, 3}})
        for (int64_t axis = 0; axis < static_cast<int64_t>(s.size()); ++axis)
          for (int64_t flatten : {0, 1}) {
            std::vector<int> layout;
            if (s.size() == 4) layout = {0, 2, 3, 1};
            NodeCase n;
            n.in(random_tensor(t, s, 3, -9, 9), false, layout).op(op, {{"axis", axis}, {"flatten", flatten}});
            auto want = n.reference(), got = n.lowered();
            ASSERT_EQ(got.size(), 1u);
            expect_close(got[0], want[0], t == DType::f32 ? 2e-6 : t == DType::f64 ? 1e-13 : 1e-3);
            if (HasFatalFailure()) FAIL() << op << " axis " << axis << " of " << s.size() << " flatten " << flatten;
          }
}

TEST(Softmax, OldVersionsFlatten) {
  OneOp n;
  n.in(DType::f32, {2, 3, 4}).op("Softmax");
  ASSERT_TRUE(n.upgrade(11).ok());
  EXPECT_EQ(ir::attr_int(n.g.node(n.node), "axis", 0), 1);
  EXPECT_EQ(ir::attr_int(n.g.node(n.node), "flatten", 0), 1);
  EXPECT_EQ(n.type(), "f32[2,3,4]");
  NodeCase row;
  row.in(tensor(DType::f32, {1, 2, 2}, {0, 0, 0, 0})).op("Softmax", {{"axis", int64_t{1}}, {"flatten", int64_t{1}}});
  EXPECT_EQ(row.lowered()[0].at(0), 0.25);
}

TEST(Normalization, ByHand) {
  NodeCase layer;
  layer.in(tensor(DType::f32, {1, 2}, {1, 3})).in(tensor(DType::f32, {2}, {2, 2})).in(tensor(DType::f32, {2}, {1, 1}));
  layer.op("LayerNormalization", {{"epsilon", 0.0}}, 3);
  for (auto& out : {layer.reference(), layer.lowered()}) {
    expect_close(out[0], tensor(DType::f32, {1, 2}, {-1, 3}), 1e-6);
    expect_close(out[1], tensor(DType::f32, {1, 1}, {2}), 1e-6);
    expect_close(out[2], tensor(DType::f32, {1, 1}, {1}), 1e-6);
  }
  NodeCase batch;
  batch.in(tensor(DType::f32, {1, 2, 1}, {3, 5})).in(tensor(DType::f32, {2}, {1, 2}), true).in(tensor(DType::f32, {2}, {0, 1}), true);
  batch.in(tensor(DType::f32, {2}, {1, 1}), true).in(tensor(DType::f32, {2}, {4, 16}), true).op("BatchNormalization", {{"epsilon", 0.0}});
  for (auto& out : {batch.reference(), batch.lowered()}) expect_close(out[0], tensor(DType::f32, {1, 2, 1}, {1, 3}), 1e-6);
  NodeCase lp;
  lp.in(tensor(DType::f32, {2, 2}, {3, 4, 0, 0})).op("LpNormalization");
  for (auto& out : {lp.reference(), lp.lowered()}) expect_close(out[0], tensor(DType::f32, {2, 2}, {0.6, 0.8, 0, 0}), 1e-6);
  NodeCase lrn;
  lrn.in(tensor(DType::f32, {1, 3, 1, 1}, {1, 2, 3})).op("LRN", {{"size", int64_t{3}}, {"alpha", 3.0}, {"beta", 1.0}, {"bias", 1.0}});
  expect_close(lrn.reference()[0], tensor(DType::f32, {1, 3, 1, 1}, {1.0 / 6, 2.0 / 15, 3.0 / 14}), 1e-6);
}

TEST(Normalization, LoweringGivesTheReference) {
  struct Case {
    const char* op;
    Attrs attrs;
    std::vector<Ints> in;
    int outputs = 1;
  };
  const Case cases[] = {
      {"LayerNormalization", {}, {{3, 5, 33}, {33}, {33}}, 3},
      {"LayerNormalization", {{"axis", int64_t{1}}}, {{3, 5, 33}, {5, 33}}},
      {"LayerNormalization", {{"axis", int64_t{1}}}, {{3, 5, 33}, {33}, {5, 1}}},
      {"RMSNormalization", {}, {{3, 5, 33}, {33}}},
      {"RMSNormalization", {{"axis", int64_t{1}}}, {{2, 3, 4, 6}, {4, 6}}},
      {"BatchNormalization", {}, {{2, 5, 6, 7}, {5}, {5}, {5}, {5}}},
      {"BatchNormalization", {}, {{4, 5}, {5}, {5}, {5}, {5}}},
      {"InstanceNormalization", {}, {{2, 5, 6, 7}, {5}, {5}}},
      {"InstanceNormalization", {}, {{2, 5, 61}, {5}, {5}}},
      {"GroupNormalization", {{"num_groups", int64_t{3}}}, {{2, 6, 5, 7}, {6}, {6}}},
      {"GroupNormalization", {{"num_groups", int64_t{3}}, {"per_group", int64_t{1}}}, {{2, 6, 5, 7}, {3}, {3}}},
      {"GroupNormalization", {{"num_groups", int64_t{2}}}, {{3, 4}, {4}, {4}}},
      {"LRN", {{"size", int64_t{5}}, {"alpha", 0.5}}, {{2, 19, 4, 9}}},
      {"LRN", {{"size", int64_t{4}}, {"alpha", 0.5}, {"beta", 0.5}, {"bias", 2.0}}, {{2, 3, 300}}},
      {"LRN", {{"size", int64_t{99}}, {"alpha", 0.5}}, {{3, 17}}},
      {"LpNormalization", {{"p", int64_t{1}}}, {{2, 3, 4, 9}}},
      {"LpNormalization", {{"axis", int64_t{1}}}, {{2, 3, 4, 9}}},
  };
  for (auto& k : cases)
    for (DType t : {DType::f32, DType::f16, DType::f64})
      for (int mode = 0; mode < 4; ++mode) {
        std::vector<int> layout;
        if (mode & 1 && k.in[0].size() == 4) layout = {0, 2, 3, 1};
        NodeCase n;
        for (size_t i = 0; i < k.in.size(); ++i)
          n.in(random_tensor(t, k.in[i], static_cast<unsigned>(i), i ? 0.5 : -2, 2), i > 0 && mode & 2, i ? std::vector<int>{} : layout);
        n.op(k.op, k.attrs, k.outputs, layout);
        auto want = n.reference(), got = n.lowered();
        ASSERT_EQ(got.size(), static_cast<size_t>(k.outputs));
        for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], want[i], t == DType::f32 ? 3e-6 : t == DType::f64 ? 1e-12 : 2e-3);
        if (HasFatalFailure()) FAIL() << k.op << " " << name(t) << " mode " << mode;
      }
}

}  // namespace
}  // namespace ge::test
