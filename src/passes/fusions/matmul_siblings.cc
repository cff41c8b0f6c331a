//   MatMul(x, w1) + b1, MatMul(x, w2) + b2, ...   becomes   Split(MatMul(x, [w1 w2 ...]) + [b1 b2 ...])
// Products that share their left operand (query, key and value) become one. Only where each alone is too
// small to fill the unit: fewer than 512 rows, or narrow weights when the rows are not known; larger ones
// gain nothing and would keep the joint result alive longer.
#include <algorithm>
#include <cstring>
#include <map>

#include "base/text.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

struct Sibling {
  NodeId id;
  CubeGroup group;
};

// Attributes that all siblings must share: everything but none are left.
bool plain(const CubeGroup& g) {
  return !g.residual && !g.has_act() && !g.has_program() && !g.attrs.count("transpose_a") && !g.attrs.count("transpose_b") && !g.attrs.count("alpha");
}

std::vector<Sibling> siblings(const ir::Graph& g, ValueId x) {
  std::vector<Sibling> out;
  for (auto& u : g.value(x).uses) {
    auto& n = g.node(u.node);
    if (u.index != 0 || (n.op != "MatMul" && n.op != "Gemm" && n.op != "ge.MatMul")) continue;
    Sibling s{u.node, {}};
    if (!read_group(g, u.node, s.group) || !plain(s.group) || !g.is_constant(s.group.w)) continue;
    auto& w = g.value(s.group.w).type;
    if (w.dtype != DType::f32 || w.rank() != 2) continue;
    if (s.group.bias && (!g.is_constant(s.group.bias) || !per_channel(g, s.group.bias, g.value(n.outputs[0]).type, g.value(n.outputs[0]).type.rank() - 1))) continue;
    out.push_back(std::move(s));
  }
  std::sort(out.begin(), out.end(), [&](auto& a, auto& b) { return std::pair(g.node(a.id).rank, a.id.v) < std::pair(g.node(b.id).rank, b.id.v); });
  return out;
}

Verdict worthwhile(const ir::Graph& g, ValueId x, const std::vector<Sibling>& s) {
  auto& t = g.value(x).type;
  if (!t.ranked || t.rank() < 2) return no("the shape of the shared operand is not known", "give the inputs' shapes with --input_shape");
  Dim rows = product(t.dims, 0, t.dims.size() - 1);
  if (rows.known()) return rows.value() < 512 ? yes() : no(format("{} rows fill the unit with each product alone", rows.value()));
  for (auto& one : s)
    if (g.value(one.group.w).type.dims[1].value() > 512) return no("the number of rows is not known and the weights are wide", "give the number of rows with --input_shape");
  return yes();
}

NodeId merge(ir::Graph& g, ValueId x, const std::vector<Sibling>& s) {
  int64_t k = g.value(s[0].group.w).type.dims[0].value(), n = 0;
  bool bias = false;
  std::vector<int64_t> widths;
  for (auto& one : s) {
    widths.push_back(g.value(one.group.w).type.dims[1].value());
    n += widths.back();
    bias |= bool(one.group.bias);
  }
  Tensor w(DType::f32, {k, n});
  std::vector<float> b(static_cast<size_t>(n));
  int64_t at = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    auto* from = g.value(s[i].group.w).constant->as<float>();
    for (int64_t r = 0; r < k; ++r) std::memcpy(w.as<float>() + r * n + at, from + r * widths[i], static_cast<size_t>(widths[i]) * 4);
    if (s[i].group.bias) {
      auto& out = g.value(g.node(s[i].id).outputs[0]).type;
      auto values = *per_channel(g, s[i].group.bias, out, out.rank() - 1);
      std::copy(values.begin(), values.end(), b.begin() + at);
    }
    at += widths[i];
  }
  std::vector<ValueId> inputs = {x, g.add_constant(std::move(w), "joint")};
  if (bias) inputs.push_back(g.add_constant(vector_f32(b), "bias"));
  auto type = g.value(g.node(s[0].id).outputs[0]).type;
  type.dims.back() = n;
  NodeId first = s[0].id;
  NodeId joint = g.insert("ge.MatMul", inputs, {type}, {}, first);
  std::vector<std::string> origins;
  std::vector<ValueId> outs(s.size());
  ValueId sizes = g.add_constant(Tensor::vector_i64(widths), "widths");
  NodeId split = g.add_node("Split", {g.node(joint).outputs[0], sizes}, outs, {{"axis", int64_t(type.rank() - 1)}}, "split");
  g.node(split).rank = g.node(first).rank;
  for (size_t i = 0; i < s.size(); ++i) {
    auto& old = g.node(s[i].id);
    if (old.origin.empty()) origins.push_back(old.name);
    else origins.insert(origins.end(), old.origin.begin(), old.origin.end());
    ValueId v = old.outputs[0];
    g.set_output(split, static_cast<int>(i), v);
    g.erase(s[i].id);
  }
  g.node(joint).origin = std::move(origins);
  return joint;
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  Trace& trace = c.trace;
  bool changed = false;
  size_t values = g.value_capacity();
  for (size_t i = 0; i < values; ++i) {
    ValueId x{static_cast<int32_t>(i)};
    if (g.value(x).uses.size() < 2) continue;
    auto s = siblings(g, x);
    if (s.size() < 2) continue;
    Verdict v = worthwhile(g, x, s);
    if (v) v = in_scope(c.options, g, s[0].id);
    if (!v) {
      trace.near_miss({"matmul_siblings", g.node(s[0].id).name, static_cast<int>(s.size()), static_cast<int>(s.size()), g.node(s[0].id).name, v.why, v.help});
      continue;
    }
    trace.fused("matmul_siblings", g, merge(g, x, s));
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "matmul_siblings", .doc = "products that share their left operand become one", .order = 4, .search = search});

}  // namespace
}  // namespace ge::passes
