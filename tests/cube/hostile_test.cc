// prepare() of the matrix kernels answers any Call: tasks of a damaged file, made by mutating good ones.
#include "cube/cube_util.h"

namespace ge::kernels {
namespace {

// Sizes and strides that a view keeps alive.
struct Sizes {
  Dims dims, strides;
  DType type = DType::none;  // an absent operand
  View view() const { return {nullptr, type, static_cast<int32_t>(dims.size()), dims.data(), strides.data()}; }
};

Sizes dense(Dims d, DType type = DType::f32) {
  Sizes s;
  s.type = type;
  s.strides.assign(d.size(), 1);
  for (size_t i = d.size(); i-- > 1;) s.strides[i - 1] = s.strides[i] * d[i];
  s.dims = std::move(d);
  return s;
}

Sizes bytes(Dims d, DType t = DType::u8) {
  Sizes s = dense(std::move(d));
  s.type = t;
  return s;
}

struct Good {
  const char* kernel;
  std::vector<Sizes> in, out;
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

std::vector<Good> good_tasks() {
  return {
      {"cube.pack_b", {dense({2, 20, 33})}, {dense({2, 3, 20, 16})}, {}, {}},
      {"cube.matmul", {dense({2, 5, 20}), dense({3, 20, 16}), dense({33}), dense({5, 33})}, {dense({2, 5, 33})}, {1}, {0, 0, 1}},
      {"cube.matmul", {dense({2, 5, 20}), dense({20, 33})}, {dense({2, 5, 33})}, {1, 1}, {0, 0, 1}},
      {"cube.matmul", {dense({2, 25, 20}), dense({2, 20, 33})}, {dense({2, 25, 33})}, {1, 1}, {0, 0, 1}},
      {"cube.pack_b", {dense({2, 21, 33})}, {dense({2, 3, 11, 32}, DType::bf16)}, {}, {}},
      {"cube.matmul", {dense({2, 5, 21}), dense({3, 11, 32}, DType::bf16), dense({33})}, {dense({2, 5, 33})}, {1}, {0, 0, 1}},
      {"cube.attention",
       {dense({2, 4, 7, 9}), dense({2, 2, 3, 5, 32}, DType::bf16), dense({2, 2, 1, 21, 32}, DType::bf16)},
       {dense({2, 4, 7, 5})}, {0, 0, 1, 1, 41}, {0.5, 0, -1}},
      {"cube.attention",
       {dense({2, 4, 7, 8}), dense({2, 2, 3, 8, 16}), dense({2, 2, 1, 40, 16}), dense({1, 1, 7, 40})},
       {dense({2, 4, 7, 5})}, {1, 0, 1}, {0.5, 0, -1}},
      {"cube.pack_integer", {bytes({2, 20, 33})}, {bytes({2, 3, 5, 16, 4}, DType::i8), bytes({2, 48}, DType::i32)}, {}, {}},
      {"cube.integer_product", {bytes({2, 5, 20}), bytes({3, 5, 16, 4}, DType::i8), bytes({48}, DType::i32), bytes({1}), bytes({33}, DType::i8)},
       {bytes({2, 5, 33}, DType::i32)}, {0, 0}, {}},
      {"cube.integer_product", {bytes({2, 9, 7, 6}), bytes({3, 14, 16, 4}, DType::i8), bytes({48}, DType::i32), bytes({})},
       {bytes({2, 5, 4, 33}, DType::i32)}, {2, 1, 3, 3, 2, 2, 1, 1, 1, 1}, {}},
      {"cube.attention", {dense({2, 4, 7, 8}), dense({2, 2, 40, 8}), dense({2, 2, 40, 5})}, {dense({2, 4, 7, 5})}, {0, 0, 0}, {0.5, 0, 0}},
      {"cube.attention",  // bytes with scales, read as they lie and packed
       {dense({2, 4, 2, 8}), bytes({2, 2, 40, 8}, DType::i8), bytes({2, 2, 40, 5}, DType::i8), {}, dense({2, 2, 40, 1}), dense({2, 2, 40, 1})},
       {dense({2, 4, 2, 5})}, {0, 0, 0}, {0.5, 0, 0}},
      {"cube.attention",
       {dense({2, 4, 7, 8}), bytes({2, 2, 40, 8}, DType::i8), bytes({2, 2, 40, 5}, DType::i8), {}, dense({2, 2, 40, 1}), dense({2, 2, 40, 1})},
       {dense({2, 4, 7, 5})}, {2, 0, 0}, {0.5, 0, 0}},
      {"quantize.rows", {dense({2, 3, 9})}, {bytes({2, 3, 9}, DType::i8), dense({2, 3, 1})}, {}, {}},
      {"dequantize.rows", {bytes({2, 3, 9}, DType::i8), dense({2, 3, 1})}, {dense({2, 3, 9})}, {}, {}},
      {"cube.pack_gates", {dense({2, 3 * 20, 33})}, {dense({2, 6, 33, 16})}, {3, 2}, {}},
      {"cube.recurrent",  // LSTM, both directions, all inputs
       {dense({5, 40, 2, 128}), dense({2, 8, 20, 16}), dense({2, 128}), dense({40}, DType::i32), dense({2, 40, 20}),
        dense({2, 40, 20}), dense({2, 60})},
       {dense({5, 2, 40, 20}), dense({2, 40, 20}), dense({2, 40, 20})},
       {2, 0, 2, 2, 3, 2, 2, 3, 2, 2}, std::vector<double>(13, 1.0)},
      {"cube.recurrent",  // GRU
       {dense({5, 3, 1, 48}), dense({1, 3, 8, 16}), {}, {}, {}, {}, {}},
       {dense({5, 1, 3, 8}), dense({1, 3, 8}), {}}, {1, 0, 1, 1, 3, 2, 0}, std::vector<double>(7, 1.0)},
  };
}

int64_t wild() {
  return pick_of({0, 1, -1, 2, 16, 17, 1 << 20, int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 62, INT64_MAX, INT64_MIN, INT64_MIN + 1});
}

void mutate(Good& g) {
  auto& side = pick(0, 2) ? g.in : g.out;
  if (side.empty()) return;
  Sizes& s = side[static_cast<size_t>(pick(0, static_cast<int64_t>(side.size()) - 1))];
  const auto axis = s.dims.empty() ? 0 : static_cast<size_t>(pick(0, static_cast<int64_t>(s.dims.size()) - 1));
  switch (pick(0, 9)) {
    case 0: if (!s.dims.empty()) s.dims[axis] = wild(); break;
    case 1: if (!s.dims.empty()) s.strides[axis] = wild(); break;
    case 2: s.type = static_cast<DType>(pick(0, kDTypeCount - 1)); break;
    case 3: s.dims.push_back(wild()), s.strides.push_back(wild()); break;
    case 4: if (!s.dims.empty()) s.dims.pop_back(), s.strides.pop_back(); break;
    case 5: side.pop_back(); break;
    case 6: side.push_back(s); break;
    case 7: if (!g.ints.empty()) g.ints[0] = wild(); break;
    case 8: if (!g.ints.empty()) g.ints.back() = wild(); break;
    case 9: if (pick(0, 1)) g.floats.push_back(0); else g.ints.push_back(0); break;
  }
}

TEST(Hostile, PrepareIsTotal) {
  int accepted = 0, refused = 0;
  for (const Good& base : good_tasks()) {
    ASSERT_NE(find(base.kernel), nullptr);
    for (int round = 0; round < 20000; ++round) {
      Good g = base;
      for (int64_t i = round == 0 ? 0 : pick(1, 4); i > 0; --i) mutate(g);
      Task t;
      for (const Sizes& s : g.in) t.in.push_back(s.view());
      for (const Sizes& s : g.out) t.out.push_back(s.view());
      t.ints = g.ints, t.floats = g.floats;
      auto work = find(g.kernel)->prepare(t.call());
      if (round == 0) {
        ASSERT_TRUE(work.ok()) << work.error().text();
      }
      (work.ok() ? accepted : refused)++;
      if (!work.ok()) continue;
      ASSERT_GE(work->chunks, 0);
      ASSERT_LE(work->chunks, 1 << 20);
      ASSERT_GE(work->scratch, 0);
      ASSERT_GE(work->shared, 0);
      ASSERT_TRUE(work->chunks == 0 || work->state || std::string_view(g.kernel).starts_with("cube.pack_"));
    }
  }
  EXPECT_GT(accepted, 1000);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace ge::kernels
