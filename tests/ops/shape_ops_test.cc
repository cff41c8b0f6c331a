// Inference of the shape and data-movement ops: sizes, symbols, elements, views.
#include "ops/infer_op.h"

namespace ge::test {
namespace {

using ops::Strided;
const Dim s = sym("s"), b = sym("b");

// Sizes of grids as exporters write them: max(0, ...) falls away where it changes nothing.
TEST(Dims, LowerBoundOfQuotients) {
  Dim h = Dim::symbol("h"), half = floordiv(h - Dim(1), Dim(2)), quarter = floordiv(half, Dim(2));
  EXPECT_EQ(half.lower_bound(), -1);
  EXPECT_EQ(quarter.lower_bound(), -1);
  EXPECT_EQ((quarter * Dim(4) + Dim(4)).lower_bound(), 0);
  EXPECT_EQ(max(Dim(0), quarter + Dim(1)), quarter + Dim(1));
  EXPECT_FALSE(max(Dim(0), quarter) == quarter);
  EXPECT_LT((quarter * h).lower_bound(), -1000);
  EXPECT_LT(floordiv(h - Dim(1), Dim::symbol("k")).lower_bound(), -1000);
  EXPECT_LT((Dim(3) - quarter).lower_bound(), -1000);
  for (int64_t v : {0, 1, 2, 3, 4, 5, 9, 40}) {
    auto at = [&](std::string_view) { return std::optional<int64_t>(v); };
    EXPECT_GE(*quarter.eval(at), -1) << v;
    EXPECT_EQ(*max(Dim(0), quarter + Dim(1)).eval(at), std::max<int64_t>(0, *quarter.eval(at) + 1)) << v;
  }
}

TEST(ShapeOps, Shape) {
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Shape").content(), "[b,3,s]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Shape", {{"start", int64_t{-2}}}).content(), "[3,s]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Shape", {{"start", int64_t{-2}}, {"end", int64_t{-1}}}).type(), "i64[1]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3}).op("Shape", {{"start", int64_t{2}}, {"end", int64_t{1}}}).type(), "i64[0]");
  EXPECT_EQ(OneOp().in(DType::f32, {}).op("Shape").type(), "i64[0]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Size").content(), "[3*b*s]");
}

TEST(ShapeOps, Reshape) {
  EXPECT_EQ(OneOp().in(DType::f32, {b, s, 768}).ints({0, 0, 12, 64}).op("Reshape").type(), "f32[b,s,12,64]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, s, 12, 64}).elements({b, s, -1}).op("Reshape").type(), "f32[b,s,768]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, s + 1, 4}).elements({-1, s + 1}).op("Reshape").type(), "f32[4*b,s + 1]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 6}).ints({-1, 4}).op("Reshape").type(), "f32[floordiv(3*b, 2),4]");
  EXPECT_EQ(OneOp().in(DType::f32, {0, 3}).ints({0, -1}).op("Reshape").type(), "f32[0,3]");
  EXPECT_EQ(OneOp().in(DType::f32, {0, 3}).ints({3, 0}).op("Reshape", {{"allowzero", int64_t{1}}}).type(), "f32[3,0]");
  EXPECT_EQ(OneOp().in(DType::f32, {1}).ints({}).op("Reshape").type(), "f32[]");
  EXPECT_FALSE(OneOp().in(DType::f32, {2, 3}).ints({4, -1}).op("Reshape").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {2, 3}).ints({-1, -1}).op("Reshape").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {2, 3}).ints({2, 2}).op("Reshape").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {2, 3}).ints({2, 3, 0}).op("Reshape").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {2, 3}).ints({0, -1}).op("Reshape", {{"allowzero", int64_t{1}}}).infer().ok());
  EXPECT_EQ(OneOp().in(DType::f32, {2, 3}).in(DType::i64, {2}).op("Reshape").type(), "f32[node.d0,node.d1]");
  EXPECT_EQ(OneOp().in(DType::f32, {2, 3}).in(DType::i64, {s}).op("Reshape").type(), "f32[?]");
  EXPECT_EQ(OneOp().elements({s, 4}).ints({2, 1}).op("Reshape").content(), "[s,4]");
}

