// Whatever a damaged file asks of the kernels of this layer, prepare() answers with an error or with work that
// stays inside the operands. Meant for the sanitizer builds; elsewhere it finds crashes.
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "kernels/kernel.h"

namespace ge::test {
namespace {

class Source {
 public:
  explicit Source(unsigned seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool chance(int64_t n) { return below(n) == 0; }
  // Mostly small, now and then an extreme.
  int64_t number(int64_t most) {
    if (!chance(24)) return below(most + 1);
    const int64_t extremes[] = {-1, INT64_MIN, INT64_MAX, int64_t{1} << 31, int64_t{1} << 45, -7};
    return extremes[below(6)];
  }

 private:
  std::mt19937_64 engine_;
};

struct Operand {
  std::array<int64_t, 16> dims{}, strides{};
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 13);
  View view;
};

// Views of small sizes end up inside the memory; others only prepare() sees.
void fill(Source& s, Operand& o, int64_t rank, DType t, const std::array<int64_t, 16>& like) {
  for (size_t a = 0; a < 16; ++a) {
    o.dims[a] = s.chance(4) ? s.number(3) : like[a];
    o.strides[a] = s.chance(30) ? s.number(1) : s.below(9) - 4;
  }
  if (s.chance(40)) rank = s.number(14);
  if (s.chance(40)) t = static_cast<DType>(s.below(kDTypeCount));
  o.view = {o.memory.data() + 4096, t, static_cast<int32_t>(rank), s.chance(200) ? nullptr : o.dims.data(), o.strides.data()};
}

bool inside(const View& v) {
  if (v.dtype == DType::none) return true;
  int64_t low = 0, high = 0;
  for (int a = 0; a < v.rank; ++a) {
    if (v.dims[a] == 0) return true;
    if (v.dims[a] > 8 || std::abs(v.strides[a]) > 8) return false;
    (v.strides[a] < 0 ? low : high) += (v.dims[a] - 1) * v.strides[a];
  }
  return low * 8 >= -4096 && high * 8 < 4000;
}

void attack(const kernels::Kernel& k, int rounds, int& accepted) {
  Source s(static_cast<unsigned>(std::hash<std::string_view>()(k.name)));
  std::vector<Operand> in(6), out(3);
  const DType types[] = {DType::f32, DType::i64, DType::f16, DType::i32, DType::boolean, DType::f64};
  for (int round = 0; round < rounds; ++round) {
    std::array<int64_t, 16> like;
    for (auto& d : like) d = s.chance(3) ? 1 : s.below(4);
    int64_t rank = s.below(6);
    DType t = types[s.below(6)];
    std::vector<View> vi, vo;
    for (int64_t i = 0, n = s.below(6); i < n; ++i) {
      fill(s, in[static_cast<size_t>(i)], rank, t, like);
      vi.push_back(in[static_cast<size_t>(i)].view);
    }
    for (int64_t i = 0, n = 1 + s.below(2); i < n; ++i) {
      fill(s, out[static_cast<size_t>(i)], rank, t, like);
      vo.push_back(out[static_cast<size_t>(i)].view);
    }
    std::vector<int64_t> ints(static_cast<size_t>(s.below(18)));
    for (auto& v : ints) v = s.number(k.name.find("elementwise") != std::string_view::npos ? 170 : 3);
    std::vector<double> floats(static_cast<size_t>(s.below(4)), 1.0);
    kernels::Call c{vi, vo, ints, floats, {}};
    auto work = k.prepare(c);
    if (!work.ok()) continue;
    bool run = work->chunks >= 0 && work->chunks < 200 && work->scratch < (1 << 20) && work->shared < (1 << 20);
    for (auto& v : vi) run = run && inside(v);
    for (auto& v : vo) run = run && inside(v);
    ++accepted;
    if (!run) continue;
    std::vector<std::byte> scratch(static_cast<size_t>(work->scratch) + 64), shared(static_cast<size_t>(work->shared) + 64);
    auto align = [](std::byte* p) { return p + (64 - reinterpret_cast<uintptr_t>(p) % 64) % 64; };
    c.state = work->state.get();
    c.scratch = align(scratch.data());
    c.shared = align(shared.data());
    for (int64_t i = 0; i < work->chunks; ++i) (void)k.run(c, i).ok();
  }
}

TEST(HostileCalls, ReferenceKernelsStandThem) {
  const std::string_view names[] = {
      "ref.elementwise", "elementwise.typed", "ref.Reduce", "reduce.axes", "ref.MatMul", "matmul.typed", "ref.Gemm", "ref.Conv",
      "ref.ConvTranspose", "ref.Pool", "ref.Softmax", "ref.LayerNormalization", "ref.BatchNormalization",
      "ref.GroupNormalization", "ref.LpNormalization", "ref.LRN", "lrn", "ref.Einsum", "ref.Det", "ref.Inverse", "ref.Recurrent"};
  int reached = 0;
  for (auto name : names) {
    auto* k = kernels::find(name);
    ASSERT_TRUE(k) << name;
    int accepted = 0;
    attack(*k, 20000, accepted);
    reached += accepted > 0;
  }
  // Chance does not fit every kernel's parameters; for most it must, else nothing but refusals was tried.
  EXPECT_GT(reached, static_cast<int>(std::size(names)) / 2);
}

}  // namespace
}  // namespace ge::test
