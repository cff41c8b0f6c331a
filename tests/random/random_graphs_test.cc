// 500 seeded random graphs: what the compiler makes of them agrees with their meaning (no passes, reference
// kernels). Values have several readers, weights are shared, sizes are dynamic, zero or broadcast. Every
// fusion and every kind of alias has to happen at least 10 times.
#include <limits>
#include <map>

#include "base/random.h"
#include "driver/compare.h"
#include "ir/print.h"
#include "passes/fusion.h"
#include "passes/pass.h"

namespace ge {
namespace {

using ir::NodeId;
using ir::Type;
using ir::ValueId;

struct Random : SplitMix64 {
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& v) {
    return v[static_cast<size_t>(below(static_cast<int64_t>(v.size())))];
  }
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_{{seed}} {}

  ir::Graph make() {
    dynamic_ = random_.chance(40);
    g_.symbols["n"] = {};
    Dim batch = dynamic_ ? Dim::symbol("n") : Dim(random_.pick<int64_t>({1, 2, 3, 0}));
    if (!dynamic_ && random_.chance(90)) batch = std::max<int64_t>(1, batch.value());
    tokens_ = {random_.pick<int64_t>({4, 7, 16, 17})};
    image_ = {batch, random_.pick<int64_t>({3, 8, 16}), random_.pick<int64_t>({5, 8}), random_.pick<int64_t>({6, 9})};
    rows_ = {batch, random_.pick<int64_t>({1, 5, 6}), tokens_[0]};
    input(rows_);
    input(image_);
    input({1, tokens_[0]});
    int64_t size = 4 + random_.below(45);
    for (int guard = 0; static_cast<int64_t>(g_.node_count()) < size && guard < 400; ++guard) motif();
    outputs();
    return std::move(g_);
  }
  bool dynamic() const { return dynamic_; }

 private:
  ValueId input(std::vector<Dim> dims) {
    return keep(g_.add_input("x", Type::tensor(DType::f32, std::move(dims))));
  }
  ValueId keep(ValueId v) {
    pool_.push_back(v);
    return v;
  }
  const std::vector<Dim>& dims(ValueId v) { return g_.value(v).type.dims; }

  ValueId op(const std::string& name, std::vector<ValueId> ins, ir::Attrs attrs = {}, size_t outs = 1, size_t which = 0) {
    std::vector<ValueId> made;
    for (size_t i = 0; i < outs; ++i) made.push_back(g_.add_value("v", {}));
    g_.add_node(name, std::move(ins), made, std::move(attrs));
    Status s = passes::infer(g_);
    EXPECT_TRUE(s.ok()) << (s.ok() ? "" : s.error().text());
    return made[which];
  }
  ValueId weight(std::vector<int64_t> shape, double scale = 1) {
    // One in four is a weight that is used already.
    if (random_.chance(25))
      for (auto v : weights_)
        if (g_.value(v).constant->dims() == shape) return v;
    Tensor t(DType::f32, shape);
    for (int64_t i = 0; i < t.count(); ++i) t.as<float>()[i] = static_cast<float>((static_cast<double>(random_.below(2001)) - 1000) / 1000 * scale);
    weights_.push_back(g_.add_constant(std::move(t), "w"));
    return weights_.back();
  }
  ValueId number(float v) { return g_.add_constant(Tensor::scalar_f32(v), "c"); }
  ValueId ints(std::vector<int64_t> v) { return g_.add_constant(Tensor::vector_i64(v), "i"); }

  ValueId of_rank(size_t rank) {
    std::vector<ValueId> fit;
    for (auto v : pool_)
      if (dims(v).size() == rank) fit.push_back(v);
    return fit.empty() ? ValueId{} : random_.chance(60) ? fit.back() : random_.pick(fit);
  }
  int64_t known(ValueId v, size_t axis) { return dims(v)[axis].known() ? dims(v)[axis].value() : -1; }

