#include <limits>

#include "cube/cube_util.h"
#include "tensor/half.h"

namespace ge::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Attention {
  int64_t b = 1, h = 1, hkv = 1, s = 1, t = 1, d = 1, dv = 1;
  bool k_packed = true, v_packed = true;
  int64_t causal = 0, offset = 0, rows = 0;
  double scale = 0.3, softcap = 0, masked = -kInf, tolerance = 1e-5;
  Tensor<> q, k, v, out, mask;
  Tensor<uint8_t> seen;
  Tensor<> k_scale, v_scale;
  int mask_kind = 0;  // 1: f32, 2: bool
  bool k_narrow = false, v_narrow = false;   // given in 16 or 8 bits, as they lie; their numbers have no more
  bool bytes = false;  // 8 bits, and a scale for each key
  bool half = false;  // f16, not bf16
  bool bf16 = false;  // q, k and v hold bf16s: only the weights of the values lose digits

  void make(bool odd) {
    auto some = [&](Dims dims) { return odd ? Tensor<>::random(std::move(dims), pick(0, 2) == 0) : Tensor<>::dense(std::move(dims)); };
    q = some({b, h, s, d}), k = some({b, hkv, t, d}), v = some({b, hkv, t, dv}), out = some({b, h, s, dv});
    if (bf16)
      for (auto* x : {&q, &k, &v}) x->each([](float& f) { f = bf16_to_f32(f32_to_bf16(f)); });
    for (auto* x : {k_narrow ? &k : nullptr, v_narrow ? &v : nullptr})
      if (x && !bytes) x->each([&](float& f) { f = half ? f16_to_f32(f32_to_f16(f)) : bf16_to_f32(f32_to_bf16(f)); });
    k_scale = some({b, hkv, t, 1}), v_scale = some({b, hkv, t, 1});
    for (auto* s : {&k_scale, &v_scale}) s->each([](float& f) { f = pick(0, 20) ? 0.03f * std::abs(f) : 0; });
    if (bytes && k_narrow) round(k, k_scale);
    if (bytes && v_narrow) round(v, v_scale);
    auto thin = [&](int64_t x) { return odd && pick(0, 2) == 0 ? 1 : x; };
    const Dims md = {thin(b), thin(h), thin(s), thin(t)};
    mask = some(md);
    seen = odd ? Tensor<uint8_t>::random(md, true, DType::boolean) : Tensor<uint8_t>::dense(md, DType::boolean);
  }

  template <class T>
  Tensor<T> pack(Tensor<>& x, bool transpose) {
    constexpr bool kPairs = std::is_same_v<T, uint16_t>;
    View view = x.view();
    Dims d4 = x.dims, s4 = x.strides;
    if (transpose) std::swap(d4[2], d4[3]), std::swap(s4[2], s4[3]);
    view.dims = d4.data(), view.strides = s4.data();
    auto p = Tensor<T>::dense({d4[0], d4[1], div_up(d4[3], 16), kPairs ? div_up(d4[2], 2) : d4[2], kPairs ? 32 : 16}, kPairs ? DType::bf16 : DType::f32);
    Task task;
    task.in = {view}, task.out = {p.view()};
    run_task("cube.pack_b", task);
    return p;
  }

  // Its numbers as whole multiples of their rows' scales.
  static void round(Tensor<>& x, const Tensor<>& scale) {
    for (int64_t i = 0; i < x.count(); ++i) {
      const float s = scale.memory[static_cast<size_t>(scale.base + scale.index(i / x.dims[3]))];
      float& f = x.memory[static_cast<size_t>(x.base + x.index(i))];
      f = s == 0 ? 0 : std::clamp(std::nearbyint(f / s), -127.f, 127.f) * s;
    }
  }

  // The numbers that round() gave as bytes, in the same places.
  static Tensor<int8_t> bytes_of(const Tensor<>& x, const Tensor<>& scale) {
    Tensor<int8_t> out;
    out.dims = x.dims, out.strides = x.strides, out.base = x.base, out.type = DType::i8;
    out.memory.assign(x.memory.size(), 0);
    for (int64_t i = 0; i < x.count(); ++i) {
      const float s = scale.memory[static_cast<size_t>(scale.base + scale.index(i / x.dims[3]))];
      const auto at = static_cast<size_t>(x.base + x.index(i));
      out.memory[at] = static_cast<int8_t>(s == 0 ? pick(-127, 127) : std::nearbyint(x.memory[at] / s));
    }
    out.before = out.memory;
    return out;
  }

