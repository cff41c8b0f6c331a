#include "kernels/vector/program.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "kernels/vector/op_info.h"

namespace ge::kernels::vector {
namespace {

const char* const kTexts[] = {
    "v0 = load 0; v1 = load 1; v2 = add v0 v1; v3 = relu v2; store 0 v3",
    "v0 = load 0; v1 = row_max v0 | v2 = sub v0 v1; v3 = exp v2; v4 = row_sum v3 | v5 = div v3 v4; store 0 v5",
    "v0 = const -0; v1 = const 0x7fc00001; v2 = const 1e-45; v3 = fma v0 v1 v2; store 0 v3",
    "v7 = load_i32 0; v3 = const_i32 -5; v1 = imod v7 v3; v0 = ilt v1 v3; v9 = select v0 v1 v7; store 0 v9; store 1 v0",
    "io 3 1; v0 = load 1; store 0 v0",
};

TEST(Program, TextRoundTrip) {
  for (const char* text : kTexts) {
    auto p = parse(text);
    ASSERT_TRUE(p.ok()) << text << "\n" << p.error().text();
    EXPECT_EQ(print(*p), text);
  }
}

TEST(Program, BinaryRoundTrip) {
  for (const char* text : kTexts) {
    Program p = *parse(text);
    auto back = decode(encode(p));
    ASSERT_TRUE(back.ok()) << back.error().text();
    EXPECT_EQ(*back, p);
  }
}

TEST(Program, RefusesWhatBreaksTheRules) {
  const std::pair<const char*, const char*> cases[] = {
      {"v0 = add v1 v2; store 0 v0", "before it is assigned"},
      {"v0 = load 0; v0 = load 1; store 0 v0", "assigned twice"},
      {"v0 = load 0; v1 = iadd v0 v0; store 0 v1", "wrong lane"},
      {"v0 = load 0; v1 = load_i32 1; v2 = select v0 v1 v1; store 0 v2", "wrong lane"},
      {"v0 = load_i32 0; v1 = load 1; v2 = select v0 v1 v0; store 0 v2", "wrong lane"},
      {"v0 = load 0; v1 = row_sum v0; v2 = add v0 v1; store 0 v2", "its own phase"},
      {"v0 = load 0; store 0 v0; store 0 v0", "stored twice"},
      {"io 1 2; v0 = load 0; store 0 v0", "never stored"},
      {"v0 = loud 0; store 0 v0", "cannot read"},
      {"v0 = load x; store 0 v0", "cannot read"},
      {"v0 = add v1; store 0 v0", "cannot read"},
      {"v0 = load 0; v3000 = neg v0; store 0 v3000", "too large"},
      {"v0 = load 70; store 0 v0", "operands"},
  };
  for (auto [text, why] : cases) {
    auto p = parse(text);
    ASSERT_FALSE(p.ok()) << text;
    EXPECT_NE(p.error().text().find(why), std::string::npos) << text << "\n" << p.error().text();
  }
}

TEST(Program, CheckRefusesHostileInstructions) {
  Program good = *parse(kTexts[0]);
  for (int what = 0; what < 6; ++what) {
    Program p = good;
    Inst& i = p.phases[0][2];
    if (what == 0) i.op = static_cast<Op>(250);
    if (what == 1) i.imm = 3;
    if (what == 2) i.c = 0;
    if (what == 3) p.phases[0][0].imm = 2;
    if (what == 4) p.phases.clear();
    if (what == 5) p.phases[0].resize(kMaxInsts + 1, p.phases[0][0]);
    EXPECT_FALSE(check(p).ok()) << what;
  }
}

// Any bytes get an answer, and what decodes also compiles and runs (or is refused for its types).
TEST(Program, DecodeFuzz) {
  std::mt19937 rng(7);
  int accepted = 0;
  struct alignas(64) Line { std::byte b[64]; };
  std::vector<Line> scratch(1 << 14);
  std::vector<std::byte> data(64 * 1024, std::byte{1});
  for (int round = 0; round < 40000; ++round) {
    std::vector<std::byte> bytes = encode(*parse(kTexts[rng() % std::size(kTexts)]));
    int edits = 1 + static_cast<int>(rng() % 4);
    for (int e = 0; e < edits && !bytes.empty(); ++e) {
      size_t at = rng() % bytes.size();
      switch (rng() % 4) {
        case 0: bytes[at] = static_cast<std::byte>(rng()); break;
        case 1: bytes[at] ^= static_cast<std::byte>(1u << rng() % 8); break;
        case 2: bytes.erase(bytes.begin() + static_cast<long>(at)); break;
        case 3: bytes.insert(bytes.begin() + static_cast<long>(at), static_cast<std::byte>(rng() % 4)); break;
      }
    }
    auto p = decode(bytes);
    if (!p.ok()) continue;
    ++accepted;
    EXPECT_EQ(*decode(encode(*p)), *p);
    EXPECT_EQ(*parse(print(*p)), *p) << print(*p);
    size_t n = static_cast<size_t>(p->inputs + p->outputs);
    std::vector<OperandSpec> specs(n);
    for (auto& s : specs) s.dtype = rng() % 2 ? DType::f32 : DType::i32;
    auto c = compile(*p, specs);
    if (!c.ok() || scratch_bytes(**c, 40) > static_cast<int64_t>(scratch.size() * 64)) continue;
    std::vector<TileOperand> t(n);
    for (size_t k = 0; k < n; ++k) t[k] = {data.data() + 512 * k, 160, 1};
    run_tile(**c, t.data(), 2, 40, scratch[0].b);
  }
  EXPECT_GT(accepted, 500);
}

TEST(Program, TruncationsAreErrors) {
  auto bytes = encode(*parse(kTexts[1]));
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(decode(std::span(bytes).first(n)).ok()) << n;
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode(bytes).ok());
}

TEST(Builder, PhasesSharingAndDeadCode) {
  ProgramBuilder b;
  Reg x = b.load(0);
  Reg m = b.reduce(Op::row_max, x);
  Reg e = b.op(Op::exp, b.op(Op::sub, x, m));
  EXPECT_EQ(e, b.op(Op::exp, b.op(Op::sub, b.load(0), b.reduce(Op::row_max, x))));
  b.op(Op::tanh, x);  // dead
  b.store(0, b.op(Op::div, e, b.reduce(Op::row_sum, e)));
  Program p = *b.finish();
  EXPECT_EQ(print(p),
            "v0 = load 0; v1 = row_max v0 | v2 = sub v0 v1; v3 = exp v2; v4 = row_sum v3 | v5 = div v3 v4; store 0 v5");
}

TEST(Builder, StoresOfReductionsAndUnusedOperands) {
  ProgramBuilder b;
  b.store(0, b.reduce(Op::row_mean, b.load(1)));
  Program p = *b.finish(4);
  EXPECT_EQ(print(p), "io 4 1; v0 = load 1; v1 = row_mean v0 | store 0 v1");
}

TEST(Builder, AppendInlines) {
  Program silu = *parse("v0 = load 0; v1 = sigmoid v0; v2 = mul v0 v1; store 0 v2");
  Program bias = *parse("v0 = load 0; v1 = load 1; v2 = add v0 v1; store 0 v2");
  ProgramBuilder b;
  Reg in[] = {b.load(0), b.load(1)};
  auto sum = b.append(bias, in);
  auto out = b.append(silu, sum);
  b.store(0, out[0]);
  EXPECT_EQ(print(*b.finish()), "v0 = load 0; v1 = load 1; v2 = add v0 v1; v3 = sigmoid v2; v4 = mul v2 v3; store 0 v4");
}

TEST(Builder, RefusesWrongUse) {
  ProgramBuilder b;
  b.store(0, b.op(Op::iadd, b.load(0), b.load(1)));
  EXPECT_FALSE(b.finish().ok());
  ProgramBuilder c;
  c.store(0, 77);
  EXPECT_FALSE(c.finish().ok());
}

TEST(OpTable, NamesAreUniqueAndComplete) {
  std::vector<std::string> names;
  for (const OpInfo& o : kOps) {
    EXPECT_EQ(op_info(o.op), &o);
    EXPECT_EQ(std::count(names.begin(), names.end(), o.name), 0) << o.name;
    names.emplace_back(o.name);
  }
}

}  // namespace
}  // namespace ge::kernels::vector
