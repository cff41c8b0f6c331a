// The normal form: what changes nothing is removed, chains that move data become one step, so that rules
// see the operators that compute next to one another.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/shape_util.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr int64_t kMaxNeutral = 4096;   // elements that are looked at

std::vector<int64_t> transpose_perm(const ir::Graph& g, const ir::Node& n) {
  auto p = ir::attr_ints(n, "perm");
  if (p.empty()) {
    p.resize(g.value(n.inputs[0]).type.dims.size());
    std::iota(p.rbegin(), p.rend(), 0);
  }
  return p;
}

bool all_are(const Tensor& t, double x) {
  if (!(is_float(t.dtype()) || is_integer(t.dtype())) || t.count() > kMaxNeutral) return false;
  for (int64_t i = 0; i < t.count(); ++i)
    if (t.at(i) != x) return false;
  return true;
}

// A Slice with such steps that takes as many elements as there are takes each.
bool steps_ahead(const ir::Graph& g, const ir::Node& n) {
  if (n.inputs.size() < 5 || !n.inputs[4]) return true;
  auto steps = g.elements(n.inputs[4]);
  return steps && std::all_of(steps->begin(), steps->end(), [](auto& d) { return d.known() && d.value() > 0; });
}

bool does_nothing(const ir::Graph& g, const ir::Node& n) {
  if (n.inputs.empty() || !n.inputs[0] || !n.outputs[0]) return false;
  auto &in = g.value(n.inputs[0]).type, &out = g.value(n.outputs[0]).type;
  if (n.op == "Identity") return true;
  if (n.op == "Dropout") return (n.outputs.size() < 2 || !n.outputs[1]) && ops::drops_nothing(g, n);
  if (in.dtype != out.dtype || in.kind != ir::TypeKind::tensor) return false;
  bool same = in.ranked && out.ranked && in.dims == out.dims;
  if (n.op == "Cast" || n.op == "CastLike") return true;
  if (n.op == "Reshape" || n.op == "Expand" || n.op == "Flatten" || n.op == "Squeeze" || n.op == "Unsqueeze") return same;
  if (n.op == "Transpose") {
    auto p = transpose_perm(g, n);
    return in.ranked && std::is_sorted(p.begin(), p.end());
  }
  if (n.op == "Concat") return n.inputs.size() == 1;
  if (n.op == "Slice") return same && steps_ahead(g, n);
  return changes_nothing(g, n);
}

bool merge_transposes(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  NodeId up = g.value(n.inputs[0]).producer;
  if (n.op != "Transpose" || !up || g.node(up).op != "Transpose" || !g.value(n.inputs[0]).type.ranked) return false;
  auto first = transpose_perm(g, g.node(up)), second = transpose_perm(g, n);
  std::vector<int64_t> both;
  for (int64_t p : second) both.push_back(first[static_cast<size_t>(p)]);
  n.attrs["perm"] = both;
  g.set_input(id, 0, g.node(up).inputs[0]);
  return true;
}

// A Reshape of a Reshape: the first shape does not matter. The second's target is spelt out where its
// zeros refer to the first.
bool merge_reshapes(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  auto is_reshape = [](const ir::Node& x) { return x.op == "Reshape" || x.op == "Flatten" || x.op == "Squeeze" || x.op == "Unsqueeze"; };
  if (n.op != "Reshape") return false;
  NodeId up = g.value(n.inputs[0]).producer;
  if (!up || !is_reshape(g.node(up)) || n.inputs.size() < 2) return false;
  auto target = g.elements(n.inputs[1]);
  auto& out = g.value(n.outputs[0]).type;
  if (!target || !out.ranked) return false;
  // A number from data may turn out to be 0 or -1.
  if (std::any_of(target->begin(), target->end(), [](auto& d) { return !d.known() && d.lower_bound() < 0; })) return false;
  bool zeros = std::any_of(target->begin(), target->end(), [](auto& d) { return d.is(0); });
  if (zeros) {
    int unknown = static_cast<int>(std::count_if(out.dims.begin(), out.dims.end(), [](auto& d) { return !d.known(); }));
    if (unknown > 1 || std::any_of(out.dims.begin(), out.dims.end(), [](auto& d) { return d.is(0); })) return false;
    std::vector<int64_t> sizes;
    for (auto& d : out.dims) sizes.push_back(d.known() ? d.value() : -1);
    g.set_input(id, 1, g.add_constant(Tensor::vector_i64(sizes), "shape"));
  }
  g.set_input(id, 0, g.node(up).inputs[0]);
  return true;
}

