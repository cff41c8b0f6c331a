// Chooses what computes on bf16 operands (attribute "compute" of ops/bf16.h): products with constant weights,
// convolutions and attention, where options allow it and a static cost model says that it is faster. Where
// nothing is allowed it only estimates, for the report. Models that are bf16 lose nothing and always take it.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "kernels/cube/conv_pack.h"
#include "ops/bf16.h"
#include "ops/matmul_lowering.h"
#include "passes/conv_cost.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;

// Below this share of f32's time bf16 is chosen: the rest is the model's error.
constexpr double kWorth = 0.9;
constexpr double kBytesPerCycle = 12;    // that one core reads from beyond its caches

// Cycles, see conv_cost.h.
struct Cost {
  double f32 = 0, bf16 = 0;
  bool worth() const { return bf16 < kWorth * f32; }
};

// rows x k times k x n; `rounded` values of A are rounded, `weights` says that B is read from memory.
Cost product(double rows, double k, double n, double rounded) {
  const double columns = std::ceil(n / 16) * 16, sums = rows * columns;
  const double narrow = columns >= 48 ? 1.05 : columns >= 32 ? 1.1 : 1.2;
  const double narrow16 = columns >= 64 ? 1.1 : columns >= 48 ? 1.2 : columns >= 32 ? 1.4 : 2.4;
  const double bytes = k * columns / kBytesPerCycle;
  Cost c;
  c.f32 = std::max(sums * k / 32 * narrow, 4 * bytes) + 0.1 * sums;
  c.bf16 = std::max(sums * k / 64 * narrow16, 2 * bytes) + 0.25 * sums + 0.15 * rounded + 600;
  return c;
}

// A place where bf16 could be, what it costs for sizes that are not known being few and many; or why it cannot.
struct Candidate {
  Cost few, many;
  std::string why;
  bool lossless = false;   // the operands are bf16 in the model
};

double size(const Dim& d, double unknown) { return d.known() ? static_cast<double>(d.value()) : unknown; }

double count(const std::vector<Dim>& dims, size_t from, size_t to, double unknown) {
  double n = 1;
  bool open = false;   // several unknown sizes count once
  for (size_t i = from; i < to; ++i) {
    if (dims[i].known()) n *= static_cast<double>(dims[i].value());
    else open = true;
  }
  return open ? n * unknown : n;
}

bool flag(const ir::Node& n, const char* a, const char* b) { return ir::attr_int(n, a, 0) != 0 || ir::attr_int(n, b, 0) != 0; }

Candidate matmul(const ir::Graph& g, const ir::Node& n) {
  Candidate c;
  auto &a = g.value(n.inputs[0]).type, &out = g.value(n.outputs[0]).type;
  ops::Strided view;
  const Tensor* b = ops::constant_behind(g, n.inputs[1], view);
  if (!b) return c.why = "both operands are computed", c;
  if (!a.ranked || !out.ranked || a.rank() < 1 || view.dims.empty()) return c.why = "its rank is not known", c;
  c.lossless = a.dtype == DType::bf16 && b->dtype() == DType::bf16;
  if (!(a.dtype == DType::f32 && b->dtype() == DType::f32) && !c.lossless) return c.why = format("it is {}", name(a.dtype)), c;
  const Dim rows_of_out = product(std::vector<Dim>(out.dims.begin(), out.dims.end() - (out.dims.empty() ? 0 : 1)));
  if (!g.is_constant(n.inputs[1]) && (!rows_of_out.known() || rows_of_out.value() <= ops::kFewRowsInPlace))
    return c.why = "its few rows read weights that others share as they lie", c;
  const size_t rank = view.dims.size();
  const bool swapped = flag(n, "transpose_b", "transB") && rank > 1;
  const double columns = rank == 1 ? 1 : size(view.dims[swapped ? rank - 2 : rank - 1], 1);
  const double k = size(view.dims[rank == 1 ? 0 : swapped ? rank - 1 : rank - 2], 1);
  const double matrices = count(view.dims, 0, rank < 2 ? 0 : rank - 2, 1);
  auto cost = [&](double unknown) {
    const double rows = count(out.dims, 0, out.dims.size(), unknown) / std::max(columns, 1.0) / matrices;
    Cost one = product(rows, k, columns, rows * k * std::max(1.0, std::ceil(columns / 1024)));
    return Cost{one.f32 * matrices, one.bf16 * matrices};
  };
  c.few = cost(1), c.many = cost(64);
  return c;
}

Candidate convolution(const ir::Graph& g, const ir::Node& n) {
  Candidate c;
  auto &x = g.value(n.inputs[0]).type, &y = g.value(n.outputs[0]).type;
  auto* w = g.value(n.inputs[1]).constant.get();
  if (!w || w->count() == 0) return c.why = "its weights are computed", c;
  if (!x.ranked || x.rank() < 3 || x.rank() > 5) return c.why = "it has no kernel", c;
  c.lossless = x.dtype == DType::bf16 && w->dtype() == DType::bf16;
  if (!(x.dtype == DType::f32 && w->dtype() == DType::f32) && !c.lossless) return c.why = format("it is {}", name(x.dtype)), c;
  const int64_t groups = ir::attr_int(n, "group", 1), m = w->dims()[0], cg = w->dims()[1];
  if (groups > 1 && (cg == 1 || kernels::cube::narrow_groups(cg * groups, m, groups)))
    return c.why = "depthwise and narrow groups have no bf16 kernel", c;
  const double taps = static_cast<double>(w->count() / m / cg), in = static_cast<double>(cg), even = static_cast<double>(cg + (cg & 1));
  auto cost = [&](double unknown) {
    auto pixels = [&](const ir::Type& t) {
      double p = size(t.dims[0], 1);
      for (size_t i = 2; i < t.dims.size(); ++i) p *= size(t.dims[i], unknown);
      return p;
    };
    const double rows = pixels(y), columns = static_cast<double>(m / groups);
    // The borders of blocks are rounded more than once; of a strided 1x1 kernel only what it reads.
    const double rounded = in * (taps == 1 ? rows : 1.3 * pixels(x));
    Cost f = product(rows, taps * in, columns, 0), h = product(rows, taps * even, columns, rounded);
    if (taps > 1) f.f32 += 0.1 * rounded;
    return Cost{f.f32 * static_cast<double>(groups), h.bf16 * static_cast<double>(groups)};
  };
  c.few = cost(8), c.many = cost(64);
  if (auto filtering = winograd_cost(g, n)) {
    c.few.f32 = c.many.f32 = *filtering;
    c.few.bf16 = c.many.bf16 = cost(32).bf16;   // as winograd_cost has it
  }
  return c;
}