TEST(ShapeOps, ReshapeViews) {
  OneOp split;
  split.in(DType::f32, {b, s, 768}).ints({0, 0, 12, 64}).op("Reshape");
  ASSERT_TRUE(split.infer().ok());
  EXPECT_EQ(split.view(Strided::dense({b, s, 768})), "0 [b,s,12,64] [768*s,768,64,1]");
  // A slice of a fused QKV: the last axis still splits.
  EXPECT_EQ(split.view({768, {b, s, 768}, {s * 2304, 2304, 1}}), "768 [b,s,12,64] [2304*s,2304,64,1]");
  OneOp merge;
  merge.in(DType::f32, {b, s, 12, 64}).ints({0, 0, -1}).op("Reshape");
  ASSERT_TRUE(merge.infer().ok());
  // After a transpose of heads the memory is not even: it has to be copied.
  EXPECT_EQ(merge.view({0, {b, s, 12, 64}, {s * 768, 64, s * 64, 1}}), "copy");
  EXPECT_EQ(merge.view({5, {b, s, 12, 64}, {s * 768, 768, 64, 1}}), "5 [b,s,768] [768*s,768,1]");
  OneOp odd;
  odd.in(DType::f32, {4, 6}).ints({3, 8}).op("Reshape");
  ASSERT_TRUE(odd.infer().ok());
  EXPECT_EQ(odd.view({2, {4, 6}, {6, 1}}), "2 [3,8] [8,1]");
  EXPECT_EQ(odd.view({2, {4, 6}, {7, 1}}), "copy");
  OneOp ones;
  ones.in(DType::f32, {1, 4, 1, 6}).ints({4, 1, 6, 1}).op("Reshape");
  ASSERT_TRUE(ones.infer().ok());
  EXPECT_EQ(ones.view({0, {1, 4, 1, 6}, {99, 7, 99, 1}}).substr(0, 15), "0 [4,1,6,1] [7,");
}

TEST(ShapeOps, FlattenSqueezeUnsqueeze) {
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Flatten").type(), "f32[b,3*s]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Flatten", {{"axis", int64_t{0}}}).type(), "f32[1,3*b*s]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Flatten", {{"axis", int64_t{3}}}).type(), "f32[3*b*s,1]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Flatten", {{"axis", int64_t{-1}}}).type(), "f32[3*b,s]");
  EXPECT_FALSE(OneOp().in(DType::f32, {b, 3}).op("Flatten", {{"axis", int64_t{4}}}).infer().ok());
  EXPECT_EQ(OneOp().in(DType::f32, {1, b, 1, 3}).op("Squeeze").type(), "f32[b,3]");
  EXPECT_EQ(OneOp().in(DType::f32, {1, b, 1, 3}).ints({-2}).op("Squeeze").type(), "f32[1,b,3]");
  EXPECT_EQ(OneOp().in(DType::f32, {1, b}).ints({1}).op("Squeeze").type(), "f32[1]");
  EXPECT_FALSE(OneOp().in(DType::f32, {1, 3}).ints({1}).op("Squeeze").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {1, 3}).ints({2}).op("Squeeze").infer().ok());
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3}).ints({-1, 0}).op("Unsqueeze").type(), "f32[1,b,3,1]");
  EXPECT_FALSE(OneOp().in(DType::f32, {b}).ints({0, 0}).op("Unsqueeze").infer().ok());
  EXPECT_EQ(OneOp().elements({s}, true).ints({0}).op("Unsqueeze").content(), "[s]");
  OneOp old;
  old.in(DType::f32, {b, 3}).op("Unsqueeze", {{"axes", std::vector<int64_t>{1}}});
  ASSERT_TRUE(old.upgrade(11).ok());
  EXPECT_EQ(old.type(), "f32[b,1,3]");
  EXPECT_EQ(old.view({3, {b, 3}, {7, 2}}), "3 [b,1,3] [7,1,2]");
  OneOp squeeze;
  squeeze.in(DType::f32, {b, 1, 3}).ints({1}).op("Squeeze");
  ASSERT_TRUE(squeeze.infer().ok());
  EXPECT_EQ(squeeze.view({3, {b, 1, 3}, {7, 5, 2}}), "3 [b,3] [7,2]");
}