// The target of a Reshape from `in` to `out` as numbers; nullopt when two sizes would have to be inferred.
std::optional<std::vector<int64_t>> reshape_target(const std::vector<Dim>& in, const std::vector<Dim>& out) {
  std::vector<int64_t> target;
  bool inferred = false;
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].is(0)) return std::nullopt;
    if (out[i].known()) target.push_back(out[i].value());
    else if (i < in.size() && in[i] == out[i]) target.push_back(0);
    else if (inferred) return std::nullopt;
    else target.push_back(-1), inferred = true;
  }
  return target;
}

// Does type `to` hold every value of `from`?
bool holds(DType from, DType to) {
  if (from == to || from == DType::boolean) return true;
  struct Numbers {
    int bits;          // of an integer's magnitude, or of a float's significand
    bool is_signed, is_float;
  };
  auto numbers = [](DType t) -> std::optional<Numbers> {
    switch (t) {
      case DType::u8: return Numbers{8, false, false};
      case DType::i8: return Numbers{7, true, false};
      case DType::u16: return Numbers{16, false, false};
      case DType::i16: return Numbers{15, true, false};
      case DType::u32: return Numbers{32, false, false};
      case DType::i32: return Numbers{31, true, false};
      case DType::u64: return Numbers{64, false, false};
      case DType::i64: return Numbers{63, true, false};
      case DType::f16: return Numbers{11, true, true};
      case DType::f32: return Numbers{24, true, true};
      case DType::f64: return Numbers{53, true, true};
      default: return std::nullopt;
    }
  };
  auto a = numbers(from), b = numbers(to);
  if (!a || !b || (a->is_signed && !b->is_signed) || (a->is_float && !b->is_float)) return false;
  // Integers of 16 bits pass the range of f16, whose largest number is 65504.
  return a->bits <= b->bits && !(to == DType::f16 && a->bits > 11);
}

//   Cast(Cast(x, wide), t)   becomes   Cast(x, t)     where wide holds every value of x's type
bool merge_casts(ir::Graph& g, NodeId id) {
  if (g.node(id).op != "Cast") return false;
  NodeId up = g.value(g.node(id).inputs[0]).producer;
  if (!up || g.node(up).op != "Cast") return false;
  ValueId x = g.node(up).inputs[0];
  if (!holds(g.value(x).type.dtype, g.value(g.node(id).inputs[0]).type.dtype)) return false;
  if (g.only_reader(g.node(id).inputs[0])) {   // it stands for both
    auto names = origins_of(g.node(up)), own = origins_of(g.node(id));
    names.insert(names.end(), own.begin(), own.end());
    g.node(id).origin = std::move(names);
  }
  g.set_input(id, 0, x);
  return true;
}

//   Max(x, -inf)   becomes   x, and so Min(x, inf)
bool bounds_nothing(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  if ((n.op != "Max" && n.op != "Min") || n.inputs.size() != 2) return false;
  for (size_t i = 0; i < 2; ++i) {
    const ValueId bound = n.inputs[i], x = n.inputs[1 - i];
    if (!bound || !x || !g.is_constant(bound) || !g.value(x).type.ranked || !(g.value(x).type == g.value(n.outputs[0]).type)) continue;
    const Tensor& t = *g.value(bound).constant;
    if (!is_float(t.dtype()) || !all_are(t, n.op == "Max" ? -HUGE_VAL : HUGE_VAL)) continue;
    g.replace_uses(n.outputs[0], x);
    g.erase(id);
    return true;
  }
  return false;
}

