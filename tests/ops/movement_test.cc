// Reference kernels of the data-movement ops against values worked out by hand, and fast kernels against
// the references.
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/isa.h"
#include "kernels/move/element.h"
#include "ops/random_buffer.h"
#include "tensor/half.h"

namespace ge::test {
namespace {

using V = std::vector<float>;

Buffer iota(std::vector<int64_t> dims) {
  Buffer b = dense_buffer(DType::f32, std::move(dims));
  float next = 0;
  each_element(b.view(), [&](std::byte* p) { std::memcpy(p, &next, 4), ++next; });
  return b;
}

V run(std::string_view kernel, const std::vector<View>& in, std::vector<int64_t> out, std::vector<int64_t> ints = {}) {
  Buffer y = dense_buffer(DType::f32, std::move(out));
  Status s = run_kernel(kernel, in, {y.view()}, {std::move(ints), {}, {}});
  EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().text());
  return values<float>(y);
}

TEST(Movement, ReferencesByHand) {
  Buffer x = iota({2, 3});
  EXPECT_EQ(run("ref.Reshape", {x.view()}, {3, 2}), (V{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(run("ref.Transpose", {x.view()}, {3, 2}, {1, 0}), (V{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(run("ref.Slice", {x.view()}, {1, 2}, {1, 2, 1, -2}), (V{5, 3}));
  EXPECT_EQ(run("ref.Concat", {x.view(), x.view()}, {2, 6}, {1}), (V{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(run("ref.Tile", {x.view()}, {2, 6}), (V{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  Buffer row = iota({1, 2});
  EXPECT_EQ(run("ref.Expand", {row.view()}, {2, 2, 2}), (V{0, 1, 0, 1, 0, 1, 0, 1}));
  Buffer idx = filled<int64_t>(DType::i64, {2}, {-1, 0});
  EXPECT_EQ(run("ref.Gather", {x.view(), idx.view()}, {2, 2}, {1}), (V{2, 0, 5, 3}));
  Buffer c = filled<uint8_t>(DType::boolean, {2, 1}, {1, 0});
  Buffer zero = filled<float>(DType::f32, {}, {-1});
  EXPECT_EQ(run("ref.Where", {c.view(), x.view(), zero.view()}, {2, 3}), (V{0, 1, 2, -1, -1, -1}));
}

// Against Concat of the rows around the part, in any layout; where as many rows go as come, in the memory of the data too.
TEST(Movement, SpliceIsConcatOfTheRowsAround) {
  Random r(17);
  for (int round = 0; round < 300; ++round) {
    const int64_t axis = r.below(3), lead = r.below(5), rest = r.below(5), cut = r.below(4), fresh = r.below(3) ? cut : r.below(4);
    auto with = [&](int64_t rows) {
      std::vector<int64_t> dims{3, 2, 4};
      dims[static_cast<size_t>(axis)] = rows;
      return dims;
    };
    Buffer x = r.buffer(DType::f32, with(lead + cut + rest)), part = r.buffer(DType::f32, with(fresh)), y = r.buffer(DType::f32, with(lead + fresh + rest));
    auto rows = [&](int64_t from, int64_t count, std::vector<int64_t>& dims) {
      View v = x.view();
      dims = with(count);
      v.dims = dims.data();
      v.data += from * v.strides[axis] * 4;
      return v;
    };
    std::vector<int64_t> first, last;
    Buffer want = dense_buffer(DType::f32, with(lead + fresh + rest));
    ASSERT_TRUE(run_kernel("ref.Concat", {rows(0, lead, first), part.view(), rows(lead + cut, rest, last)}, {want.view()}, {{axis}, {}, {}}).ok());
    const Params params{{axis, lead, rest}, {}, {}};
    ASSERT_TRUE(run_kernel("move.splice", {x.view(), part.view()}, {y.view()}, params).ok());
    EXPECT_EQ(values<uint32_t>(y), values<uint32_t>(want));
    Status there = run_kernel("move.splice", {x.view(), part.view()}, {x.view()}, params);
    EXPECT_EQ(there.ok(), fresh == cut) << round;
    if (there.ok()) {
      EXPECT_EQ(values<uint32_t>(x), values<uint32_t>(want));
    }
  }
  Buffer large = iota({3000, 64}), part = iota({700, 64}), y = dense_buffer(DType::f32, {3000, 64});
  ASSERT_TRUE(run_kernel("move.splice", {large.view(), part.view()}, {y.view()}, {{0, 1200, 1100}, {}, {}}).ok());
  ASSERT_TRUE(run_kernel("move.splice", {large.view(), part.view()}, {large.view()}, {{0, 1200, 1100}, {}, {}}).ok());
  EXPECT_EQ(values<float>(y), values<float>(large));
  EXPECT_EQ(values<float>(y)[1200 * 64], 0);
}

TEST(Movement, PadByHand) {
  Buffer x = filled<float>(DType::f32, {3}, {1, 2, 3}), v = filled<float>(DType::f32, {}, {9});
  for (auto k : {"ref.Pad", "move.pad"}) {
    EXPECT_EQ(run(k, {x.view(), v.view()}, {6}, {0, 2}), (V{9, 9, 1, 2, 3, 9}));
    EXPECT_EQ(run(k, {x.view()}, {3}, {0, -1}), (V{2, 3, 0}));
    EXPECT_EQ(run(k, {x.view()}, {9}, {1, 3}), (V{2, 3, 2, 1, 2, 3, 2, 1, 2}));
    EXPECT_EQ(run(k, {x.view()}, {7}, {2, 2}), (V{1, 1, 1, 2, 3, 3, 3}));
    EXPECT_EQ(run(k, {x.view()}, {9}, {3, 4}), (V{3, 1, 2, 3, 1, 2, 3, 1, 2}));
    Buffer none = dense_buffer(DType::f32, {0});
    EXPECT_EQ(run(k, {none.view(), v.view()}, {2}, {0, 1}), (V{9, 9}));
    Buffer y = dense_buffer(DType::f32, {2});
    EXPECT_FALSE(run_kernel(k, {none.view()}, {y.view()}, {{1, 1}, {}, {}}).ok());
    EXPECT_FALSE(run_kernel(k, {x.view()}, {y.view()}, {{4, 1}, {}, {}}).ok());
  }
}

TEST(Movement, ReferencesRefuse) {
  Buffer x = iota({2, 3}), y = dense_buffer(DType::f32, {2, 3}), h = dense_buffer(DType::f16, {2, 3});
  auto bad = [&](std::string_view k, std::vector<View> in, const Buffer& out, std::vector<int64_t> ints) {
    return !run_kernel(k, in, {out.view()}, {ints, {}, {}}).ok();
  };
  EXPECT_TRUE(bad("ref.Reshape", {x.view()}, h, {}));
  EXPECT_TRUE(bad("ref.Transpose", {x.view()}, y, {0, 0}));
  EXPECT_TRUE(bad("ref.Transpose", {x.view()}, y, {1, 0}));
  EXPECT_TRUE(bad("ref.Transpose", {x.view()}, y, {0, 64}));
  EXPECT_TRUE(bad("ref.Slice", {x.view()}, y, {0, 1, 1, 1}));
  EXPECT_TRUE(bad("ref.Slice", {x.view()}, y, {0, 0, 1, INT64_MAX}));
  EXPECT_TRUE(bad("ref.Concat", {x.view(), x.view()}, y, {0}));
  EXPECT_TRUE(bad("ref.Concat", {}, y, {0}));
  EXPECT_TRUE(bad("ref.Tile", {x.view()}, dense_buffer(DType::f32, {2, 4}), {}));
  EXPECT_TRUE(bad("ref.Where", {x.view(), x.view(), x.view()}, y, {}));
}

// ---- move.where and move.pad against the references

TEST(Movement, WhereMatchesReference) {
  Random r(5);
  for (int round = 0; round < 500; ++round) {
    std::vector<int64_t> dims;
    for (int64_t i = r.below(4); i >= 0; --i) dims.push_back(r.below(8) ? r.below(20) : r.below(60));
    auto part = [&] {
      auto d = dims;
      for (auto& n : d)
        if (r.below(4) == 0) n = 1;
      if (r.below(4) == 0) d.erase(d.begin());
      return d;
    };
    DType t = kSizes[r.below(5)];
    Buffer c = r.buffer(DType::boolean, part()), x = r.buffer(t, part()), y = r.buffer(t, part());
    Buffer a = dense_buffer(t, dims), b = r.buffer(t, dims);
    ASSERT_TRUE(run_kernel("ref.Where", {c.view(), x.view(), y.view()}, {a.view()}).ok());
    ASSERT_TRUE(run_kernel("move.where", {c.view(), x.view(), y.view()}, {b.view()}).ok());
    ASSERT_EQ(raw(a.view()), raw(b.view())) << round;
  }
}

TEST(Movement, PadMatchesReference) {
  Random r(6);
  for (int round = 0; round < 800; ++round) {
    std::vector<int64_t> in, out, ints{r.below(4)};
    for (int64_t i = r.below(4); i > 0; --i) {
      in.push_back(ints[0] ? 1 + r.below(12) : r.below(12));
      ints.push_back(r.below(12) - 4);
      out.push_back(std::max<int64_t>(0, in.back() + ints.back() + r.below(12) - 4));
    }
    DType t = kSizes[r.below(5)];
    std::vector<Buffer> x;
    x.push_back(r.buffer(t, in));
    if (r.below(2)) x.push_back(r.buffer(t, {1}));
    Buffer a = dense_buffer(t, out), b = r.buffer(t, out);
    ASSERT_TRUE(run_kernel("ref.Pad", views(x), {a.view()}, {ints, {}, {}}).ok());
    ASSERT_TRUE(run_kernel("move.pad", views(x), {b.view()}, {ints, {}, {}}).ok());
    ASSERT_EQ(raw(a.view()), raw(b.view())) << round;
  }
}

// ---- conversions

const DType kNumbers[] = {DType::f32, DType::u8,   DType::i8,         DType::u16,    DType::i16,        DType::i32,  DType::i64,
                          DType::boolean, DType::f16, DType::f64,     DType::u32,    DType::u64,        DType::bf16, DType::f8e4m3fn,
                          DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::u4, DType::i4,    DType::f4e2m1, DType::f8e8m0,
                          DType::u2,  DType::i2};

template <class T>
V cast_to_float(DType from, std::vector<T> v) {
  Buffer x = filled<T>(from, {static_cast<int64_t>(v.size())}, v);
  return run("move.cast", {x.view()}, {static_cast<int64_t>(v.size())});
}
template <class T>
std::vector<T> cast_from_float(DType to, V v, std::vector<int64_t> ints = {}) {
  Buffer x = filled<float>(DType::f32, {static_cast<int64_t>(v.size())}, v);
  Buffer y = dense_buffer(to, x.dims);
  EXPECT_TRUE(run_kernel("move.cast", {x.view()}, {y.view()}, {ints, {}, {}}).ok());
  return values<T>(y);
}

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Movement, CastByHand) {
  EXPECT_EQ(cast_from_float<int32_t>(DType::i32, {1.9f, -1.9f, -0.0f, 2147483648.0f, -2147483648.0f, kNan, -kInf}),
            (std::vector<int32_t>{1, -1, 0, INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN}));
  EXPECT_EQ(cast_from_float<int64_t>(DType::i64, {1.9f, 9223372036854775808.0f, -9223372036854775808.0f, kNan}),
            (std::vector<int64_t>{1, INT64_MIN, INT64_MIN, INT64_MIN}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::u8, {255.5f, 256, -1, kNan}), (std::vector<uint8_t>{255, 0, 255, 0}));
  EXPECT_EQ(cast_from_float<uint64_t>(DType::u64, {9223372036854775808.0f, 3}), (std::vector<uint64_t>{uint64_t{1} << 63, 3}));
  EXPECT_EQ(cast_from_float<uint32_t>(DType::u32, {4294967040.0f}), (std::vector<uint32_t>{4294967040u}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::boolean, {0, -0.0f, 1e-40f, kNan, 2}), (std::vector<uint8_t>{0, 0, 1, 1, 1}));
  EXPECT_EQ(cast_from_float<uint16_t>(DType::f16, {1, 65519, 65520, -kInf, 5.9604645e-8f}), (std::vector<uint16_t>{0x3c00, 0x7bff, 0x7c00, 0xfc00, 1}));
  EXPECT_EQ(cast_from_float<uint16_t>(DType::bf16, {1, 1.00390625f, 1.01171875f, 3.4e38f, -kInf}), (std::vector<uint16_t>{0x3f80, 0x3f80, 0x3f82, 0x7f80, 0xff80}));
  EXPECT_EQ(cast_to_float<int64_t>(DType::i64, {16777217, -3}), (V{16777216, -3}));
  EXPECT_EQ(cast_to_float<uint64_t>(DType::u64, {~uint64_t{0}}), (V{18446744073709551616.0f}));
  EXPECT_EQ(cast_to_float<uint8_t>(DType::boolean, {0, 1, 7}), (V{0, 1, 1}));
  EXPECT_EQ(cast_to_float<uint16_t>(DType::f16, {0x3c01, 0x7c00, 1}), (V{1.0009765625f, kInf, 5.9604645e-8f}));
  // Integers lose high bits.
  Buffer i = filled<int16_t>(DType::i16, {2}, {200, -129}), o = dense_buffer(DType::i8, {2});
  ASSERT_TRUE(run_kernel("move.cast", {i.view()}, {o.view()}).ok());
  EXPECT_EQ(values<int8_t>(o), (std::vector<int8_t>{-56, 127}));
  Buffer n = dense_buffer(DType::i4, {2});
  ASSERT_TRUE(run_kernel("move.cast", {i.view()}, {n.view()}).ok());
  EXPECT_EQ(values<int8_t>(n), (std::vector<int8_t>{-8, -1}));
  // f64 to 16 bits is rounded once: this is just above the middle of two f16, and an f32 cannot tell.
  Buffer d = filled<double>(DType::f64, {2}, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11}), h = dense_buffer(DType::f16, {2});
  ASSERT_TRUE(run_kernel("move.cast", {d.view()}, {h.view()}).ok());
  EXPECT_EQ(values<uint16_t>(h), (std::vector<uint16_t>{0x3c01, 0x3c00}));
}

// The tables of ONNX's Cast.
TEST(Movement, CastToSmallFloats) {
  using B = std::vector<uint8_t>;
  V x{0, -0.0f, kNan, kInf, -kInf, 449, 464.1f, -1e6f, 1, 0.0009765625f};
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e4m3fn, x), (B{0, 0x80, 0x7f, 0x7e, 0xfe, 0x7e, 0x7e, 0xfe, 0x38, 0}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e4m3fn, x, {0}), (B{0, 0x80, 0x7f, 0x7f, 0xff, 0x7e, 0x7f, 0xff, 0x38, 0}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e4m3fnuz, x), (B{0, 0, 0x80, 0x7f, 0xff, 0x7f, 0x7f, 0xff, 0x40, 1}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e4m3fnuz, x, {0}), (B{0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 1}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e5m2, {kNan, kInf, -kInf, 57344, 61440, -1e6f, 1, 1.125f, 1.375f}),
            (B{0x7f, 0x7b, 0xfb, 0x7b, 0x7b, 0xfb, 0x3c, 0x3c, 0x3e}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e5m2, {kInf, -kInf, 61440, -1e6f}, {0}), (B{0x7c, 0xfc, 0x7c, 0xfc}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e5m2fnuz, {-0.0f, kNan, kInf, 1}, {0}), (B{0, 0x80, 0x80, 0x40}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f4e2m1, {0, 0.25f, 0.75f, 2.5f, 5, 100, -kInf, kNan}), (B{0, 0, 2, 4, 6, 7, 15, 8}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e8m0, {1, 1.1f, 1.5f, kInf, 0, kNan}, {1, 0}), (B{127, 128, 128, 254, 0, 255}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e8m0, {1.4f, 1.5f, 1.9f}, {1, 2}), (B{127, 128, 128}));
  EXPECT_EQ(cast_from_float<uint8_t>(DType::f8e8m0, {1.9f, kInf, 0}, {0, 1}), (B{127, 255, 255}));
}

TEST(Movement, SmallFloatsReadBack) {
  for (DType t : {DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f4e2m1, DType::f8e8m0})
    for (int code = 0; code < (t == DType::f4e2m1 ? 16 : 256); ++code) {
      auto c = static_cast<uint8_t>(code);
      float v = small_float_value(t, c);
      if (std::isnan(v) || std::isinf(v)) continue;
      EXPECT_EQ(small_float_code(t, v, true), c) << name(t) << ' ' << v;
    }
}

TEST(Movement, CastMatchesReferenceForAllPairs) {
  Random r(7);
  auto before = kernels::isa();
  for (auto isa : {kernels::Isa::portable, kernels::Isa::avx2, kernels::Isa::avx512}) {
    if (!kernels::set_isa(isa)) continue;
    for (DType from : kNumbers)
      for (DType to : kNumbers)
        for (int round = 0; round < 3; ++round) {
          std::vector<int64_t> dims{r.below(40), 1 + r.below(5), r.below(50)};
          Buffer x = round ? r.buffer(from, dims) : dense_buffer(from, dims);
          // Half small numbers, half any bits.
          each_element(x.view(), [&](std::byte* p) {
            if (r.below(2)) kernels::move::store_f64(from, p, static_cast<double>(r.below(600) - 300) / (r.below(2) ? 1 : 7));
            else for (int64_t k = 0; k < size_of(from); ++k) p[k] = std::byte(r.rng() & 0xff);
          });
          Buffer a = dense_buffer(to, dims), b = round ? r.buffer(to, dims) : dense_buffer(to, dims);
          Params p{{r.below(2), r.below(3)}, {}, {}};
          ASSERT_TRUE(run_kernel("ref.Cast", {x.view()}, {a.view()}, p).ok());
          ASSERT_TRUE(run_kernel("move.cast", {x.view()}, {b.view()}, p).ok());
          auto ra = raw(a.view()), rb = raw(b.view());
          auto rx = raw(x.view());
          for (size_t i = 0; i < ra.size(); ++i) {
            if (ra[i] == rb[i]) continue;
            // NaNs may differ in their payload.
            auto number = [&](const std::string& s) { return kernels::move::load_f64(to, reinterpret_cast<const std::byte*>(s.data())); };
            ASSERT_TRUE(is_float(to) && std::isnan(number(ra[i])) && std::isnan(number(rb[i])))
                << name(from) << " to " << name(to) << ": " << kernels::move::load_f64(from, reinterpret_cast<const std::byte*>(rx[i].data()))
                << " gives " << number(ra[i]) << " and " << number(rb[i]) << " with " << kernels::name(isa);
          }
        }
  }
  kernels::set_isa(before);
}

}  // namespace
}  // namespace ge::test