TEST(ShapeOps, Transpose) {
  EXPECT_EQ(OneOp().in(DType::f32, {b, 3, s}).op("Transpose").type(), "f32[s,3,b]");
  OneOp t;
  t.in(DType::f32, {b, 3, s}).op("Transpose", {{"perm", std::vector<int64_t>{1, 0, 2}}});
  EXPECT_EQ(t.type(), "f32[3,b,s]");
  EXPECT_EQ(t.view({1, {b, 3, s}, {9, 8, 7}}), "1 [3,b,s] [8,9,7]");
  EXPECT_FALSE(OneOp().in(DType::f32, {b, 3}).op("Transpose", {{"perm", std::vector<int64_t>{1, 1}}}).infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {b, 3}).op("Transpose", {{"perm", std::vector<int64_t>{0}}}).infer().ok());
}

TEST(ShapeOps, ConcatAndSplit) {
  OneOp c;
  c.in(DType::f32, {b, 3, s}).in(DType::f32, {b, 5, 7}).op("Concat", {{"axis", int64_t{-2}}});
  EXPECT_EQ(c.type(), "f32[b,8,7]");
  auto part = ops::find("Concat")->place(c.g, c.g.node(c.node), 1, {2, {b, 8, 7}, {56, 7, 1}});
  ASSERT_TRUE(part);
  EXPECT_EQ(part->offset.text() + text(part->dims) + text(part->strides), "23[b,5,7][56,7,1]");
  EXPECT_EQ(OneOp().elements({b}).ints({-1, 4}).op("Concat", {{"axis", int64_t{0}}}).content(), "[b,-1,4]");
  EXPECT_FALSE(OneOp().in(DType::f32, {2, 3}).in(DType::f32, {3, 2}).op("Concat", {{"axis", int64_t{0}}}).infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {2}).in(DType::f32, {2, 1}).op("Concat", {{"axis", int64_t{0}}}).infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {2}).in(DType::i32, {2}).op("Concat", {{"axis", int64_t{0}}}).infer().ok());

  OneOp sp;
  sp.in(DType::f32, {b, 7}).op("Split", {{"axis", int64_t{1}}, {"num_outputs", int64_t{3}}}, 3);
  EXPECT_EQ(sp.type(0), "f32[b,3]");
  EXPECT_EQ(sp.type(2), "f32[b,1]");
  EXPECT_EQ(sp.view({0, {b, 7}, {7, 1}}, 2), "6 [b,1] [7,1]");
  OneOp sizes;
  sizes.in(DType::f32, {s, 7}).ints({2, 0, 5}).op("Split", {{"axis", int64_t{-1}}}, 3);
  EXPECT_EQ(sizes.type(1), "f32[s,0]");
  EXPECT_EQ(sizes.view({1, {s, 7}, {7, 1}}, 2), "3 [s,5] [7,1]");
  EXPECT_EQ(OneOp().in(DType::f32, {s + s, 7}).op("Split", {}, 2).type(1), "f32[s,7]");
  EXPECT_FALSE(OneOp().in(DType::f32, {7}).ints({2, 4}).op("Split", {}, 2).infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {7}).ints({2, 5}).op("Split", {}, 3).infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {2}).op("Split", {}, 5).infer().ok());
  EXPECT_EQ(OneOp().elements({b, s, 3}).ints({1, 2}).op("Split", {}, 2).content(1), "[s,3]");
}

