// Einsum, ConvTranspose, Det, Inverse: hand-computed values, lowering against the reference, shapes.
#include "infer_op.h"
#include "node_case.h"

namespace ge::test {
namespace {

using Ints = std::vector<int64_t>;

Attrs equation(const char* e) { return {{"equation", std::string(e)}}; }

TEST(Einsum, ByHand) {
  struct Case {
    const char* equation;
    std::vector<Tensor> in;
    Tensor want;
  };
  Tensor a = tensor(DType::f32, {2, 2}, {1, 2, 3, 4}), v = tensor(DType::f32, {2}, {5, 6});
  const Case cases[] = {
      {"ij->ji", {a}, tensor(DType::f32, {2, 2}, {1, 3, 2, 4})},
      {"ii->i", {a}, tensor(DType::f32, {2}, {1, 4})},
      {"ii", {a}, tensor(DType::f32, {}, {5})},
      {"ij->", {a}, tensor(DType::f32, {}, {10})},
      {"ij->j", {a}, tensor(DType::f32, {2}, {4, 6})},
      {"ij,j->i", {a, v}, tensor(DType::f32, {2}, {17, 39})},
      {"ij,j", {a, v}, tensor(DType::f32, {2}, {17, 39})},
      {"i,j->ij", {v, v}, tensor(DType::f32, {2, 2}, {25, 30, 30, 36})},
      {"i,j->", {v, v}, tensor(DType::f32, {}, {121})},
      {"ij,jk,k->i", {a, a, v}, tensor(DType::f32, {2}, {95, 207})},
      {"...i,i->...", {a, v}, tensor(DType::f32, {2}, {17, 39})},
      {" i , i -> i ", {v, v}, tensor(DType::f32, {2}, {25, 36})},
  };
  for (auto& t : cases) {
    NodeCase n;
    for (auto& x : t.in) n.in(x);
    n.op("Einsum", equation(t.equation));
    expect_close(n.reference()[0], t.want, 0);
    expect_close(n.lowered()[0], t.want, 1e-6);
    if (HasFatalFailure()) FAIL() << t.equation;
  }
}

TEST(Einsum, LoweringGivesTheReference) {
  struct Case {
    const char* equation;
    std::vector<Ints> in;
  };
  const Case cases[] = {
      {"bhqd,bhkd->bhqk", {{2, 3, 5, 8}, {2, 3, 7, 8}}},
      {"bhqk,bhkd->bqhd", {{2, 3, 5, 7}, {2, 3, 7, 8}}},
      {"bnqh,nhd->bqd", {{2, 3, 5, 4}, {3, 4, 9}}},
      {"abc,cd->abd", {{2, 3, 17}, {17, 33}}},
      {"abc,cde->abde", {{2, 3, 5}, {5, 3, 4}}},
      {"nd,md->nm", {{5, 16}, {7, 16}}},
      {"ab,ab->", {{5, 6}, {5, 6}}},
      {"abx,aby->b", {{5, 6, 2}, {5, 6, 3}}},
      {"...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 6}}},
      {"ij,jk,kl->il", {{3, 4}, {4, 5}, {5, 6}}},
      {"aij,ajk->aik", {{0, 2, 3}, {0, 3, 4}}},
      {"ij,jk->ik", {{2, 0}, {0, 3}}},
      {"ij,kj->ik", {{2, 1}, {3, 4}}},
      {"iij,jk->ki", {{3, 3, 4}, {4, 5}}},
  };
  for (DType t : {DType::f32, DType::f64, DType::i64})
    for (auto& k : cases)
      for (int mode = 0; mode < 4; ++mode) {
        NodeCase n;
        for (size_t i = 0; i < k.in.size(); ++i)
          n.in(random_tensor(t, k.in[i], static_cast<unsigned>(i)), (mode >> (i & 1)) & 1);
        n.op("Einsum", equation(k.equation));
        auto want = n.reference(), got = n.lowered();
        ASSERT_EQ(got.size(), 1u);
        expect_close(got[0], want[0], t == DType::f32 ? 2e-6 : t == DType::f64 ? 1e-13 : 0);
        if (HasFatalFailure()) FAIL() << k.equation << " mode " << mode;
      }
}

TEST(EinsumInfer, ShapesAndErrors) {
  auto two = [](const char* e, std::vector<Dim> a, std::vector<Dim> b) {
    return OneOp().in(DType::f32, std::move(a)).in(DType::f32, std::move(b)).op("Einsum", equation(e)).type();
  };
  Dim b = sym("b"), s = sym("s");
  EXPECT_EQ(two("bsd,de->bse", {b, s, 4}, {4, 8}), "f32[b,s,8]");
  EXPECT_EQ(two("ba,bc", {b, s}, {b, 3}), "f32[s,3]");
  EXPECT_NE(two("ij,jk->ik", {2, 3}, {4, 5}).find("broadcast"), std::string::npos);
  EXPECT_NE(two("ij,jk->iz", {2, 3}, {3, 5}).find("no input has"), std::string::npos);
  EXPECT_NE(two("ij->i", {2, 3}, {3, 5}).find("terms"), std::string::npos);
  EXPECT_NE(two("i,j->ij", {2, 3}, {3}).find("axes"), std::string::npos);
  EXPECT_NE(two("i1,j->ij", {2, 3}, {3}).find("no term"), std::string::npos);
}

TEST(ConvTranspose, ByHand) {
  NodeCase n;
  n.in(tensor(DType::f32, {1, 1, 2}, {1, 2})).in(tensor(DType::f32, {1, 1, 3}, {1, 10, 100}), true).op("ConvTranspose", {{"strides", Ints{2}}});
  for (auto& out : {n.reference(), n.lowered()}) expect_close(out[0], tensor(DType::f32, {1, 1, 5}, {1, 10, 102, 20, 200}), 1e-6);
}

TEST(ConvTranspose, LoweringGivesTheReference) {
  struct Case {
    Ints x, w;
    Attrs attrs;
  };
  const Case cases[] = {
      {{2, 3, 5, 6}, {3, 4, 3, 3}, {}},
      {{2, 3, 5, 6}, {3, 4, 3, 3}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}, {"output_padding", Ints{1, 1}}}},
      {{1, 4, 5, 4}, {4, 3, 2, 4}, {{"strides", Ints{2, 3}}, {"group", int64_t{2}}}},
      {{1, 4, 5, 4}, {4, 1, 4, 4}, {{"strides", Ints{2, 2}}, {"group", int64_t{4}}, {"pads", Ints{1, 1, 1, 1}}}},
      {{1, 2, 5, 4}, {2, 3, 3, 3}, {{"dilations", Ints{2, 3}}, {"strides", Ints{3, 2}}, {"pads", Ints{2, 0, 1, 3}}}},
      {{1, 2, 4, 4}, {2, 3, 1, 2}, {{"strides", Ints{3, 3}}}},
      {{1, 2, 4, 4}, {2, 3, 3, 3}, {{"strides", Ints{2, 2}}, {"auto_pad", std::string("SAME_UPPER")}}},
      {{1, 2, 4, 4}, {2, 3, 4, 4}, {{"strides", Ints{2, 2}}, {"output_shape", Ints{9, 8}}, {"auto_pad", std::string("SAME_LOWER")}}},
      {{2, 3, 7}, {3, 5, 6}, {{"strides", Ints{4}}, {"pads", Ints{5, 0}}}},
      {{1, 2, 3, 3, 3}, {2, 2, 2, 3, 2}, {{"strides", Ints{2, 1, 2}}}},
      // Windows of the last axis that meet: its steps may become channels.
      {{2, 3, 5, 6}, {3, 1, 2, 2}, {{"strides", Ints{2, 2}}}},
      {{2, 3, 5, 6}, {3, 4, 2, 2}, {{"strides", Ints{2, 2}}}},
      {{1, 3, 5, 6}, {3, 4, 3, 2}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 0, 0, 0}}}},
      {{1, 3, 5, 6}, {3, 1, 2, 2}, {{"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 0, 1}}}},
      {{1, 3, 5, 6}, {3, 4, 2, 2}, {{"strides", Ints{2, 2}}, {"output_padding", Ints{1, 1}}}},
      {{2, 3, 7}, {3, 20, 5}, {{"strides", Ints{5}}}},
  };
  for (DType t : {DType::f32, DType::f16, DType::f64})
    for (auto& k : cases)
      for (int mode = 0; mode < 4; ++mode) {
        std::vector<int> last;
        if (mode & 1 && k.x.size() == 4) last = {0, 2, 3, 1};
        NodeCase n;
        n.in(random_tensor(t, k.x, 1), false, last).in(random_tensor(t, k.w, 2), mode != 3);
        int64_t m = k.w[1] * (k.attrs.count("group") ? std::get<int64_t>(k.attrs.at("group")) : 1);
        if (mode & 2) n.in(random_tensor(t, {m}, 3), mode == 3);
        n.op("ConvTranspose", k.attrs, 1, last);
        auto want = n.reference(), got = n.lowered();
        ASSERT_EQ(got.size(), 1u);
        expect_close(got[0], want[0], t == DType::f32 ? 2e-6 : t == DType::f64 ? 1e-13 : 1.5e-3);
        if (HasFatalFailure()) FAIL() << "case " << &k - cases << " mode " << mode << " " << name(t);
      }
}

TEST(LinearAlgebra, ByHand) {
  Tensor x = tensor(DType::f32, {2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0});
  NodeCase det, inverse, singular;
  expect_close(det.in(x).op("Det").reference()[0], tensor(DType::f32, {2}, {-2, -1}), 1e-6);
  expect_close(inverse.in(x).op("com.microsoft.Inverse").reference()[0], tensor(DType::f32, {2, 2, 2}, {-2, 1, 1.5, -0.5, 0, 1, 1, 0}), 1e-6);
}

// --- operators that are written as others on import ---

std::vector<std::string> ops_of(const OneOp& n) {
  std::vector<std::string> out;
  for (NodeId id : n.g.order()) out.push_back(n.g.node(id).op);
  return out;
}
using Strings = std::vector<std::string>;

TEST(Rewrite, BecomesCanonicalOperators) {
  auto rewrite = [](OneOp n, const char* op, Attrs attrs, int outputs = 1) {
    n.op(op, std::move(attrs), outputs);
    Status s = n.upgrade(1);
    return s.ok() ? ops_of(n) : Strings{s.error().message};
  };
  auto x = [] { return OneOp().in(DType::f32, {2, 3}); };
  EXPECT_EQ(rewrite(x(), "ai.onnx.ml.Scaler", {{"offset", std::vector<double>{1, 2, 3}}, {"scale", std::vector<double>{2}}}),
            (Strings{"Cast", "Sub", "Mul"}));
  EXPECT_EQ(rewrite(x(), "ai.onnx.ml.Scaler", {}), (Strings{"Cast", "Identity"}));
  EXPECT_EQ(rewrite(x(), "ai.onnx.ml.Binarizer", {}), (Strings{"Cast", "Greater", "CastLike"}));
  EXPECT_EQ(rewrite(x(), "ai.onnx.ml.Normalizer", {{"norm", std::string("L2")}}), (Strings{"Cast", "ReduceL2", "Max", "Div"}));
  EXPECT_EQ(rewrite(x(), "com.microsoft.Gelu", {}), (Strings{"Gelu"}));
  EXPECT_EQ(rewrite(x().in(DType::f32, {3}), "com.microsoft.FastGelu", {}), (Strings{"Add", "Gelu"}));
  EXPECT_EQ(rewrite(x().in(DType::f32, {3, 4}), "com.microsoft.FusedMatMul", {{"transB", int64_t{1}}}), (Strings{"ge.MatMul"}));
  EXPECT_EQ(rewrite(x().in(DType::f32, {1}).in(DType::f32, {1}).in(DType::f32, {1}), "com.microsoft.FusedConv", {{"activation", std::string("Relu")}}),
            (Strings{"Conv", "Add", "Relu"}));
  EXPECT_EQ(rewrite(x().in(DType::f32, {2, 3}).in(DType::f32, {3}).in(DType::f32, {3}).in(DType::f32, {3}), "com.microsoft.SkipLayerNormalization", {}, 4),
            (Strings{"Add", "Add", "LayerNormalization"}));
  EXPECT_EQ(rewrite(x(), "MeanVarianceNormalization", {}),
            (Strings{"ReduceMean", "Mul", "ReduceMean", "Mul", "Sub", "CastLike", "Sqrt", "Add", "Sub", "Div"}));
}

TEST(Rewrite, SkipLayerNormalizationKeepsItsSum) {
  OneOp n;
  n.in(DType::f32, {2, 3}).in(DType::f32, {2, 3}).in(DType::f32, {3}).op("com.microsoft.SkipLayerNormalization", {}, 4);
  ValueId sum = n.g.node(n.node).outputs[3];
  ASSERT_TRUE(n.upgrade(1).ok());
  NodeId producer = n.g.value(sum).producer;
  ASSERT_TRUE(bool(producer));
  EXPECT_EQ(n.g.node(producer).op, "Add");
  EXPECT_EQ(n.g.node(n.node).inputs[0], sum);
  EXPECT_EQ(n.g.node(n.node).outputs.size(), 3u);
}

}  // namespace
}  // namespace ge::test
