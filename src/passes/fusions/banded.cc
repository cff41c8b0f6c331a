#include "passes/fusions/banded.h"

#include <algorithm>
#include <cmath>

namespace ge::passes {
namespace {

using ir::ValueId;

constexpr int kMaxDepth = 24;

std::optional<Banded> evaluate(const ir::Graph& g, ValueId v, int depth);

std::optional<Banded> of_constant(const Tensor& t) {
  if (t.count() == 0 || !(is_float(t.dtype()) || is_integer(t.dtype()) || t.dtype() == DType::boolean)) return std::nullopt;
  double first = t.at(0);
  int64_t same = 1;
  while (same < t.count() && t.at(same) == first) ++same;
  if (same == t.count()) return std::isnan(first) ? std::nullopt : std::optional(Banded{first, first, Dim(0)});
  if (t.rank() < 2) return std::nullopt;
  int64_t rows = t.dims()[static_cast<size_t>(t.rank()) - 2], columns = t.dims()[static_cast<size_t>(t.rank()) - 1];
  if (rows * columns != t.count()) return std::nullopt;
  Banded b{t.at((rows - 1) * columns), t.at(columns - 1), Dim(0)};
  int64_t lead = 0, above = 0;
  while (lead < columns && t.at(lead) == b.in) ++lead;
  if (!lead)
    while (above < rows && t.at(above * columns) != b.in) ++above;
  int64_t offset = lead ? lead - 1 : -above;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (t.at(i * columns + j) != (j <= i + offset ? b.in : b.out)) return std::nullopt;
  b.offset = offset;
  return b;
}

// Do the last two axes stay? Other axes repeat the matrix, however many there are.
bool keeps_matrix(const ir::Graph& g, ValueId from, ValueId to) {
  auto &a = g.value(from).type, &b = g.value(to).type;
  if (!a.ranked || !b.ranked || a.rank() < 2 || b.rank() < 2) return false;
  for (size_t i = 1; i <= 2; ++i)
    if (!(a.dims[a.dims.size() - i] == b.dims[b.dims.size() - i])) return false;
  return true;
}

std::optional<double> combine(const std::string& op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Equal") return a == b;
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  if (op == "And") return a != 0 && b != 0;
  if (op == "Or") return a != 0 || b != 0;
  return std::nullopt;
}

// Elementwise on several: the bands among them share one diagonal and the output's matrix.
template <class F>
std::optional<Banded> elementwise(const ir::Graph& g, const ir::Node& n, int depth, F f) {
  std::vector<Banded> in;
  Banded out;
  for (ValueId v : n.inputs) {
    auto b = v ? evaluate(g, v, depth) : std::nullopt;
    if (!b) return std::nullopt;
    if (!b->uniform()) {
      bool first = std::all_of(in.begin(), in.end(), [](auto& x) { return x.uniform(); });
      if (!keeps_matrix(g, v, n.outputs[0]) || (!first && !(b->offset == out.offset))) return std::nullopt;
      out.offset = b->offset;
    }
    in.push_back(*b);
  }
  auto inside = f([&](size_t i) { return in[i].in; }), outside = f([&](size_t i) { return in[i].out; });
  if (!inside || !outside || std::isnan(*inside) || std::isnan(*outside)) return std::nullopt;
  out.in = *inside, out.out = *outside;
  return out;
}

std::optional<Banded> of_trilu(const ir::Graph& g, const ir::Node& n, int depth) {
  auto x = evaluate(g, n.inputs[0], depth);
  Dim k(0);
  if (n.inputs.size() > 1 && n.inputs[1]) {
    auto e = g.elements(n.inputs[1]);
    if (!e || e->size() != 1) return std::nullopt;
    k = (*e)[0];
  }
  if (!x || !x->uniform()) return std::nullopt;
  if (ir::attr_int(n, "upper", 1)) return Banded{0, x->in, k - Dim(1)};
  return Banded{x->in, 0, k};
}

std::optional<Banded> of_slice(const ir::Graph& g, const ir::Node& n, int depth) {
  auto x = evaluate(g, n.inputs[0], depth);
  if (!x || x->uniform()) return x;
  auto starts = g.elements(n.inputs[1]);
  auto axes = n.inputs.size() > 3 && n.inputs[3] ? g.elements(n.inputs[3]) : std::nullopt;
  auto steps = n.inputs.size() > 4 && n.inputs[4] ? g.elements(n.inputs[4]) : std::nullopt;
  if (!starts || !axes || axes->size() != starts->size()) return std::nullopt;
  int64_t rank = g.value(n.inputs[0]).type.rank();
  for (size_t i = 0; i < starts->size(); ++i) {
    if (steps && !(*steps)[i].is(1)) return std::nullopt;
    if (!(*axes)[i].known() || (*starts)[i].lower_bound() < 0) return std::nullopt;
    int64_t axis = (*axes)[i].value() < 0 ? (*axes)[i].value() + rank : (*axes)[i].value();
    if (axis == rank - 2) x->offset = x->offset + (*starts)[i];
    if (axis == rank - 1) x->offset = x->offset - (*starts)[i];
  }
  return x;
}

// Element k of one axis is k + start; other axes repeat it. Axis 1 is the last one, 2 that before it; 0: a number.
struct Positions {
  size_t axis = 0;
  Dim start;
};

// The axis of v that the only axis of its input longer than one became.
std::optional<size_t> moved_axis(const ir::Graph& g, ValueId from, ValueId to, size_t axis) {
  auto &a = g.value(from).type, &b = g.value(to).type;
  if (!a.ranked || !b.ranked || axis > a.dims.size()) return std::nullopt;
  const Dim size = a.dims[a.dims.size() - axis];
  std::optional<size_t> found;
  for (size_t i = 1; i <= b.dims.size(); ++i) {
    if (b.dims[b.dims.size() - i].is(1)) continue;
    if (found || !(b.dims[b.dims.size() - i] == size)) return std::nullopt;
    found = i;
  }
  return found;
}

std::optional<Positions> positions(const ir::Graph& g, ValueId v, int depth) {
  if (!v || depth == 0) return std::nullopt;
  auto& type = g.value(v).type;
  if (!is_integer(type.dtype)) return std::nullopt;
  if (auto e = g.elements(v); e && e->size() == 1) return Positions{0, (*e)[0]};
  ir::NodeId id = g.value(v).producer;
  if (!id) return std::nullopt;
  auto& n = g.node(id);
  --depth;
  if (n.op == "Range") {
    auto start = g.elements(n.inputs[0]), step = g.elements(n.inputs[2]);
    if (!start || !step || start->size() != 1 || step->size() != 1 || !(*step)[0].is(1)) return std::nullopt;
    return Positions{1, (*start)[0]};
  }
  if (n.op == "Add" || n.op == "Sub") {
    auto a = positions(g, n.inputs[0], depth), b = positions(g, n.inputs[1], depth);
    if (!a || !b || (a->axis && b->axis) || (b->axis && n.op == "Sub")) return std::nullopt;
    return Positions{std::max(a->axis, b->axis), n.op == "Add" ? a->start + b->start : a->start - b->start};
  }
  bool moves = n.op == "Unsqueeze" || n.op == "Squeeze" || n.op == "Reshape";
  if (!moves && n.op != "Identity" && n.op != "Expand" && n.op != "Cast") return std::nullopt;
  auto x = positions(g, n.inputs[0], depth);
  if (!x || !x->axis || !moves) return x;
  auto axis = moved_axis(g, n.inputs[0], v, x->axis);
  if (!axis) return std::nullopt;
  return Positions{*axis, x->start};
}

// A comparison of column numbers with row numbers: j + b <= i + a, j <= i + (a - b).
std::optional<Banded> positions_compared(const ir::Graph& g, const ir::Node& n, int depth) {
  bool less = n.op == "Less" || n.op == "LessOrEqual";
  if (!less && n.op != "Greater" && n.op != "GreaterOrEqual") return std::nullopt;
  auto small = positions(g, n.inputs[less ? 0 : 1], depth), large = positions(g, n.inputs[less ? 1 : 0], depth);
  auto& out = g.value(n.outputs[0]).type;
  if (!small || !large || !out.ranked || out.rank() < 2) return std::nullopt;
  // Each must have the size of the output's axis: one that is repeated along it says nothing of its elements.
  for (size_t i : {0, 1}) {
    auto &side = i ? *large : *small, &other = i ? *small : *large;
    auto& dims = g.value(n.inputs[less == (i == 0) ? 0 : 1]).type.dims;
    if (side.axis == 0 || side.axis > 2 || side.axis == other.axis || !(dims[dims.size() - side.axis] == out.dims[out.dims.size() - side.axis])) return std::nullopt;
  }
  Dim strict(n.op == "Less" || n.op == "Greater");
  Dim ahead = large->start - small->start - strict;   // small's index <= large's index + ahead
  if (small->axis == 1) return Banded{1, 0, ahead};
  return Banded{0, 1, Dim(-1) - ahead};               // i <= j + ahead: not where j <= i - ahead - 1
}

std::optional<Banded> evaluate(const ir::Graph& g, ValueId v, int depth) {
  if (auto& value = g.value(v); value.constant) return of_constant(*value.constant);
  ir::NodeId id = g.value(v).producer;
  if (!id || depth == 0) return std::nullopt;
  auto& n = g.node(id);
  --depth;
  if (n.op == "Trilu") return of_trilu(g, n, depth);
  if (n.op == "Slice") return of_slice(g, n, depth);
  if (n.op == "ConstantOfShape") {
    auto* t = ir::attr_tensor(n, "value");
    double fill = t && t->count() == 1 ? t->at(0) : 0;
    return Banded{fill, fill, Dim(0)};
  }
  if (n.op == "Identity" || n.op == "Unsqueeze" || n.op == "Squeeze" || n.op == "Reshape" || n.op == "Expand") {
    auto x = evaluate(g, n.inputs[0], depth);
    return x && (x->uniform() || keeps_matrix(g, n.inputs[0], v)) ? x : std::nullopt;
  }
  if (n.op == "Cast") {
    DType to = g.value(v).type.dtype;
    bool whole = is_integer(to);
    return elementwise(g, n, depth, [&](auto x) {
      return std::optional(to == DType::boolean ? double(x(0) != 0) : whole ? std::trunc(x(0)) : x(0));
    });
  }
  if (n.op == "Not") return elementwise(g, n, depth, [](auto x) { return std::optional(double(x(0) == 0)); });
  if (n.op == "Where") return elementwise(g, n, depth, [](auto x) { return std::optional(x(0) != 0 ? x(1) : x(2)); });
  if (auto compared = positions_compared(g, n, depth)) return compared;
  if (n.inputs.size() == 2 && combine(n.op, 0, 0)) return elementwise(g, n, depth, [&](auto x) { return combine(n.op, x(0), x(1)); });
  return std::nullopt;
}

}  // namespace

std::optional<Banded> banded(const ir::Graph& g, ValueId v) { return evaluate(g, v, kMaxDepth); }

}  // namespace ge::passes