TEST(ShapeOps, Slice) {
  auto one = [](Dim size, Dim start, Dim end, int64_t step = 1) {
    OneOp o;
    o.g.symbols["s"].min = 1;
    o.in(DType::f32, {size}).elements({start}).elements({end}).ints({0}).ints({step}).op("Slice");
    std::string t = o.type();
    if (t[0] != 'f') return t;
    return t + " " + o.view({0, {size}, {Dim(2)}});
  };
  EXPECT_EQ(one(10, 2, 5), "f32[3] 4 [3] [2]");
  EXPECT_EQ(one(10, -3, INT64_MAX), "f32[3] 14 [3] [2]");
  EXPECT_EQ(one(10, INT64_MIN, INT64_MAX, 3), "f32[4] 0 [4] [6]");
  EXPECT_EQ(one(10, 7, 5), "f32[0] 14 [0] [2]");
  EXPECT_EQ(one(10, -1, INT64_MIN, -1), "f32[10] 18 [10] [-2]");
  EXPECT_EQ(one(10, INT64_MAX, 2, -3), "f32[3] 18 [3] [-6]");
  EXPECT_EQ(one(10, -100, -200, -1), "f32[1] 0 [1] [-2]");  // starts are clamped to 0
  EXPECT_EQ(one(0, INT64_MAX, INT64_MIN, -1).substr(0, 6), "f32[0]");
  EXPECT_EQ(one(10, 0, 10, INT64_MAX), "f32[1] 0 [1] [2199023255552]");
  EXPECT_EQ(one(s, 0, INT64_MAX), "f32[s] 0 [s] [2]");
  EXPECT_EQ(one(s, -1, INT64_MAX), "f32[1] 2*s - 2 [1] [2]");
  EXPECT_EQ(one(s, 0, s), "f32[s] 0 [s] [2]");
  EXPECT_EQ(one(s, 1, INT64_MAX), "f32[s - 1] 2 [s - 1] [2]");
  EXPECT_EQ(one(s, 0, -1), "f32[s - 1] 0 [s - 1] [2]");
  EXPECT_EQ(one(512, 0, s), "f32[min(512, s)] 0 [min(512, s)] [2]");
  EXPECT_EQ(one(s, -1, INT64_MIN, -1), "f32[s] 2*s - 2 [s] [-2]");
  EXPECT_FALSE(OneOp().in(DType::f32, {4}).ints({0}).ints({2}).ints({0}).ints({0}).op("Slice").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {4}).ints({0}).ints({2}).ints({1}).op("Slice").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {4}).ints({0, 1}).ints({2, 3}).ints({0, -1}).op("Slice").infer().ok());
  EXPECT_EQ(OneOp().in(DType::f32, {4, b}).in(DType::i64, {1}).ints({2}).ints({0}).op("Slice").type(), "f32[node.d0,b]");
  EXPECT_EQ(OneOp().elements({b, s, 3, 4}).ints({-1}).ints({INT64_MIN}).none().ints({-2}).op("Slice").content(), "[4,s]");
  OneOp old;
  old.in(DType::f32, {4, b}).op("Slice", {{"starts", std::vector<int64_t>{1}}, {"ends", std::vector<int64_t>{3}}});
  ASSERT_TRUE(old.upgrade(9).ok());
  EXPECT_EQ(old.type(), "f32[2,b]");
}

// A slice over a symbol must mean for every size what it means for numbers.
TEST(ShapeOps, SliceOfSymbolsAgreesWithNumbers) {
  for (int64_t start : {-7, -2, -1, 0, 1, 5})
    for (int64_t end : {-6, -1, 0, 2, 9})
      for (int64_t step : {-3, -1, 1, 2}) {
        OneOp sy;
        sy.in(DType::f32, {s}).ints({start}).ints({end}).ints({0}).ints({step}).op("Slice");
        ASSERT_TRUE(sy.infer().ok());
        auto v = sy.def().view(sy.g, sy.g.node(sy.node), 0, Strided::dense({s}));
        for (int64_t n = 0; n < 9; ++n) {
          OneOp num;
          num.in(DType::f32, {n}).ints({start}).ints({end}).ints({0}).ints({step}).op("Slice");
          ASSERT_TRUE(num.infer().ok());
          auto w = num.def().view(num.g, num.g.node(num.node), 0, Strided::dense({n}));
          auto lookup = [&](std::string_view) { return std::optional<int64_t>(n); };
          EXPECT_EQ(*v->dims[0].eval(lookup), w->dims[0].value()) << n << ' ' << start << ' ' << end << ' ' << step;
          EXPECT_EQ(*v->offset.eval(lookup), w->offset.value()) << n << ' ' << start << ' ' << end << ' ' << step;
        }
      }
}