  void motif() {
    static constexpr void (Generator::*kMotifs[])() = {
        &Generator::unary, &Generator::unary, &Generator::binary, &Generator::product, &Generator::product, &Generator::product,
        &Generator::convolution, &Generator::convolution, &Generator::convolution, &Generator::convolution, &Generator::pool, &Generator::softmax, &Generator::layer_norm,
        &Generator::gelu, &Generator::gated, &Generator::gated, &Generator::rotary, &Generator::attention, &Generator::attention, &Generator::cached, &Generator::concat, &Generator::stack, &Generator::scatter, &Generator::slice, &Generator::split,
        &Generator::reshape, &Generator::transpose, &Generator::reduce, &Generator::select, &Generator::lookup, &Generator::flat_convolution};
    (this->*kMotifs[static_cast<size_t>(random_.below(std::size(kMotifs)))])();
  }

  ValueId soft(ValueId v) { return op(random_.pick<std::string>({"Tanh", "Sigmoid", "Relu", "Abs", "Neg", "Erf", "HardSigmoid", "Softsign"}), {v}); }
  void unary() {
    ValueId v = random_.pick(pool_);
    int n = 1 + static_cast<int>(random_.below(3));
    for (int i = 0; i < n; ++i) v = soft(v);
    keep(v);
  }
  void binary() {
    ValueId a = random_.pick(pool_), b;
    for (int i = 0; i < 6 && !b; ++i) {
      ValueId c = random_.pick(pool_);
      if (dims(c) == dims(a)) b = c;
    }
    if (!b || random_.chance(30)) {
      int64_t last = known(a, dims(a).size() - 1);
      b = random_.chance(50) || last < 0 ? number(0.5f) : weight({last});
    }
    bool swapped = random_.chance(50);
    keep(op(random_.pick<std::string>({"Add", "Sub", "Mul", "Max", "Min"}), {swapped ? b : a, swapped ? a : b}));
  }
  void product() {
    ValueId x = of_rank(random_.chance(70) ? 3 : 2);
    if (!x || known(x, dims(x).size() - 1) < 0) return;
    int64_t k = known(x, dims(x).size() - 1), n = random_.chance(50) ? tokens_[0] : random_.pick<int64_t>({1, 5, 16, 20});
    ValueId w = weight({k, n}, 1.0 / static_cast<double>(std::max<int64_t>(k, 1)));
    ValueId y;
    if (dims(x).size() == 2 && random_.chance(50)) y = op("Gemm", {x, w, weight({n})});
    else y = op("MatMul", {x, w});
    if (random_.chance(15)) keep(y);
    if (random_.chance(60)) y = op("Add", {y, weight({n})});
    if (random_.chance(15)) y = op("MatMul", {y, weight({n, n}, 0.2)});
    if (random_.chance(50))
      for (auto r : pool_)
        if (dims(r) == dims(y) && r != y && !g_.is_constant(r)) {
          y = op("Add", {y, r});
          break;
        }
    if (random_.chance(60)) y = tail(y);
    keep(y);
  }
  ValueId tail(ValueId y) {
    switch (random_.below(5)) {
      case 0: return op("Relu", {y});
      case 1: return op("Clip", {y, number(-0.5f), number(0.75f)});
      case 2: return op("LeakyRelu", {y}, {{"alpha", 0.1}});
      case 3: return op("Mul", {y, op("Sigmoid", {y})});
      default: return op("Tanh", {y});
    }
  }
  void convolution() {
    ValueId x = of_rank(4);
    if (!x) return;
    int64_t c = known(x, 1), h = known(x, 2), w = known(x, 3);
    if (c <= 0 || h < 1 || w < 1 || c > 48) return;
    int64_t k = random_.chance(50) ? 3 : 1, stride = random_.chance(75) ? 1 : 2, pad = k == 3 && (h < 3 || w < 3 || random_.chance(70)) ? 1 : 0;
    bool depthwise = random_.chance(25), same = random_.chance(40);
    int64_t m = depthwise || same ? c : random_.pick<int64_t>({4, 8, 16});
    if (k == 3 && random_.chance(50)) {
      x = op("Pad", {x, ints({0, 0, 1, 0, 0, 0, 0, 1})});
      h += 1, w += 1;
    }
    ir::Attrs attrs = {{"kernel_shape", std::vector<int64_t>{k, k}}, {"strides", std::vector<int64_t>{stride, stride}}, {"pads", std::vector<int64_t>{pad, pad, pad, pad}}, {"group", depthwise ? c : int64_t(1)}};
    std::vector<ValueId> ins = {x, weight({m, depthwise ? 1 : c, k, k}, 0.3)};
    if (random_.chance(60)) ins.push_back(weight({m}));
    ValueId y;
    if (random_.chance(20)) {
      // Transposed: the weights are [C, M / groups, ...].
      ins[1] = weight({c, depthwise ? 1 : m, k, k}, 0.3);
      y = op("ConvTranspose", ins, attrs);
    } else {
      y = op("Conv", ins, attrs);
    }
    if (random_.chance(10)) keep(y);
    if (random_.chance(40)) {
      Tensor var(DType::f32, {m});
      for (int64_t i = 0; i < m; ++i) var.as<float>()[i] = 0.5f + static_cast<float>(i) * 0.1f;
      y = op("BatchNormalization", {y, weight({m}), weight({m}), weight({m}), g_.add_constant(var, "var")});
    }
    if (random_.chance(30)) y = op("Mul", {y, weight({m, 1, 1})});
    if (random_.chance(30)) y = op("Add", {y, weight({1, m, 1, 1})});
    if (dims(x) == dims(y) && random_.chance(30)) {
      y = op("Add", {y, x});  // what is added is what is convolved
    } else if (random_.chance(50)) {
      for (auto r : pool_)
        if (dims(r) == dims(y) && r != y) {
          y = op("Add", {r, y});
          break;
        }
    }
    if (random_.chance(60)) y = tail(y);
    keep(y);
  }
  void pool() {
    ValueId x = of_rank(4);
    if (!x || known(x, 2) < 2 || known(x, 3) < 2 || known(x, 1) < 0) return;
    if (random_.chance(20)) {
      keep(op(random_.chance(50) ? "GlobalAveragePool" : "GlobalMaxPool", {x}));
      return;
    }
    ir::Attrs attrs = {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{random_.chance(50) ? 1 : 2, 1}}};
    bool max = random_.chance(50);
    if (random_.chance(30)) attrs["ceil_mode"] = int64_t(1);
    else if (random_.chance(70))
      x = op("Pad", {x, ints({0, 0, 1, 0, 0, 0, 0, 1}), number(max ? -std::numeric_limits<float>::infinity() : 0)});
    keep(op(max ? "MaxPool" : "AveragePool", {x}, attrs));
  }
  void softmax() {
    ValueId x = random_.pick(pool_);
    if (dims(x).empty()) return;
    int64_t axis = random_.chance(70) ? -1 : random_.below(static_cast<int64_t>(dims(x).size()));
    keep(op("Softmax", {x}, {{"axis", axis}}));
  }
  void layer_norm() {
    ValueId x = of_rank(random_.chance(80) ? 3 : 2);
    if (!x || known(x, dims(x).size() - 1) < 2) return;
    int64_t n = known(x, dims(x).size() - 1);
    ValueId axes = ints({-1}), scale = weight({n}), shift = weight({n});
    if (random_.chance(25)) {
      ValueId sq = random_.chance(50) ? op("Pow", {x, number(2)}) : op("Mul", {x, x});
      ValueId s = op("Sqrt", {op("Add", {op("ReduceMean", {sq, axes}), number(1e-2f)})});
      keep(op("Mul", {random_.chance(50) ? op("Div", {x, s}) : op("Mul", {x, op("Reciprocal", {s})}), scale}));
      return;
    }
    if (random_.chance(30)) {
      keep(op("LayerNormalization", {x, scale, shift}, {{"axis", int64_t(-1)}, {"epsilon", 1e-2}}));
      return;
    }
    ValueId d = op("Sub", {x, op("ReduceMean", {x, axes})});
    ValueId sq = random_.chance(50) ? op("Pow", {d, number(2)}) : op("Mul", {d, d});
    ValueId s = op("Sqrt", {op("Add", {op("ReduceMean", {sq, axes}), number(1e-2f)})});
    keep(op("Add", {op("Mul", {op("Div", {d, s}), scale}), shift}));
  }
  void gelu() {
    ValueId x = random_.pick(pool_);
    ValueId o;
    if (random_.chance(60)) {
      ValueId d = random_.chance(50) ? op("Div", {x, number(1.41421356f)}) : op("Mul", {x, number(0.70710678f)});
      o = op("Add", {op("Erf", {d}), number(1)});
    } else {
      ValueId q = op("Mul", {op("Pow", {x, number(3)}), number(0.044715f)});
      o = op("Add", {op("Tanh", {op("Mul", {op("Add", {x, q}), number(0.79788456f)})}), number(1)});
    }
    keep(random_.chance(50) ? op("Mul", {op("Mul", {x, o}), number(0.5f)}) : op("Mul", {op("Mul", {x, number(0.5f)}), o}));
  }
  // Activations spelt out.
  void gated() {
    ValueId x = random_.pick(pool_);
    switch (random_.below(5)) {
      case 0: keep(op("Mul", {x, op("Sigmoid", {op("Mul", {x, number(1.702f)})})})); break;
      case 1: keep(op("Div", {x, op("Add", {op("Exp", {op("Neg", {x})}), number(1)})})); break;
      case 2: keep(op("Mul", {x, op("Tanh", {op("Softplus", {x})})})); break;
      case 3: keep(op("Mul", {op("HardSigmoid", {x}, {{"alpha", 1.0 / 6}, {"beta", 0.5}}), x})); break;
      default: {
        ValueId c = op("Clip", {op("Add", {x, number(3)}), number(0), number(6)});
        keep(random_.chance(50) ? op("Div", {op("Mul", {x, c}), number(6)}) : op("Mul", {x, op("Mul", {c, number(1.0f / 6)})}));
      }
    }
  }
  void rotary() {
    ValueId x = of_rank(random_.chance(80) ? 3 : 4);
    if (!x) return;
    size_t last = dims(x).size() - 1;
    int64_t d = known(x, last), rows = known(x, last - 1);
    if (d < 2 || d % 2 || rows < 1) return;
    ValueId axis = ints({static_cast<int64_t>(last)});
    ValueId lo = op("Slice", {x, ints({0}), ints({d / 2}), axis}), hi = op("Slice", {x, ints({d / 2}), ints({INT64_MAX}), axis});
    ValueId y;
    if (random_.chance(50)) {
      ValueId turned = op("Concat", {op("Neg", {hi}), lo}, {{"axis", static_cast<int64_t>(last)}});
      y = op("Add", {op("Mul", {x, weight({rows, d})}), op("Mul", {turned, weight({rows, d})})});
    } else {
      ValueId c = weight({rows, d / 2}), s = weight({1, d / 2});
      y = op("Concat", {op("Sub", {op("Mul", {lo, c}), op("Mul", {hi, s})}), op("Add", {op("Mul", {hi, c}), op("Mul", {lo, s})})},
             {{"axis", int64_t(-1)}});
    }
    keep(y);
  }
  // A mask of n queries and keys: causal, or any, and what hidden scores become.
  ValueId masked(ValueId scores, int64_t n) {
    ValueId low = number(random_.pick<float>({-1e4f, -3e38f}));
    if (random_.chance(50)) {
      Tensor ones(DType::boolean, {n, n});
      std::fill_n(ones.as<uint8_t>(), n * n, uint8_t(1));
      ValueId seen = op("Trilu", {g_.add_constant(std::move(ones), "ones")}, {{"upper", int64_t(0)}});
      return random_.chance(50) ? op("Where", {seen, scores, low}) : op("Where", {op("Not", {seen}), low, scores});
    }
    Tensor seen(DType::boolean, {n, n});
    for (int64_t i = 0; i < n * n; ++i) seen.as<uint8_t>()[i] = random_.chance(70);
    return op("Where", {g_.add_constant(std::move(seen), "seen"), scores, low});
  }
  void attention() {
    ValueId x = of_rank(3);
    if (!x || known(x, 2) < 1) return;
    int64_t d = known(x, 2);
    double scale = 1.0 / static_cast<double>(d);
    bool heads = d % 2 == 0 && random_.chance(60), shared = heads && known(x, 1) > 0 && random_.chance(40);
    int64_t width = shared ? d / 2 : d;
    ValueId q = op("MatMul", {x, weight({d, d}, scale)}), k = op("MatMul", {x, weight({d, width}, scale)}), v = op("MatMul", {x, weight({d, width}, scale)});
    ValueId kt;
    if (shared) {
      // Two heads of queries read the one head of keys and values.
      auto repeat = [&](ValueId a) {
        ValueId one = op("Unsqueeze", {op("Unsqueeze", {a, ints({1})}), ints({2})});
        return op("Reshape", {op("Expand", {one, ints({1, 1, 2, 1, 1})}), ints({0, 2, known(x, 1), d / 2})});
      };
      q = op("Transpose", {op("Reshape", {q, ints({0, 0, 2, d / 2})})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
      kt = op("Transpose", {repeat(k)}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
      v = repeat(v);
    } else if (heads) {
      ValueId shape = ints({0, 0, 2, d / 2});
      auto split = [&](ValueId a, std::vector<int64_t> perm) { return op("Transpose", {op("Reshape", {a, shape})}, {{"perm", perm}}); };
      q = split(q, {0, 2, 1, 3});
      kt = split(k, {0, 2, 3, 1});
      v = split(v, {0, 2, 1, 3});
    } else {
      kt = op("Transpose", {k}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    }
    ValueId s = op("MatMul", {q, kt});
    if (random_.chance(70)) s = random_.chance(50) ? op("Div", {s, number(2)}) : op("Mul", {s, number(0.5f)});
    if (random_.chance(30) && known(x, 1) > 0) s = op("Add", {s, weight({known(x, 1)})});
    else if (random_.chance(40) && known(x, 1) > 0) s = masked(s, known(x, 1));
    ValueId p = op("Softmax", {s}, {{"axis", int64_t(-1)}});
    if (random_.chance(10)) keep(p);
    else if (random_.chance(15)) p = op("Where", {op("IsNaN", {p}), number(0), p});
    ValueId y = op("MatMul", {p, v});
    if (!heads && random_.chance(50)) y = op("MatMul", {y, weight({d, random_.chance(70) ? d : 1}, scale)});
    if (heads) y = op("Reshape", {op("Transpose", {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}}), ints({0, 0, d})});
    keep(y);
  }
  // Keys and values that lie in 16 bits, as those of a cache do.
  void cached() {
    ValueId x = of_rank(3);
    if (!x || known(x, 2) < 1 || dims(x)[0] != rows_[0]) return;
    const int64_t keys = 1 + random_.below(20);
    auto cache = [&] {
      ValueId v = g_.add_input("cache", Type::tensor(random_.chance(50) ? DType::f16 : DType::bf16, {dims(x)[0], keys, dims(x)[2]}));
      return op("Cast", {v}, {{"to", int64_t(1)}});
    };
    ValueId kt = op("Transpose", {cache()}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
    ValueId s = op("Mul", {op("MatMul", {x, kt}), number(0.25f)});
    keep(op("MatMul", {op("Softmax", {s}, {{"axis", int64_t(-1)}}), cache()}));
  }
  void concat() {
    ValueId a = random_.pick(pool_);
    if (dims(a).empty()) return;
    int64_t axis = random_.below(static_cast<int64_t>(dims(a).size()));
    std::vector<ValueId> ins = {a};
    for (auto b : pool_) {
      if (ins.size() >= 3 || dims(b).size() != dims(a).size() || g_.is_constant(b)) continue;
      bool fits = true;
      for (size_t i = 0; i < dims(a).size(); ++i) fits &= static_cast<int64_t>(i) == axis || dims(b)[i] == dims(a)[i];
      if (fits) ins.push_back(b);
    }
    if (ins.size() > 1) keep(op("Concat", ins, {{"axis", axis}}));
  }
  void stack() {
    ValueId a = random_.pick(pool_);
    int64_t axis = random_.below(static_cast<int64_t>(dims(a).size()) + 1);
    std::vector<ValueId> parts;
    for (int64_t i = 0, n = 2 + random_.below(3); i < n; ++i) parts.push_back(op("Unsqueeze", {i ? soft(a) : a, ints({axis})}));
    ValueId stacked = op("Concat", parts, {{"axis", axis}});
    if (random_.chance(20)) keep(stacked);
    keep(op(random_.pick<std::string>({"ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd"}), {stacked, ints({axis})}, {{"keepdims", int64_t(0)}}));
  }
  // Rows [begin, end) of an axis are replaced.
  void scatter() {
    ValueId a = random_.pick(pool_);
    if (dims(a).size() < 2 || known(a, 0) < 1 || known(a, 1) < 1) return;
    const int64_t first = known(a, 0), size = known(a, 1), begin = random_.below(size), end = begin + 1 + random_.below(size - begin);
    Tensor tuples(DType::i64, {first, end - begin, 2});
    for (int64_t i = 0, at = 0; i < first; ++i)
      for (int64_t j = begin; j < end; ++j) tuples.as<int64_t>()[at++] = i, tuples.as<int64_t>()[at++] = j;
    ValueId part = op("Slice", {soft(a), ints({0}), ints({end - begin}), ints({1})});
    keep(op("ScatterND", {a, g_.add_constant(std::move(tuples), "tuples"), part}));
  }
  void slice() {
    ValueId a = random_.pick(pool_);
    if (dims(a).empty()) return;
    int64_t axis = random_.below(static_cast<int64_t>(dims(a).size()));
    int64_t step = random_.pick<int64_t>({1, 1, 2, -1});
    int64_t start = step > 0 ? random_.below(2) : -1, end = step > 0 ? INT64_MAX : INT64_MIN;
    keep(op("Slice", {a, ints({start}), ints({end}), ints({axis}), ints({step})}));
  }
  void split() {
    ValueId a = random_.pick(pool_);
    if (dims(a).empty()) return;
    auto axis = static_cast<size_t>(random_.below(static_cast<int64_t>(dims(a).size())));
    int64_t n = known(a, axis);
    if (n < 2) return;
    auto second = g_.add_value("v", {});
    auto first = g_.add_value("v", {});
    g_.add_node("Split", {a, ints({1, n - 1})}, {first, second}, {{"axis", static_cast<int64_t>(axis)}});
    Status s = passes::infer(g_);
    EXPECT_TRUE(s.ok());
    keep(first);
    keep(second);
  }
  void reshape() {
    ValueId a = random_.pick(pool_);
    if (dims(a).size() == 4) keep(op("Reshape", {a, ints({0, 0, -1})}));
    else if (dims(a).size() == 3 && known(a, 1) > 0) keep(op(random_.chance(50) ? "Unsqueeze" : "Unsqueeze", {a, ints({1})}));
    else if (dims(a).size() == 2) keep(op("Unsqueeze", {a, ints({0})}));
  }
  void transpose() {
    ValueId a = random_.pick(pool_);
    std::vector<int64_t> perm;
    for (size_t i = 0; i < dims(a).size(); ++i) perm.insert(perm.begin() + random_.below(static_cast<int64_t>(i) + 1), static_cast<int64_t>(i));
    if (!perm.empty()) keep(op("Transpose", {a}, {{"perm", perm}}));
  }
  void reduce() {
    ValueId a = random_.pick(pool_);
    if (dims(a).size() < 2) return;
    int64_t axis = random_.below(static_cast<int64_t>(dims(a).size()));
    auto& d = dims(a)[static_cast<size_t>(axis)];
    // An empty maximum has no value.
    std::string name = !d.known() || d.is(0) ? "ReduceSum" : random_.pick<std::string>({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"});
    keep(op(name, {a, ints({axis})}, {{"keepdims", int64_t(1)}}));
  }
  void select() {
    // Conditions come straight from an input, so that rounding flips none.
    ValueId x = pool_[static_cast<size_t>(random_.below(3))];
    ValueId c = op(random_.pick<std::string>({"Less", "Greater", "GreaterOrEqual"}), {x, number(0.1f)});
    if (random_.chance(50)) keep(op("Where", {c, soft(x), number(-1)}));
    else keep(op("Mul", {x, op("Cast", {c}, {{"to", int64_t(1)}})}));
  }

  // Rows of a table by a product with ones, some of which are beyond it, and what is computed of each.
  void lookup() {
    ValueId x = pool_[static_cast<size_t>(random_.below(3))];   // an input, so that rounding moves none
    ValueId index = op("Cast", {op("Mul", {x, number(3)})}, {{"to", int64_t(7)}}), hot;
    const int64_t k = random_.pick<int64_t>({1, 2, 4}), n = random_.pick<int64_t>({1, 5, 16});
    if (random_.chance(50)) {
      Tensor values(DType::f32, {2});
      values.as<float>()[0] = 0, values.as<float>()[1] = 1;
      hot = op("OneHot", {index, ints({k}), g_.add_constant(values, "values")});
    } else {
      std::vector<int64_t> classes;
      for (int64_t i = 0; i < k; ++i) classes.push_back(i);
      hot = op("Cast", {op("Equal", {op("Unsqueeze", {index, ints({-1})}), ints(classes)})}, {{"to", int64_t(1)}});
    }
    ValueId y = op("MatMul", {hot, weight({k, n})});
    if (random_.chance(60)) y = op("Add", {weight({n}), y});
    if (random_.chance(60)) y = soft(y);
    if (random_.chance(10)) keep(y);
    if (random_.chance(30)) y = op("Mul", {y, soft(y)});
    keep(y);
  }
  // A convolution over one axis, written as one over two.
  void flat_convolution() {
    ValueId x = of_rank(3);
    if (!x || known(x, 1) < 1 || known(x, 2) < 1 || known(x, 1) > 48) return;
    const bool last = random_.chance(50), wide = known(x, 2) > 2;
    const int64_t k = wide ? 3 : 1, m = random_.pick<int64_t>({4, 8});
    const std::vector<int64_t> window = last ? std::vector<int64_t>{k, 1} : std::vector<int64_t>{1, k};
    ValueId y = op("Unsqueeze", {x, ints({last ? 3 : 2})});
    y = op("Conv", {y, weight({m, known(x, 1), window[0], window[1]}, 0.3)}, {{"kernel_shape", window}});
    y = op("Squeeze", {y, ints({last ? 3 : 2})});
    if (random_.chance(10)) keep(y);
    if (random_.chance(60)) y = op("Add", {weight({m, 1}), y});
    if (random_.chance(30)) y = op("Add", {y, soft(y)});
    for (auto r : pool_)
      if (dims(r) == dims(y) && random_.chance(50)) {
        y = op("Add", {r, y});
        break;
      }
    keep(tail(y));
  }

  void outputs() {
    // The last value, some others, now and then a view or an input.
    g_.add_graph_output(pool_.back(), "y0");
    int extra = static_cast<int>(random_.below(3));
    for (int i = 1; i <= extra; ++i) g_.add_graph_output(random_.pick(pool_), format("y{}", i));
    if (random_.chance(30) && !dims(pool_.back()).empty()) {
      std::vector<ValueId> flat = {pool_.back(), ints({-1})};
      g_.add_graph_output(op("Reshape", flat), "flat");
    }
  }

  Random random_;
  ir::Graph g_;
  std::vector<ValueId> pool_, weights_;
  std::vector<int64_t> tokens_;
  std::vector<Dim> image_, rows_;
  bool dynamic_ = false;
};

std::map<std::string, int>& counts() {
  static std::map<std::string, int> c;
  return c;
}

void count_aliases(const Compiled& c) {
  auto& notes = c.package.notes;
  for (const char* kind : {"views", "parts", "in_place", "outputs"}) {
    std::string key = format("\"{}\":", kind);
    size_t at = notes.find(key, notes.find("\"aliases\""));
    counts()[format("alias {}", kind)] += std::atoi(notes.c_str() + at + key.size());
  }
}

constexpr int kGraphs = 500;

TEST(RandomGraphs, AgreeWithTheirMeaning) {
  for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
    Generator generator(seed);
    ir::Graph graph = generator.make();
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    std::string text = ir::print(graph);
    Options meaning, normal;
    meaning.reference = true;
    normal.verify_ir = true;
    normal.reuse_memory = seed % 8 != 0;
    normal.strip_rows = static_cast<int64_t>(seed % 4);
    auto want = compile_graph(graph, meaning), got = compile_graph(graph, normal);
    ASSERT_TRUE(want.ok()) << "seed " << seed << ": " << want.error().text() << text;
    ASSERT_TRUE(got.ok()) << "seed " << seed << ": " << got.error().text() << text;
    for (auto& f : got->trace.all_fused()) ++counts()[f.rule];
    count_aliases(*got);
    for (int64_t n : generator.dynamic() ? std::vector<int64_t>{1, 3, 0} : std::vector<int64_t>{1}) {
      ASSERT_TRUE(agree(*got, *want, {{"n", n}}, 1e-4, seed)) << "seed " << seed << ", n " << n << "\n" << text << "\n" << ir::print(got->graph);
    }
  }
  std::vector<std::string> wanted = {"vector_region", "strips", "alias views", "alias parts", "alias in_place", "alias outputs"};
  for (auto* f : passes::fusions()) wanted.push_back(f->name);
  for (auto& name : wanted) {
    std::printf("  %-20s %d\n", name.c_str(), counts()[name]);
    EXPECT_GE(counts()[name], 10) << name;
  }
}

}  // namespace
}  // namespace ge