//   Reshape(Reduce(x) {keepdims=0})   becomes   Reduce(x) {keepdims=1}     where it puts the axes back
bool keep_reduced_axes(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  if (n.op != "Reshape" && n.op != "Unsqueeze") return false;
  NodeId up = g.value(n.inputs[0]).producer;
  if (!up || !g.node(up).op.starts_with("Reduce") || !g.only_reader(n.inputs[0]) || ir::attr_int(g.node(up), "keepdims", 1) != 0) return false;
  auto& reduce = g.node(up);
  auto &x = g.value(reduce.inputs[0]).type, &out = g.value(n.outputs[0]).type;
  if (!x.ranked || !out.ranked || reduce.inputs.size() != 2 || !reduce.inputs[1] || ir::attr_int(reduce, "mask", 0) != 0) return false;
  auto axes = g.elements(reduce.inputs[1]);
  if (!axes || axes->empty()) return false;
  auto kept = x.dims;
  for (auto& a : *axes) {
    if (!a.known()) return false;
    kept[static_cast<size_t>(a.value() < 0 ? a.value() + x.rank() : a.value())] = 1;
  }
  if (kept != out.dims) return false;
  const ir::Type type = out;
  ir::Attrs attrs = reduce.attrs;
  attrs["keepdims"] = int64_t{1};
  NodeId made = g.insert(reduce.op, reduce.inputs, {type}, std::move(attrs), up);
  g.replace_uses(g.node(id).outputs[0], g.node(made).outputs[0]);
  g.erase(id);
  g.erase(up);
  return true;
}

//   Sum(a, b)   becomes   Add(a, b), the name that the rules know
bool sum_of_two(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  if (n.op != "Sum" || n.inputs.size() != 2) return false;
  n.op = "Add";
  return true;
}

//   Shape(x)   becomes   ge.Sizes     x a computed value whose sizes are known expressions
bool shape_reads_nothing(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  if (n.op != "Shape" || !g.value(n.inputs[0]).producer || !g.value(n.outputs[0]).content) return false;
  // The node that decides a size may yet be merged with another.
  auto& elements = *g.value(n.outputs[0]).content;
  if (std::any_of(elements.begin(), elements.end(), [&](auto& d) { return g.decided_by_data(d); })) return false;
  std::vector<std::string> sizes;
  for (auto& d : *g.value(n.outputs[0]).content) sizes.push_back(d.text());
  NodeId made = g.insert("ge.Sizes", {}, {g.value(n.outputs[0]).type}, {{"sizes", sizes}}, id);
  g.value(g.node(made).outputs[0]).content = g.value(g.node(id).outputs[0]).content;
  g.replace_uses(g.node(id).outputs[0], g.node(made).outputs[0]);
  g.erase(id);
  return true;
}