TEST(ShapeOps, Gather) {
  EXPECT_EQ(OneOp().in(DType::f32, {30522, 384}).in(DType::i64, {b, s}).op("Gather").type(), "f32[b,s,384]");
  EXPECT_EQ(OneOp().elements({b, s, 3}).scalar(1).op("Gather").content(), "[s]");
  EXPECT_EQ(OneOp().elements({b, s, 3}).ints({-1, 0}).op("Gather").content(), "[3,b]");
  EXPECT_FALSE(OneOp().in(DType::f32, {3}).ints({3}).op("Gather").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {3}).in(DType::f32, {3}).op("Gather").infer().ok());
  OneOp one;
  one.in(DType::f32, {b, 5, 3}).scalar(-2).op("Gather", {{"axis", int64_t{1}}});
  EXPECT_EQ(one.type(), "f32[b,3]");
  EXPECT_EQ(one.view({1, {b, 5, 3}, {15, 3, 1}}), "10 [b,3] [15,1]");
  OneOp open;
  open.in(DType::f32, {s, 3}).scalar(2).op("Gather");
  ASSERT_TRUE(open.infer().ok());
  EXPECT_EQ(open.view(Strided::dense({s, 3})), "copy");  // its range shows at run time
}

TEST(ShapeOps, ExpandTile) {
  OneOp e;
  e.in(DType::f32, {3, 1}).elements({b, 1, s}).op("Expand");
  EXPECT_EQ(e.type(), "f32[b,3,s]");
  EXPECT_EQ(e.view({0, {3, 1}, {1, 1}}), "0 [b,3,s] [0,1,0]");
  OneOp sy;
  sy.in(DType::f32, {s}).elements({b}).op("Expand");
  ASSERT_TRUE(sy.infer().ok());
  auto v = sy.def().view(sy.g, sy.g.node(sy.node), 0, Strided::dense({s}));
  for (int64_t n : {1, 4})
    EXPECT_EQ(*v->strides[0].eval([&](std::string_view name) { return std::optional<int64_t>(name == "s" ? n : 4); }), n == 1 ? 0 : 1);
  EXPECT_FALSE(OneOp().in(DType::f32, {3}).ints({2}).op("Expand").infer().ok());
  EXPECT_EQ(OneOp().elements({b}).ints({3}).op("Expand").content(), "[b,b,b]");
  EXPECT_EQ(OneOp().in(DType::f32, {3, b}).ints({2, 3}).op("Tile").type(), "f32[6,3*b]");
  EXPECT_EQ(OneOp().elements({b, s}).ints({2}).op("Tile").content(), "[b,s,b,s]");
  EXPECT_FALSE(OneOp().in(DType::f32, {3, b}).ints({2}).op("Tile").infer().ok());
}