  // The same numbers in 16 bits, in the same places.
  Tensor<uint16_t> narrowed(const Tensor<>& x) const {
    Tensor<uint16_t> out;
    out.dims = x.dims, out.strides = x.strides, out.base = x.base, out.type = half ? DType::f16 : DType::bf16;
    for (float f : x.memory) out.memory.push_back(half ? f32_to_f16(f) : f32_to_bf16(f));
    out.before = out.memory;
    return out;
  }

  void run() {
    Tensor<> kp, vp;
    Tensor<uint16_t> kn, vn;
    Tensor<int8_t> kb, vb;
    if (k_narrow) k_packed = false, bytes ? void(kb = bytes_of(k, k_scale)) : void(kn = narrowed(k));
    if (v_narrow) v_packed = false, bytes ? void(vb = bytes_of(v, v_scale)) : void(vn = narrowed(v));
    Tensor<uint16_t> kp16, vp16;
    if (k_packed && bf16) kp16 = pack<uint16_t>(k, true);
    else if (k_packed) kp = pack<float>(k, true);
    if (v_packed && bf16) vp16 = pack<uint16_t>(v, false);
    else if (v_packed) vp = pack<float>(v, false);
    Task task;
    task.in = {q.view(), k_narrow ? bytes ? kb.view() : kn.view() : !k_packed ? k.view() : bf16 ? kp16.view() : kp.view(), v_narrow ? bytes ? vb.view() : vn.view() : !v_packed ? v.view() : bf16 ? vp16.view() : vp.view(),
               mask_kind == 1 ? mask.view() : mask_kind == 2 ? seen.view() : View{}};
    if (bytes) task.in.insert(task.in.end(), {k_narrow ? k_scale.view() : View{}, v_narrow ? v_scale.view() : View{}});
    task.out = {out.view()}, task.ints = {causal, offset, rows}, task.floats = {scale, softcap, masked};
    if (bf16) task.ints.insert(task.ints.end(), {1, t});
    run_task("cube.attention", task);
  }

  void check() {
    out.expect_gaps_kept();
    double worst = 0, top = 1e-2;
    std::vector<double> p(static_cast<size_t>(t));
    for (int64_t i = 0; i < b * h * s; ++i) {
      const int64_t x = i / (h * s), y = i / s % h, z = i % s, yk = y / (h / hkv);
      double best = -kInf, sum = 0;
      for (int64_t j = 0; j < t; ++j) {
        double e = 0;
        const float *qp = d ? q.pointer({x, y, z, 0}) : nullptr, *kp = d ? k.pointer({x, yk, j, 0}) : nullptr;
        for (int64_t c = 0; c < d; ++c) e += static_cast<double>(qp[c * q.strides[3]]) * kp[c * k.strides[3]];
        e *= scale;
        if (softcap > 0) e = softcap * std::tanh(e / softcap);
        if (mask_kind == 1) e += mask.at({x, y, z, j});
        if (mask_kind == 2 && !seen.at({x, y, z, j})) e = masked;
        if (causal && j > z + offset + (causal == 2 ? t - s : 0)) e = -kInf;
        p[static_cast<size_t>(j)] = e;
        best = std::max(best, e);
      }
      for (double& e : p) sum += e = best == -kInf ? 0 : std::exp(e - best);
      for (int64_t c = 0; c < dv; ++c) {
        double want = 0, moved = 0;  // what rounding the weights moves is in proportion to the sum of absolute values
        const float* vp = t ? v.pointer({x, yk, 0, c}) : nullptr;
        for (int64_t j = 0; j < t; ++j) want += p[static_cast<size_t>(j)] * vp[j * v.strides[2]];
        for (int64_t j = 0; bf16 && j < t; ++j) moved += p[static_cast<size_t>(j)] * std::abs(vp[j * v.strides[2]]);
        want = sum == 0 ? 0 : want / sum;
        if (rows == 1 && sum == 0 && t > 0) {
          ASSERT_TRUE(std::isnan(out.at({x, y, z, c})));
          continue;
        }
        worst = std::max(worst, std::abs(want - out.at({x, y, z, c})));
        ASSERT_FALSE(std::isnan(out.at({x, y, z, c})));
        top = std::max({top, std::abs(want), sum == 0 ? 0 : moved / sum});
      }
    }
    EXPECT_LE(worst, tolerance * top) << "b h hkv s t d dv " << b << " " << h << " " << hkv << " " << s << " " << t << " " << d << " "
                                 << dv << " packed " << k_packed << v_packed << " mask " << mask_kind << " causal " << causal;
  }
};

