// Products of bytes: every implementation against plain sums, with the values that saturate 16-bit pairs.
#include "kernels/cube/integer.h"

#include "cube/cube_util.h"

namespace ge::kernels {
namespace {

using cube::IntegerBlock;
using cube::IntegerPath;

struct Problem {
  int64_t m, n, k, quads, panels, lda, ldc;
  std::vector<uint8_t> a;
  std::vector<int8_t> b, packed;      // b: [k, n]
  std::vector<int32_t> sums, start, rows, zeros;
  std::vector<float> scale, bias;

  Problem(int64_t m_, int64_t n_, int64_t k_, bool extreme) : m(m_), n(n_), k(k_) {
    quads = cube::quads(k), panels = (n + 15) / 16, lda = 4 * quads + pick(0, 9), ldc = panels * 16 + pick(0, 5);
    a.assign(static_cast<size_t>(m * lda + 1), 0);
    for (auto& x : a) x = static_cast<uint8_t>(extreme ? pick_of({0, 255, 255}) : pick(0, 255));
    b.resize(static_cast<size_t>(k * n));
    for (auto& x : b) x = static_cast<int8_t>(extreme ? pick_of({-128, -128, 127}) : pick(-128, 127));
    packed.assign(static_cast<size_t>(cube::packed_integer_bytes(k, n)), 99);
    sums.assign(static_cast<size_t>(panels * 16), 99);
    const int64_t dims[2] = {k, n}, strides[2] = {n, 1};
    cube::pack_integer({reinterpret_cast<std::byte*>(b.data()), DType::i8, 2, dims, strides}, packed.data(), sums.data());
    for (int64_t j = 0; j < panels * 16; ++j) start.push_back(static_cast<int32_t>(pick(INT32_MIN, INT32_MAX))), zeros.push_back(static_cast<int32_t>(pick(-128, 127)));
    for (int64_t j = 0; j < panels * 16; ++j) scale.push_back(static_cast<float>(pick(-9, 9)) / 7), bias.push_back(static_cast<float>(pick(-9, 9)) * 1e8f);
    for (int64_t i = 0; i < m; ++i) rows.push_back(static_cast<int32_t>(pick(0, 255 * k)));
  }

  int32_t want(int64_t i, int64_t j, bool with_rows) const {
    auto s = static_cast<uint32_t>(start[static_cast<size_t>(j)]);
    for (int64_t x = 0; x < k; ++x) s += static_cast<uint32_t>(a[static_cast<size_t>(i * lda + x)] * b[static_cast<size_t>(x * n + j)]);
    if (with_rows) s -= static_cast<uint32_t>(rows[static_cast<size_t>(i)]) * static_cast<uint32_t>(zeros[static_cast<size_t>(j)]);
    return static_cast<int32_t>(s);
  }
};

void check(IntegerPath path, const Problem& p, bool with_rows, bool to_float) {
  std::vector<int32_t> c(static_cast<size_t>(p.m * p.ldc), 0x55555555);
  IntegerBlock t;
  t.m = p.m, t.n = p.n, t.quads = p.quads;
  t.a = p.a.data(), t.lda = p.lda;
  t.b = p.packed.data(), t.b_stride = p.quads * 64;
  t.start = p.start.data(), t.column_zero = p.zeros.data();
  t.row_sum = with_rows ? p.rows.data() : nullptr;
  t.to_float = to_float;
  t.scale = p.scale.data(), t.bias = p.bias.data();
  t.c = c.data(), t.ldc = p.ldc;
  cube::multiply_integer_on(path, t);
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      const int32_t got = c[static_cast<size_t>(i * p.ldc + j)], want = p.want(i, j, with_rows);
      volatile float product = static_cast<float>(want) * p.scale[static_cast<size_t>(j)];
      const float as_float = product + p.bias[static_cast<size_t>(j)];
      int32_t expected = want;
      if (to_float) std::memcpy(&expected, &as_float, 4);
      ASSERT_EQ(got, expected) << "row " << i << " column " << j << " of " << p.m << "x" << p.n << "x" << p.k;
    }
    for (int64_t j = p.panels * 16; j < p.ldc; ++j) ASSERT_EQ(c[static_cast<size_t>(i * p.ldc + j)], 0x55555555) << "written outside of the tile";
  }
}

TEST(IntegerMicrokernel, EveryPathSumsExactly) {
  int paths = 0;
  for (IntegerPath path : {IntegerPath::portable, IntegerPath::avx2, IntegerPath::avx_vnni, IntegerPath::avx512_vnni}) {
    if (!cube::has_path(path)) continue;
    ++paths;
    for (int round = 0; round < 60; ++round) {
      const int64_t k = pick_of({0, 1, 3, 4, 5, 31, 64, 257}), n = pick(1, 130), m = pick(1, 30);
      Problem p(m, n, k, round % 3 == 0);
      const bool to_float = pick(0, 1), with_rows = pick(0, 1);
      check(path, p, with_rows, to_float);
      if (HasFatalFailure()) FAIL() << "path " << static_cast<int>(path);
    }
    check(path, Problem(7, 64, 4096, true), true, false);
    if (HasFatalFailure()) FAIL() << "path " << static_cast<int>(path);
  }
  EXPECT_GE(paths, 1);
}

// Unsigned B is stored less 128, whatever its strides; columns beyond N are zeros.
TEST(IntegerMicrokernel, PackedForm) {
  const uint8_t b[6] = {0, 128, 255, 1, 2, 3};   // [2, 3] of strides (1, 2): rows 0 255 2 and 128 1 3
  const int64_t dims[2] = {2, 3}, strides[2] = {1, 2};
  std::vector<int8_t> packed(static_cast<size_t>(cube::packed_integer_bytes(2, 3)), 99);
  std::vector<int32_t> sums(16, 99);
  cube::pack_integer({reinterpret_cast<std::byte*>(const_cast<uint8_t*>(b)), DType::u8, 2, dims, strides}, packed.data(), sums.data());
  ASSERT_EQ(packed.size(), 64u);
  const int8_t want[3][2] = {{-128, 0}, {127, -127}, {-126, -125}};
  for (int j = 0; j < 16; ++j) {
    EXPECT_EQ(sums[static_cast<size_t>(j)], j < 3 ? want[j][0] + want[j][1] : 0);
    for (int k = 0; k < 4; ++k) EXPECT_EQ(packed[static_cast<size_t>(j * 4 + k)], j < 3 && k < 2 ? want[j][k] : 0);
  }
}

}  // namespace
}  // namespace ge::kernels