//   Reshape [L.., A, B] -> [P, A, B], Transpose {0, 2, 1}, Reshape -> [M.., B, A]
// becomes Reshape -> [M.., A, B], Transpose of the last two axes: exporters join the leading axes around a
// Transpose of matrices.
bool split_transpose(ir::Graph& g, NodeId id) {
  if (g.node(id).op != "Reshape") return false;
  NodeId t = g.value(g.node(id).inputs[0]).producer;
  if (!t || g.node(t).op != "Transpose" || transpose_perm(g, g.node(t)) != std::vector<int64_t>{0, 2, 1}) return false;
  NodeId first = g.value(g.node(t).inputs[0]).producer;
  if (!first || g.node(first).op != "Reshape") return false;
  ValueId x = g.node(first).inputs[0];
  auto type = g.value(g.node(id).outputs[0]).type;
  auto &from = g.value(x).type, &joined = g.value(g.node(t).inputs[0]).type;
  if (!from.ranked || !joined.ranked || !type.ranked || from.rank() < 3 || type.rank() < 3) return false;
  std::swap(type.dims[type.dims.size() - 1], type.dims[type.dims.size() - 2]);
  for (size_t i = 1; i <= 2; ++i) {
    auto& d = joined.dims[joined.dims.size() - i];
    if (!(from.dims[from.dims.size() - i] == d) || !(type.dims[type.dims.size() - i] == d)) return false;
  }
  if (from.dims != type.dims) {
    auto target = reshape_target(from.dims, type.dims);
    if (!target) return false;
    ValueId shape = g.add_constant(Tensor::vector_i64(*target), "shape");
    x = g.node(g.insert("Reshape", {x, shape}, {type}, {}, first)).outputs[0];
  }
  std::vector<int64_t> perm(type.dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  NodeId made = g.insert("Transpose", {x}, {g.value(g.node(id).outputs[0]).type}, {{"perm", perm}}, t);
  g.replace_uses(g.node(id).outputs[0], g.node(made).outputs[0]);
  g.erase(id);
  return true;
}

//   Reshape -> [P, K], Gemm(., w, b), Reshape -> [L.., M]
// becomes MatMul(Reshape -> [L.., K], w) + b: exporters join the rows of a batch around a layer.
bool split_rows(ir::Graph& g, NodeId id) {
  if (g.node(id).op != "Reshape") return false;
  ValueId rows = g.node(id).inputs[0];
  NodeId product = g.value(rows).producer;
  if (!product || g.node(product).op != "Gemm" || g.only_reader(rows) != id) return false;
  auto n = g.node(product);
  if (ir::attr_int(n, "transA", 0) || ir::attr_int(n, "transB", 0) || ir::attr_float(n, "alpha", 1) != 1 || ir::attr_float(n, "beta", 1) != 1) return false;
  NodeId joined = g.value(n.inputs[0]).producer;
  ValueId bias = n.inputs.size() > 2 ? n.inputs[2] : ValueId{};
  if (!joined || g.node(joined).op != "Reshape" || (bias && g.value(bias).type.dims.size() > 1)) return false;
  auto type = g.value(g.node(id).outputs[0]).type, inner = type;
  auto &whole = g.value(rows).type, &w = g.value(n.inputs[1]).type;
  if (!type.ranked || type.rank() < 3 || whole.rank() != 2 || w.rank() != 2 || !(type.dims.back() == whole.dims[1])) return false;
  inner.dims.back() = w.dims[0];
  ValueId x = g.node(joined).inputs[0];
  if (g.value(x).type.dims != inner.dims) {
    auto target = reshape_target(g.value(x).type.dims, inner.dims);
    if (!target) return false;
    x = g.node(g.insert("Reshape", {x, g.add_constant(Tensor::vector_i64(*target), "shape")}, {inner}, {}, product)).outputs[0];
  }
  ValueId y = g.node(g.insert("MatMul", {x, n.inputs[1]}, {type}, {}, product)).outputs[0];
  if (bias) {
    NodeId sum = g.insert("Add", {y, bias}, {type}, {}, product);
    g.node(sum).origin.clear();   // the product stands for the Gemm
    y = g.node(sum).outputs[0];
  }
  g.replace_uses(g.node(id).outputs[0], y);
  g.erase(id);
  return true;
}

}  // namespace

// A zero may lose its sign in a sum.
bool changes_nothing(const ir::Graph& g, const ir::Node& n) {
  const bool sum = n.op == "Add" || n.op == "Sub", product = n.op == "Mul" || n.op == "Div";
  if ((!sum && !product) || !n.inputs[0] || !g.is_constant(n.inputs[1]) || g.is_constant(n.inputs[0])) return false;
  auto &in = g.value(n.inputs[0]).type, &out = g.value(n.outputs[0]).type;
  return in.ranked && in == out && all_are(*g.value(n.inputs[1]).constant, sum ? 0 : 1);
}

Result<bool> normal_form(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    if (does_nothing(g, n)) {
      ValueId in = n.inputs[0], out = n.outputs[0];
      // The name that a user gave an output stays with the graph (output_names).
      g.replace_uses(out, in);
      g.erase(id);
      changed = true;
      continue;
    }
    if (n.inputs.empty() || !n.inputs[0]) continue;
    if (shape_reads_nothing(g, id)) {
      changed = true;
      continue;
    }
    if (bounds_nothing(g, id) || keep_reduced_axes(g, id)) {
      changed = true;
      continue;
    }
    changed |= sum_of_two(g, id) || merge_casts(g, id) || merge_transposes(g, id) || split_transpose(g, id) || split_rows(g, id) || merge_reshapes(g, id);
  }
  if (changed) {
    auto swept = dce(g, c);
    if (!swept.ok()) return swept;
  }
  return changed;
}

}  // namespace ge::passes