TEST(Attention, OnBf16Operands) {
  each_isa([] {
    for (int round = 0; round < 200; ++round) {
      Attention a;
      a.bf16 = true;
      a.tolerance = 2.1e-3;  // a weight moves by at most 2^-9 of itself
      a.b = pick_of({1, 1, 2}), a.hkv = pick_of({1, 2, 3}), a.h = a.hkv * pick_of({1, 1, 2, 5});
      a.s = pick_of({0, 1, 2, 3, 7, 17, 50, 100}), a.t = pick_of({0, 1, 2, 5, 15, 16, 17, 64, 101, 1301});
      a.d = pick_of({0, 1, 3, 8, 16, 33, 64}), a.dv = pick_of({0, 1, 5, 16, 31, 64, 72});
      a.k_packed = pick(0, 1), a.v_packed = pick(0, 1);
      a.causal = pick(0, 2), a.offset = pick_of({0, 0, 1, -2, 9});
      a.mask_kind = static_cast<int>(pick(0, 2));
      if (pick(0, 3) == 0) a.softcap = 0.8;
      a.rows = pick(0, 2);
      a.make(true);
      a.run();
      if (HasFatalFailure()) return;
      a.check();
      if (HasFatalFailure() || ::testing::Test::HasFailure()) return;
    }
  });
}

TEST(Attention, RandomShapesOnEveryIsa) {
  each_isa([] {
    for (int round = 0; round < 200; ++round) {
      Attention a;
      a.b = pick_of({1, 1, 2}), a.hkv = pick_of({1, 2, 3}), a.h = a.hkv * pick_of({1, 1, 2, 5});
      a.s = pick_of({0, 1, 2, 3, 7, 17, 50, 100}), a.t = pick_of({0, 1, 2, 5, 15, 16, 17, 64, 101});
      a.d = pick_of({0, 1, 3, 8, 16, 33, 64}), a.dv = pick_of({0, 1, 5, 16, 31, 64, 72});
      a.k_packed = pick(0, 1), a.v_packed = pick(0, 1);
      if (pick(0, 2) == 0) a.k_packed = a.v_packed = false;
      a.causal = pick(0, 2), a.offset = pick_of({0, 0, 1, -2, 9});
      a.mask_kind = static_cast<int>(pick(0, 2));
      if (pick(0, 3) == 0) a.softcap = 0.8;
      if (pick(0, 1)) a.masked = -3;
      a.rows = pick(0, 2);
      a.make(true);
      a.run();
      if (HasFatalFailure()) return;
      a.check();
      if (HasFatalFailure() || ::testing::Test::HasFailure()) return;
    }
  });
}

// A cache that is stored in 16 or 8 bits: widened as it is read, by one token and by many.
TEST(Attention, KeysAndValuesIn16And8Bits) {
  each_isa([] {
    for (int round = 0; round < 250; ++round) {
      Attention a;
      a.k_narrow = pick(0, 3) != 0, a.v_narrow = !a.k_narrow || pick(0, 3) != 0;
      a.b = pick_of({1, 1, 2}), a.hkv = pick_of({1, 2, 3}), a.h = a.hkv * pick_of({1, 1, 2, 5});
      a.s = pick_of({0, 1, 1, 2, 3, 7, 17, 50}), a.t = pick_of({0, 1, 2, 5, 15, 16, 17, 64, 101, 1301});
      a.d = pick_of({0, 1, 3, 8, 16, 33, 64}), a.dv = pick_of({0, 1, 5, 16, 31, 64, 72});
      a.bytes = pick(0, 1), a.half = pick(0, 1), a.bf16 = !a.bytes && !a.half && pick(0, 2) == 0;
      if (a.bf16) a.tolerance = 2.1e-3;
      a.causal = pick(0, 2), a.offset = pick_of({0, 0, 1, -2, 9});
      a.mask_kind = static_cast<int>(pick(0, 2));
      a.make(true);
      a.run();
      if (HasFatalFailure()) return;
      a.check();
      if (HasFatalFailure() || ::testing::Test::HasFailure()) return;
    }
  });
}