// exp of each score, and for each key and value their packing.
Candidate attention(const ir::Graph& g, const ir::Node& n) {
  Candidate c;
  auto &q = g.value(n.inputs[0]).type, &v = g.value(n.inputs[2]).type;
  if (!q.ranked || !v.ranked || q.rank() < 2 || v.rank() < 2) return c.why = "its rank is not known", c;
  if (q.dtype != DType::f32) return c.why = format("it is {}", name(q.dtype)), c;
  auto last = [](const ir::Type& t, size_t back, double unknown) { return size(t.dims[t.dims.size() - back], unknown); };
  auto cost = [&](double unknown) {
    const double queries = last(q, 2, unknown), d = last(q, 1, 64), keys = last(v, 2, unknown), dv = last(v, 1, 64);
    const double heads = count(q.dims, 0, q.dims.size() - 2, 1);
    Cost scores = product(queries, d, keys, queries * d), mixed = product(queries, keys, dv, queries * keys);
    const double exps = queries * keys, packed = keys * (d + dv);
    Cost out{heads * (scores.f32 + mixed.f32 + exps + 0.1 * packed), heads * (scores.bf16 + mixed.bf16 + exps + 0.25 * packed)};
    if (queries <= 8) out.bf16 = out.f32;   // few rows read keys and values as they lie
    return out;
  };
  c.few = cost(1), c.many = cost(128);
  return c;
}

Candidate candidate(const ir::Graph& g, const ir::Node& n, bool& cube) {
  cube = true;
  if (n.op == "MatMul" || n.op == "Gemm" || n.op == "ge.MatMul") return matmul(g, n);
  if (n.op == "Conv" || n.op == "ge.Conv") return convolution(g, n);
  if (n.op == "ge.Attention") return attention(g, n);
  cube = false;
  return {};
}

// The types and names that options know a node by: those of the model's products in it, and its own.
bool named(const std::set<std::string>& types, const std::set<std::string>& nodes, const ir::Node& n, const Precision& p) {
  static const std::set<std::string> kProducts = {"MatMul", "Gemm", "Conv", "Einsum", "Attention", "MultiHeadAttention"};
  if (types.count(n.op) || nodes.count(n.name)) return true;
  return std::any_of(n.origin.begin(), n.origin.end(), [&](auto& origin) {
    auto type = p.types.find(origin);
    if (type == p.types.end()) return nodes.count(origin) > 0;
    return kProducts.count(type->second) && (types.count(type->second) || nodes.count(origin));
  });
}

// Why it keeps f32, or "".
std::string refusal(const ir::Node& n, const Candidate& c, const Precision& p) {
  if (!c.why.empty()) return c.why;
  if (named(p.f32_types, p.f32_nodes, n, p)) return "options keep it in f32";
  if (!p.bf16 && !c.lossless && !named(p.bf16_types, p.bf16_nodes, n, p)) return "bf16 is not allowed";
  if (c.many.worth() && c.few.bf16 <= c.few.f32) return "";
  double ratio = c.many.f32 > 0 ? c.many.bf16 / c.many.f32 : 1;
  return ir::attr_int(n, "winograd", 0) ? format("minimal filtering in f32 is faster (bf16 would take {:.2f} of its time)", ratio)
                                        : format("bf16 would take {:.2f} of f32's time", ratio);
}

// Nodes that only move or map values: the bytes of what they read and write.
double other_cycles(const ir::Graph& g, const ir::Node& n) {
  double bytes = 0;
  auto add = [&](ir::ValueId v) {
    if (v && !g.value(v).constant && g.value(v).type.ranked)
      bytes += count(g.value(v).type.dims, 0, g.value(v).type.dims.size(), 64) * static_cast<double>(size_of(g.value(v).type.dtype));
  };
  for (auto v : n.inputs) add(v);
  for (auto v : n.outputs) add(v);
  return bytes / kBytesPerCycle;
}

}  // namespace

Result<bool> precision(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    bool cube = false;
    Candidate found = candidate(g, n, cube);
    if (!cube) {
      c.trace.other_cycles += other_cycles(g, n);
      continue;
    }
    NodePrecision r{n.name, false, refusal(n, found, c.options.precision), found.many.f32, found.many.f32};
    bool faster = found.why.empty() && found.many.worth() && found.few.bf16 <= found.few.f32;
    if (faster) r.best = found.many.bf16;
    if (r.why.empty()) {
      r.bf16 = changed = true;
      n.attrs[ops::kCompute] = std::string("bf16");
      n.attrs.erase("winograd");
      n.attrs.erase("winograd_stored");
      n.attrs.erase("winograd_kept");
    }
    c.trace.precision.push_back(std::move(r));
  }
  return changed;
}

}  // namespace ge::passes