TEST(ShapeOps, ConstantOfShapeRangeWhereCast) {
  OneOp c;
  c.elements({b, 2}).op("ConstantOfShape");
  EXPECT_EQ(c.type(), "f32[b,2]");
  int64_t one = 1;
  EXPECT_EQ(OneOp().ints({3}).op("ConstantOfShape", {{"value", Tensor::of<int64_t>(DType::i64, {1}, std::span(&one, 1))}}).content(), "[1,1,1]");
  EXPECT_EQ(OneOp().ints({}).op("ConstantOfShape").type(), "f32[]");
  EXPECT_EQ(OneOp().scalar(0).elements({s}, true).scalar(1).op("Range").type(), "i64[s]");
  EXPECT_EQ(OneOp().scalar(10).scalar(0).scalar(-3).op("Range").content(), "[10,7,4,1]");
  EXPECT_EQ(OneOp().scalar(0).scalar(-5).scalar(1).op("Range").type(), "i64[0]");
  EXPECT_FALSE(OneOp().scalar(0).scalar(5).scalar(0).op("Range").infer().ok());
  EXPECT_EQ(OneOp().constant(Tensor::scalar_f32(0)).constant(Tensor::scalar_f32(1)).constant(Tensor::scalar_f32(0.3f)).op("Range").type(), "f32[4]");
  EXPECT_EQ(OneOp().in(DType::i64, {}).scalar(5).scalar(1).op("Range").type(), "i64[node.count]");
  EXPECT_EQ(OneOp().elements({b, s}).op("Cast", {{"to", int64_t{6}}}).content(), "[b,s]");
  EXPECT_EQ(OneOp().ints({300}).op("Cast", {{"to", int64_t{2}}}).content(), "unknown");
  EXPECT_EQ(OneOp().ints({300, 0}).op("Cast", {{"to", int64_t{9}}}).content(), "[1,0]");
  EXPECT_EQ(OneOp().in(DType::f32, {b}).op("Cast", {{"to", int64_t{10}}}).type(), "f16[b]");
  EXPECT_EQ(OneOp().in(DType::f32, {b}).op("Cast", {{"to", int64_t{8}}}).type(), "string[b]");
  EXPECT_FALSE(OneOp().in(DType::f32, {b}).op("Cast", {{"to", int64_t{99}}}).infer().ok());
  OneOp w;
  auto yes = w.g.add_input("c", Type::tensor(DType::boolean, {2}));
  w.g.value(yes).content = std::vector<Dim>{1, 0};
  EXPECT_EQ(w.add(yes).elements({b, s}).ints({7, 8}).op("Where").content(), "[b,8]");
  EXPECT_EQ(OneOp().in(DType::boolean, {b, 1}).in(DType::f32, {3}).in(DType::f32, {}).op("Where").type(), "f32[b,3]");
}

TEST(ShapeOps, Pad) {
  OneOp p;
  p.in(DType::f32, {b, 5}).ints({0, 1, 2, -3}).op("Pad");
  EXPECT_EQ(p.type(), "f32[b + 2,3]");
  EXPECT_EQ(OneOp().in(DType::f32, {b, 5}).ints({1, 1}).none().ints({-1}).op("Pad").type(), "f32[b,7]");
  EXPECT_FALSE(OneOp().in(DType::f32, {b, 5}).ints({1, 1}).op("Pad").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {5}).ints({-3, -3}).op("Pad").infer().ok());
  EXPECT_FALSE(OneOp().in(DType::f32, {5}).ints({1, 1}).op("Pad", {{"mode", std::string("mirror")}}).infer().ok());
  OneOp crop;
  crop.in(DType::f32, {b, 5}).ints({0, -1, 0, -1}).op("Pad");
  ASSERT_TRUE(crop.infer().ok());
  EXPECT_EQ(crop.view(Strided::dense({b, 5})), "1 [b,3] [5,1]");
  OneOp old;
  old.in(DType::f16, {5}).op("Pad", {{"pads", std::vector<int64_t>{1, 2}}, {"value", 1.5}});
  ASSERT_TRUE(old.upgrade(9).ok());
  EXPECT_EQ(old.type(), "f16[8]");
  auto calls = old.lowered();
  ASSERT_TRUE(calls.ok());
  EXPECT_EQ(calls->calls[0].kernel, "move.pad");
  ASSERT_EQ(calls->constants.size(), 1u);
  EXPECT_EQ(calls->constants[0].at(0), 1.5);
}

TEST(ShapeOps, Dropout) {
  OneOp d;
  d.in(DType::f32, {b, 5}).op("Dropout", {}, 2);
  EXPECT_EQ(d.type(1), "bool[b,5]");
  EXPECT_EQ(d.view(Strided::dense({b, 5})), "copy");
  auto calls = d.lowered();
  ASSERT_TRUE(calls.ok());
  ASSERT_EQ(calls->calls.size(), 2u);
  EXPECT_EQ(calls->calls[1].kernel, "move.fill");
  bool yes = true;
  auto training = OneOp().in(DType::f32, {b}).none().constant(Tensor::of<bool>(DType::boolean, {}, std::span(&yes, 1))).op("Dropout").lowered();
  ASSERT_TRUE(training.ok());
  EXPECT_EQ(training->calls[0].kernel, "ref.Dropout");
}

}  // namespace
}  // namespace ge::test
