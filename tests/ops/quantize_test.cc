// Quantised operators: hand-computed values, and lowering against the reference.
#include "infer_op.h"
#include "kernels/isa.h"
#include "node_case.h"

namespace ge::test {
namespace {

const float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

TEST(QuantizeLinear, TiesAndEnds) {
  NodeCase n;
  n.in(tensor(DType::f32, {12}, {0.5, 1.5, 2.5, -0.5, -1.5, 127, 128.5, -129, 1e30, -1e30, kInf, -kInf}))
      .in(tensor(DType::f32, {}, {1}))
      .in(tensor(DType::i8, {}, {1}))
      .op("QuantizeLinear");
  Tensor want = tensor(DType::i8, {12}, {1, 3, 3, 1, -1, 127, 127, -128, 127, -128, 127, -128});
  EXPECT_TRUE(n.reference()[0].same_bytes(want));
  EXPECT_TRUE(n.lowered()[0].same_bytes(want));
}

// f16 operands divide in f16: 2049 is 2048 there.
TEST(QuantizeLinear, PrecisionIsThatOfTheScale) {
  NodeCase half, single;
  half.in(tensor(DType::f32, {1}, {2049})).in(tensor(DType::f16, {}, {1})).in(tensor(DType::i16, {}, {0})).op("QuantizeLinear");
  single.in(tensor(DType::f32, {1}, {2049})).in(tensor(DType::f16, {}, {1})).in(tensor(DType::i16, {}, {0})).op("QuantizeLinear", {{"precision", int64_t{1}}});
  EXPECT_EQ(half.reference()[0].at(0), 2048);
  EXPECT_EQ(half.lowered()[0].at(0), 2048);
  EXPECT_EQ(single.reference()[0].at(0), 2049);
  EXPECT_EQ(single.lowered()[0].at(0), 2049);
}

struct Scales {
  std::vector<int64_t> x, scale;
  int64_t axis, block;
};
const Scales kScales[] = {{{5, 7}, {}, 1, 0},       {{5, 7}, {1}, 1, 0},         {{2, 5, 7}, {5}, 1, 0},     {{2, 5, 7}, {7}, -1, 0},
                          {{3, 5}, {3, 3}, 1, 2},   {{4, 3, 5}, {2, 3, 5}, 0, 2}, {{2, 6, 3}, {2, 2, 3}, -2, 3}, {{7}, {7}, 0, 0},
                          {{0, 3}, {3}, 1, 0},      {{}, {}, 1, 0},              {{2, 5, 40, 3}, {2}, 0, 0}};

TEST(QuantizeLinear, LoweringGivesTheReference) {
  for (DType to : {DType::u8, DType::i8, DType::u16, DType::i16, DType::u4, DType::i4, DType::u2, DType::i2, DType::f8e4m3fn, DType::f8e5m2, DType::f4e2m1})
    for (DType from : {DType::f32, DType::f16, DType::i32})
      for (auto& s : kScales) {
        Tensor x = random_tensor(from, s.x, 3, -40, 40), scale = random_tensor(from == DType::i32 ? DType::f32 : from, s.scale, 4, 0.1, 3);
        Tensor zero = random_tensor(to, s.scale, 5, is_float(to) ? 0 : -2, is_float(to) ? 0 : 3);
        if (from == DType::f32 && x.count() > 3) x.as<float>()[0] = kNan, x.as<float>()[1] = kInf, x.as<float>()[2] = -3e38f;
        NodeCase n;
        n.in(x).in(scale).in(zero).op("QuantizeLinear", {{"axis", s.axis}, {"block_size", s.block}});
        ASSERT_TRUE(n.reference()[0].same_bytes(n.lowered()[0])) << name(to) << " of " << name(from) << " axis " << s.axis;
      }
}

TEST(DequantizeLinear, LoweringGivesTheReference) {
  for (DType from : {DType::u8, DType::i8, DType::u16, DType::i16, DType::i32, DType::u4, DType::i4, DType::u2, DType::i2, DType::f8e4m3fnuz, DType::f8e5m2fnuz})
    for (DType to : {DType::f32, DType::f16, DType::bf16})
      for (auto& s : kScales) {
        NodeCase n;
        n.in(random_tensor(from, s.x, 3, -100, 100)).in(random_tensor(to, s.scale, 4, -3, 3));
        if (from != DType::i32) n.in(random_tensor(from, s.scale, 5, is_float(from) ? 0 : -2, is_float(from) ? 0 : 3));
        n.op("DequantizeLinear", {{"axis", s.axis}, {"block_size", s.block}});
        ASSERT_TRUE(n.reference()[0].same_bytes(n.lowered()[0])) << name(from) << " to " << name(to) << " axis " << s.axis;
      }
}

TEST(DynamicQuantizeLinear, LoweringGivesTheReference) {
  for (std::vector<int64_t> dims : {std::vector<int64_t>{}, {1}, {3, 5}, {2, 3, 40, 700}, {0, 4}}) {
    for (double low : {-2.0, 0.5, -8.0}) {
      NodeCase n;
      n.in(random_tensor(DType::f32, dims, 7, low, low < -4 ? -1 : 2), false, dims.size() == 4 ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{}).op("DynamicQuantizeLinear", {}, 3);
      auto want = n.reference(), got = n.lowered();
      for (size_t i = 0; i < 3; ++i) ASSERT_TRUE(want[i].same_bytes(got[i])) << "output " << i;
    }
  }
}

TEST(DynamicQuantizeLinear, ByHand) {
  NodeCase n;
  n.in(tensor(DType::f32, {4}, {0, 2, -3, -2.5})).op("DynamicQuantizeLinear", {}, 3);
  auto y = n.lowered();
  EXPECT_FLOAT_EQ(y[1].as<float>()[0], 5.0f / 255);
  EXPECT_TRUE(y[2].same_bytes(tensor(DType::u8, {}, {153})));
  EXPECT_TRUE(y[0].same_bytes(tensor(DType::u8, {4}, {153, 255, 0, 26})));
}

Tensor bytes(DType t, std::vector<int64_t> dims, unsigned seed) {
  return random_tensor(t, std::move(dims), seed, is_signed(t) ? -128 : 0, is_signed(t) ? 127.9 : 255.9);
}

struct Isas {
  kernels::Isa before = kernels::isa();
  ~Isas() { kernels::set_isa(before); }
};

struct Product {
  std::vector<int64_t> a, b, za, zb;
};
const Product kProducts[] = {{{5, 7}, {7, 3}, {}, {}},        {{5, 7}, {7, 33}, {1}, {33}},          {{1, 64}, {64, 130}, {}, {130}}, {{2, 3, 50, 36}, {36, 70}, {}, {}},
                             {{3, 4, 9}, {3, 9, 20}, {}, {}}, {{4, 9}, {3, 9, 20}, {}, {1}},         {{7}, {7, 5}, {}, {5}},          {{3, 7}, {7}, {}, {}},
                             {{0, 7}, {7, 3}, {}, {}},        {{5, 0}, {0, 3}, {}, {}},              {{4, 9}, {9, 5}, {4}, {5}},      {{2, 3, 4, 9}, {2, 3, 9, 5}, {2, 3, 4, 1}, {2, 3, 1, 5}},
                             {{200, 13}, {13, 129}, {}, {129}}, {{8}, {8}, {}, {}}};

TEST(MatMulInteger, LoweringGivesTheReference) {
  Isas restore;
  for (auto isa : {kernels::Isa::portable, kernels::Isa::avx2, kernels::Isa::avx512}) {
    if (!kernels::set_isa(isa)) continue;
    for (DType ta : {DType::u8, DType::i8})
      for (DType tb : {DType::u8, DType::i8})
        for (bool constant : {false, true})
          for (auto& p : kProducts) {
            NodeCase n;
            n.in(bytes(ta, p.a, 1)).in(bytes(tb, p.b, 2), constant);
            if (constant) n.in(bytes(ta, p.za, 3)).in(bytes(tb, p.zb, 4));
            n.op("MatMulInteger");
            auto want = n.reference(), got = n.lowered();
            ASSERT_TRUE(want[0].same_bytes(got[0])) << name(ta) << " " << name(tb) << " " << p.a.size() << "x" << p.b.size() << " constant " << constant;
          }
  }
}

TEST(MatMulInteger, RunsOnTheFastKernel) {
  NodeCase n;
  n.in(bytes(DType::u8, {5, 7}, 1), false, {1, 0}).in(bytes(DType::i8, {7, 3}, 2), true).in(bytes(DType::u8, {}, 3)).in(bytes(DType::i8, {3}, 4)).op("MatMulInteger");
  auto want = n.reference(), got = n.lowered();
  EXPECT_TRUE(want[0].same_bytes(got[0]));
  EXPECT_EQ(n.kernels().back(), "cube.integer_product");
}

struct Window {
  std::vector<int64_t> x, w;
  ir::Attrs attrs;
};
using Ints = std::vector<int64_t>;
std::vector<Window> windows() {
  return {{{1, 3, 8, 9}, {5, 3, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}},
          {{2, 4, 7, 6}, {18, 4, 1, 1}, {}},
          {{2, 4, 7, 6}, {8, 4, 1, 1}, {{"strides", Ints{2, 2}}}},
          {{1, 6, 30}, {10, 3, 5}, {{"group", int64_t{2}}, {"dilations", Ints{3}}, {"pads", Ints{6, 6}}}},
          {{1, 4, 9, 9}, {4, 1, 3, 3}, {{"group", int64_t{4}}, {"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2, 2}}}},
          {{1, 40, 5, 5}, {40, 1, 3, 3}, {{"group", int64_t{40}}, {"pads", Ints{1, 1, 1, 1}}}},
          {{1, 2, 5, 6, 7}, {3, 2, 2, 3, 2}, {{"pads", Ints{1, 0, 2, 0, 1, 1}}, {"strides", Ints{1, 2, 1}}, {"dilations", Ints{2, 1, 1}}}},
          {{0, 3, 8, 9}, {5, 3, 3, 3}, {}}};
}

TEST(ConvInteger, LoweringGivesTheReference) {
  Isas restore;
  for (auto isa : {kernels::Isa::portable, kernels::Isa::avx512}) {
    if (!kernels::set_isa(isa)) continue;
    for (DType tx : {DType::u8, DType::i8})
      for (DType tw : {DType::u8, DType::i8})
        for (bool constant : {false, true})
          for (auto& w : windows()) {
            bool last = w.x.size() == 4 && constant;
            NodeCase n;
            n.in(bytes(tx, w.x, 1), false, last ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{}).in(bytes(tw, w.w, 2), constant).in(bytes(tx, {}, 3));
            n.in(bytes(tw, constant ? std::vector<int64_t>{w.w[0]} : std::vector<int64_t>{}, 4)).op("ConvInteger", w.attrs, 1, last ? std::vector<int>{0, 2, 3, 1} : std::vector<int>{});
            auto want = n.reference(), got = n.lowered();
            ASSERT_TRUE(want[0].same_bytes(got[0])) << name(tx) << " " << name(tw) << " " << w.x.size() << " constant " << constant;
          }
  }
}

// Equal but for ties, where the order of roundings shows: one step, one element in five hundred.
void expect_quantized(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.dtype(), want.dtype());
  ASSERT_EQ(got.dims(), want.dims());
  int64_t differ = 0;
  for (int64_t i = 0; i < want.count(); ++i) {
    ASSERT_LE(std::abs(got.at_int(i) - want.at_int(i)), 1) << "element " << i;
    differ += got.at_int(i) != want.at_int(i);
  }
  EXPECT_LE(differ, want.count() / 500);
}

TEST(QLinearConv, LoweringGivesTheReference) {
  for (DType t : {DType::u8, DType::i8})
    for (bool constant : {false, true})
      for (bool channels : {false, true})
        for (auto& w : windows()) {
          std::vector<int64_t> c = channels ? std::vector<int64_t>{w.w[0]} : std::vector<int64_t>{};
          NodeCase n;
          n.in(bytes(t, w.x, 1)).in(tensor(DType::f32, {}, {0.02}), constant).in(bytes(t, {}, 3), constant).in(bytes(DType::i8, w.w, 2), constant);
          n.in(random_tensor(DType::f32, c, 5, 0.01, 0.05), constant).in(bytes(DType::i8, c, 6), constant);
          n.in(tensor(DType::f32, {}, {0.7}), constant).in(tensor(t, {}, {3}), constant).in(random_tensor(DType::i32, {w.w[0]}, 8, -5000, 5000), constant);
          n.op("QLinearConv", w.attrs);
          auto want = n.reference(), got = n.lowered();
          expect_quantized(got[0], want[0]);
          if (HasFatalFailure()) FAIL() << name(t) << " " << w.x.size() << " constant " << constant;
        }
}

TEST(QLinearMatMul, LoweringGivesTheReference) {
  for (DType t : {DType::u8, DType::i8})
    for (bool constant : {false, true})
      for (auto& p : kProducts) {
        auto scales = [&](const std::vector<int64_t>& d, unsigned seed) { return random_tensor(DType::f32, d, seed, 0.01, 0.05); };
        NodeCase n;
        n.in(bytes(t, p.a, 1)).in(scales(p.za, 2), constant).in(bytes(t, p.za, 3), constant).in(bytes(DType::i8, p.b, 4), constant);
        n.in(scales(p.zb, 5), constant).in(bytes(DType::i8, p.zb, 6), constant).in(tensor(DType::f32, {}, {0.4}), constant).in(tensor(t, {}, {9}), constant);
        n.op("QLinearMatMul");
        auto want = n.reference(), got = n.lowered();
        expect_quantized(got[0], want[0]);
        if (HasFatalFailure()) FAIL() << name(t) << " " << p.a.size() << " constant " << constant;
      }
}

TEST(UnpackBits, LowestFirst) {
  NodeCase n, two;
  n.in(tensor(DType::u8, {1, 2}, {0x21, 0xf3})).op("ge.UnpackBits", {{"bits", int64_t{4}}});
  EXPECT_TRUE(n.lowered()[0].same_bytes(tensor(DType::u4, {1, 4}, {1, 2, 3, 15})));
  two.in(tensor(DType::u8, {1}, {0xe4})).op("ge.UnpackBits", {{"bits", int64_t{2}}});
  EXPECT_TRUE(two.lowered()[0].same_bytes(tensor(DType::u2, {4}, {0, 1, 2, 3})));
}

}  // namespace
}  // namespace ge::test