// More keys than a whole row of scores holds: the online softmax, with and without packing.
TEST(Attention, LongRowsUseTheOnlineSoftmax) {
  each_isa([] {
    for (bool packed : {false, true})
      for (int64_t s : {1, 9, 101})
        for (int64_t causal : {0, 2}) {
          Attention a;
          a.s = s, a.t = 2500, a.d = 7, a.dv = 6, a.k_packed = a.v_packed = packed, a.causal = causal;
          a.scale = 2;  // maxima that move from block to block
          a.make(false);
          a.run();
          if (HasFatalFailure()) return;
          a.check();
        }
    Attention whole;
    whole.s = 61, whole.t = 2047, whole.d = 8, whole.dv = 8;
    whole.make(false);
    whole.run();
    whole.check();
  });
}

TEST(Attention, RowsWithoutKeysAreZero) {
  each_isa([] {
    for (int kind : {1, 2})
      for (bool packed : {false, true})
        for (int64_t s : {3, 40}) {
          Attention a;
          a.s = s, a.t = 37, a.d = 8, a.dv = 19, a.mask_kind = kind, a.k_packed = a.v_packed = packed;
          a.make(false);
          a.mask.each([](float& x) { x = 0; });
          a.seen.each([](uint8_t& x) { x = 1; });
          for (int64_t j = 0; j < 37; ++j) {
            a.mask.memory[static_cast<size_t>(a.mask.base + 37 + j)] = -kInf;
            a.seen.memory[static_cast<size_t>(a.seen.base + 37 + j)] = 0;
          }
          a.run();
          a.check();
          for (int64_t c = 0; c < 19; ++c) ASSERT_EQ(a.out.at({0, 0, 1, c}), 0.f);
        }
    Attention long_rows;  // a first block without a visible key
    long_rows.s = 2, long_rows.t = 2100, long_rows.mask_kind = 2, long_rows.dv = 4;
    long_rows.make(false);
    for (int64_t j = 0; j < 4200; ++j) long_rows.seen.memory[static_cast<size_t>(long_rows.seen.base + j)] = j > 2050 && j < 2100;
    long_rows.run();
    long_rows.check();
  });
}

TEST(Attention, NanPropagates) {
  each_isa([] {
    for (bool packed : {false, true})
      for (int64_t s : {4, 30}) {
        Attention a;
        a.s = s, a.t = 50, a.d = 6, a.dv = 5, a.k_packed = a.v_packed = packed;
        a.make(false);
        a.q.memory[static_cast<size_t>(a.q.base + 6)] = kNan;
        a.run();
        for (int64_t i = 0; i < s; ++i)
          for (int64_t c = 0; c < 5; ++c) ASSERT_EQ(std::isnan(a.out.at({0, 0, i, c})), i == 1);
        Attention b = a;
        b.make(false);
        b.mask_kind = 2;
        b.seen.each([](uint8_t& x) { x = 1; });
        b.k.memory[static_cast<size_t>(b.k.base + 7 * 6)] = kNan;  // key 7, hidden from row 2 only
        b.seen.memory[static_cast<size_t>(b.seen.base + 2 * 50 + 7)] = 0;
        b.run();
        for (int64_t i = 0; i < s; ++i) ASSERT_EQ(std::isnan(b.out.at({0, 0, i, 0})), i != 2);
      }
  });
}

// Rows 2: as exporters guard a softmax with Where(IsNaN(p), 0, p).
TEST(Attention, NanRowsCanBeZeros) {
  each_isa([] {
    for (bool packed : {false, true}) {
      Attention a;
      a.s = 20, a.t = 50, a.d = 6, a.dv = 5, a.k_packed = a.v_packed = packed, a.rows = 2;
      a.make(false);
      a.q.memory[static_cast<size_t>(a.q.base + 6)] = kNan;
      a.run();
      for (int64_t c = 0; c < 5; ++c) {
        ASSERT_EQ(a.out.at({0, 0, 1, c}), 0.f);
        ASSERT_NE(a.out.at({0, 0, 2, c}), 0.f);
      }
    }
  });
}

TEST(Attention, ScoresOfAnySize) {
  each_isa([] {
    Attention a;
    a.s = 20, a.t = 200, a.d = 16, a.dv = 16, a.scale = 50;  // scores of hundreds, whose rounding alone costs 1e-4: exp underflows, nothing overflows
    a.tolerance = 2e-4;
    a.make(false);
    a.run();
    a.check();
  });
}

TEST(Attention, ScratchDoesNotGrowWithTheSequence) {
  auto scratch = [](int64_t n, bool packed) {
    Dims q = {1, 1, n, 64}, k = {1, 1, n / 16, 64, 16}, v = {1, 1, 4, n, 16}, qs, ks, vs;
    for (auto [d, s] : {std::pair{&q, &qs}, {&k, &ks}, {&v, &vs}}) {
      s->assign(d->size(), 1);
      for (size_t i = d->size() - 1; i-- > 0;) (*s)[i] = (*s)[i + 1] * (*d)[i + 1];
    }
    Task t;
    View vq{nullptr, DType::f32, 4, q.data(), qs.data()};
    View vk{nullptr, DType::f32, 5, k.data(), ks.data()}, vv{nullptr, DType::f32, 5, v.data(), vs.data()};
    t.in = {vq, packed ? vk : vq, packed ? vv : vq}, t.out = {vq}, t.ints = {0, 0, 0}, t.floats = {1, 0, 0};
    return prepare_task("cube.attention", t)->scratch;
  };
  for (bool packed : {false, true}) {
    EXPECT_EQ(scratch(1 << 14, packed), scratch(1 << 20, packed));
    EXPECT_LT(scratch(1 << 20, packed), 2 << 20);
  }
}

TEST(Attention, RefusesWhatItCannotDo) {
  Attention a;
  a.h = 4, a.hkv = 2, a.s = 5, a.t = 20, a.d = 8, a.dv = 6;
  a.make(false);
  Tensor<> kp = a.pack<float>(a.k, true), vp = a.pack<float>(a.v, false);
  Task good;
  good.in = {a.q.view(), kp.view(), vp.view(), a.mask.view()}, good.out = {a.out.view()};
  good.ints = {0, 0, 0}, good.floats = {1, 0, 0};
  ASSERT_TRUE(prepare_task("cube.attention", good).ok());
  auto refuse = [&](const char* what, auto change) {
    Task t = good;
    change(t);
    EXPECT_FALSE(prepare_task("cube.attention", t).ok()) << what;
  };
  Tensor<> three = Tensor<>::dense({1, 3, 5, 8}), wide = Tensor<>::dense({1, 2, 2, 9, 16}), flat = Tensor<>::dense({5, 8});
  Tensor<int64_t> ids = Tensor<int64_t>::dense({1, 4, 5, 20}, DType::i64);
  refuse("heads", [&](Task& t) { t.in[0] = three.view(), t.out[0] = three.view(); });
  refuse("D differs", [&](Task& t) { t.in[1] = wide.view(); });
  refuse("rank", [&](Task& t) { t.in[0] = flat.view(); });
  refuse("no V", [](Task& t) { t.in.resize(2); });
  refuse("no output", [](Task& t) { t.out.clear(); });
  refuse("V must be as wide as the output", [&](Task& t) { t.in[2] = three.view(); });
  refuse("mask type", [&](Task& t) { t.in[3] = ids.view(); });
  refuse("mask size", [&](Task& t) { t.in[3] = three.view(); });
  refuse("causal mode", [](Task& t) { t.ints[0] = 3; });
  refuse("offset", [](Task& t) { t.ints[1] = INT64_MIN; });
  refuse("rows", [](Task& t) { t.ints[2] = 3; });
  refuse("masked NaN", [](Task& t) { t.floats[2] = kNan; });
  refuse("ints", [](Task& t) { t.ints.clear(); });
  refuse("floats", [](Task& t) { t.floats.clear(); });
  refuse("softcap", [](Task& t) { t.floats[1] = -1; });
  refuse("softcap NaN", [](Task& t) { t.floats[1] = kNan; });
  refuse("blob", [](Task& t) { t.blob.resize(3); });
  refuse("rank beyond the limit", [](Task& t) { t.in[3].rank = 99; });
  refuse("null dims", [](Task& t) { t.in[2].dims = nullptr; });
}

}  // namespace
}  // namespace ge::kernels
