// Reductions: ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceSumSquare, ReduceL1, ReduceL2,
// ReduceLogSum, ReduceLogSumExp. Over the last axes of f32, f16, bf16 and i32 they are vector programs.
#include "kernels/reference/reduce.h"

#include <numeric>

#include "base/text.h"
#include "ops/axes_from_data.h"
#include "ops/elementwise.h"
#include "ops/fused_tail.h"
#include "ops/rewrite.h"
#include "ops/rows.h"
#include "ops/vector_lowering.h"

namespace ge::ops {
namespace {

using kernels::reference::Reduction;
using V = kernels::vector::Op;

struct Entry {
  const char* name;
  Reduction code;
};
constexpr Entry kTable[] = {
    {"ReduceSum", Reduction::sum},       {"ReduceMean", Reduction::mean},     {"ReduceMax", Reduction::max},
    {"ReduceMin", Reduction::min},       {"ReduceProd", Reduction::prod},     {"ReduceSumSquare", Reduction::sum_square},
    {"ReduceL1", Reduction::l1},         {"ReduceL2", Reduction::l2},         {"ReduceLogSum", Reduction::log_sum},
    {"ReduceLogSumExp", Reduction::log_sum_exp},
};

Reduction code_of(const Node& n) {
  for (auto& e : kTable)
    if (n.op == e.name) return e.code;
  GE_CHECK(false, "not a reduction: " + n.op);
  return Reduction::sum;
}

bool keeps(const Node& n) { return ir::attr_int(n, "keepdims", 1) != 0; }

// Input 1 is a number for each axis, 1 where it is reduced: what expand() makes of axes of unknown number.
bool by_mask(const Node& n) { return ir::attr_int(n, "mask", 0) != 0; }
std::optional<std::vector<bool>> known_mask(const std::vector<Dim>& mask, int rank) {
  std::vector<bool> out;
  for (auto& m : mask) {
    if (!m.known()) return std::nullopt;
    out.push_back(m.value() != 0);
  }
  return out.size() == static_cast<size_t>(rank) ? std::optional(out) : std::nullopt;
}
std::vector<Dim> mask_of(const Node& n, const std::vector<Dim>& axes, int rank) { return by_mask(n) ? axes : axis_mask(axes, rank); }

// Which axes are reduced, for an input of this rank; nullopt: known only when running.
std::optional<std::vector<bool>> reduced_axes(const Graph& g, const Node& n, int rank) {
  std::vector<Dim> axes;
  if (n.inputs.size() > 1 && n.inputs[1]) {
    auto e = g.elements(n.inputs[1]);
    if (!e) return std::nullopt;
    axes = *e;
  }
  if (by_mask(n)) return known_mask(axes, rank);
  std::vector<bool> out(static_cast<size_t>(rank), axes.empty() && ir::attr_int(n, "noop_with_empty_axes", 0) == 0);
  for (auto& a : axes) {
    if (!a.known() || a.value() < -rank || a.value() >= rank) return std::nullopt;
    out[static_cast<size_t>(a.value() < 0 ? a.value() + rank : a.value())] = true;
  }
  return out;
}

// The only element, when everything of a small integer tensor is reduced.
void infer_elements(InferContext& c, const std::vector<bool>& reduced) {
  auto e = c.elements(0);
  if (!e || e->empty() || std::find(reduced.begin(), reduced.end(), false) != reduced.end()) return;
  Dim acc = (*e)[0];
  for (size_t i = 1; i < e->size(); ++i) {
    auto& x = (*e)[i];
    switch (code_of(c.node)) {
      case Reduction::sum: acc = acc + x; break;
      case Reduction::prod: acc = acc * x; break;
      case Reduction::max: acc = max(acc, x); break;
      case Reduction::min: acc = min(acc, x); break;
      default: return;
    }
  }
  Reduction r = code_of(c.node);
  if (r != Reduction::sum && r != Reduction::prod && r != Reduction::max && r != Reduction::min) return;
  c.set_elements(0, {acc});
}

Status infer(InferContext& c) {
  DType t = c.dtype(0);
  if (!c.ranked(0)) {
    c.set_unranked(0, t);
    return ok();
  }
  int rank = c.rank(0);
  if (auto axes = c.ints(1); axes && !by_mask(c.node))
    for (int64_t a : *axes) {
      GE_TRY(int axis, normalize_axis(c, a, rank));
      (void)axis;
    }
  auto reduced = reduced_axes(c.graph, c.node, rank);
  if (!reduced) {
    auto axes = c.elements(1);
    if (!axes || axes->size() > static_cast<size_t>(rank)) {
      c.set_unranked(0, t);
      return ok();
    }
    if (by_mask(c.node) && axes->size() != static_cast<size_t>(rank)) return c.fail("the mask has not one number for each axis");
    auto mask = mask_of(c.node, *axes, rank);
    c.set(0, t, keeps(c.node) ? with_ones(c.dims(0), mask) : without_axes(c.dims(0), mask, axes->size()));
    return ok();
  }
  std::vector<Dim> dims;
  for (int a = 0; a < rank; ++a) {
    bool r = (*reduced)[static_cast<size_t>(a)];
    if (!r) dims.push_back(c.dims(0)[static_cast<size_t>(a)]);
    else if (keeps(c.node)) dims.push_back(Dim(1));
  }
  c.set(0, t, std::move(dims));
  infer_elements(c, *reduced);
  return ok();
}

// The axes were an attribute: of ReduceSum before 13, of the others before 18.
Status upgrade(UpgradeContext& c) {
  c.attr_to_input("axes", 1);
  return ok();
}

// Axes of unknown number: a mask of all axes says the same. The output's rank is known only where they are kept.
Result<bool> expand(UpgradeContext& c) {
  const Node n = c.node();
  if (n.inputs.size() < 2 || !n.inputs[1] || !keeps(n) || by_mask(n) || c.graph.elements(n.inputs[1])) return false;
  const Type &x = c.graph.value(n.inputs[0]).type, &list = c.graph.value(n.inputs[1]).type;
  if (!x.ranked || x.rank() < 1 || !list.ranked || list.rank() != 1 || list.dims[0].known()) return false;
  std::vector<int64_t> all(static_cast<size_t>(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  const ir::Attrs i64{{"to", static_cast<int64_t>(DType::i64)}}, dropped{{"keepdims", int64_t{0}}};
  ValueId axes = c.constant_ints(all);
  // Gather counts negative axes from the end, and refuses those that there are not.
  ValueId named = make_node(c, "Unsqueeze", {make_node(c, "Gather", {axes, n.inputs[1]}), c.constant_ints({1})});
  ValueId times = make_node(c, "ReduceSum", {make_node(c, "Cast", {make_node(c, "Equal", {named, axes})}, i64), c.constant_ints({0})}, dropped);
  ValueId mask = make_node(c, "Min", {times, number(c, 1)});
  if (!ir::attr_int(n, "noop_with_empty_axes", 0)) {
    ValueId none = make_node(c, "Equal", {make_node(c, "ReduceSum", {times, c.constant_ints({0})}, dropped), number(c, 0)});
    mask = make_node(c, "Max", {mask, make_node(c, "Cast", {none}, i64)});
  }
  ir::Attrs attrs = n.attrs;
  attrs["mask"] = int64_t{1};
  become(c, n.op, {n.inputs[0], mask}, std::move(attrs));
  return true;
}

// The output with the reduced axes as axes of size 1.
Result<Strided> kept_view(const LowerContext& c, const std::vector<bool>& reduced) {
  Strided v = c.out_view();
  if (!keeps(c.node))
    for (size_t a = 0; a < reduced.size(); ++a)
      if (reduced[a]) v = with_axes(v, a, 1);
  if (v.dims.size() != reduced.size()) return c.fail("the output's rank does not fit");
  return v;
}

Result<std::vector<bool>> known_axes(const LowerContext& c) {
  if (auto r = reduced_axes(c.graph, c.node, c.type(0).rank())) return *r;
  return c.fail("its axes must be known while compiling", "Make them a constant, or give the inputs' shapes with --input_shape.");
}

// Axes that data say: into memory of its own, where the reduced axes are kept.
Status emit_by_data(LowerContext& c) {
  auto axes = c.elements(1);
  if (!axes) return c.fail("its axes must be known while compiling", "Make them a constant, or give the inputs' shapes with --input_shape.");
  Arg kept = c.temp(c.type(0).dtype, with_ones(c.type(0).dims, mask_of(c.node, *axes, c.type(0).rank())));
  c.call("ref.Reduce", {c.in(0)}, {kept}, {static_cast<int64_t>(code_of(c.node))});
  c.call("move.reshape", {kept}, {c.out()});
  return ok();
}

Status emit(LowerContext& c, const char* kernel) {
  if (!reduced_axes(c.graph, c.node, c.type(0).rank())) return emit_by_data(c);
  GE_TRY(auto reduced, known_axes(c));
  GE_TRY(auto view, kept_view(c, reduced));
  c.call(kernel, {c.in(0)}, {c.out_as(0, view)}, {static_cast<int64_t>(code_of(c.node))});
  return ok();
}

Status reference(LowerContext& c) { return emit(c, "ref.Reduce"); }

// The number of last axes that are reduced, if those and no others are; else 0.
int trailing(const std::vector<bool>& reduced) {
  size_t n = 0;
  while (n < reduced.size() && reduced[reduced.size() - 1 - n]) ++n;
  for (size_t a = 0; a + n < reduced.size(); ++a)
    if (reduced[a]) return 0;
  return static_cast<int>(n);
}

bool vector_type(const Node& n, DType t) {
  Reduction r = code_of(n);
  return float_lane(t) || (t == DType::i32 && (r == Reduction::sum || r == Reduction::max || r == Reduction::min));
}

int row_axes(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]).type;
  if (!x.ranked || !keeps(n) || !vector_type(n, x.dtype)) return 0;
  auto reduced = reduced_axes(g, n, x.rank());
  int axes = reduced ? trailing(*reduced) : 0;
  return rows_in_order(g, n, axes) ? axes : 0;
}

bool vector(VectorContext& c) {
  DType t = c.graph.value(c.node.inputs[0]).type.dtype;
  if (!vector_type(c.node, t)) return false;
  auto& b = c.builder;
  auto x = c.in[0];
  bool integer = t == DType::i32;
  auto sum = [&](kernels::vector::Reg r) { return b.reduce(V::row_sum, r); };
  switch (code_of(c.node)) {
    case Reduction::sum: c.out[0] = b.reduce(integer ? V::row_isum : V::row_sum, x); break;
    case Reduction::mean: c.out[0] = b.reduce(V::row_mean, x); break;
    case Reduction::max: c.out[0] = b.reduce(integer ? V::row_imax : V::row_max, x); break;
    case Reduction::min: c.out[0] = b.reduce(integer ? V::row_imin : V::row_min, x); break;
    case Reduction::prod: c.out[0] = b.reduce(V::row_prod, x); break;
    case Reduction::sum_square: c.out[0] = sum(b.op(V::square, x)); break;
    case Reduction::l1: c.out[0] = sum(b.op(V::abs, x)); break;
    case Reduction::l2: c.out[0] = b.op(V::sqrt, sum(b.op(V::square, x))); break;
    case Reduction::log_sum: c.out[0] = b.op(V::log, sum(x)); break;
    case Reduction::log_sum_exp: {
      auto most = b.reduce(V::row_max, x);
      // An infinite maximum must not become inf - inf.
      auto shift = b.op(V::select, b.op(V::is_inf, most), b.constant(0.0f), most);
      c.out[0] = b.op(V::add, shift, b.op(V::log, sum(b.op(V::exp, b.op(V::sub, x, shift)))));
      break;
    }
  }
  return true;
}

Status lower(LowerContext& c) {
  if (!reduced_axes(c.graph, c.node, c.type(0).rank())) return emit_by_data(c);
  GE_TRY(auto reduced, known_axes(c));
  DType t = c.type(0).dtype;
  int rows = trailing(reduced);
  if (rows && vector_type(c.node, t) && contiguous_row(c.view(0), rows)) {
    kernels::vector::ProgramBuilder b;
    auto made = append_vector(c.graph, c.node, b, {b.load(0, vector_lane(t))});
    if (made) {
      b.store(0, (*made)[0]);
      GE_TRY(auto program, b.finish());
      GE_TRY(auto view, kept_view(c, reduced));
      emit_vector_program(c, program, rows, {c.in(0)}, {c.out_as(0, view)});
      return ok();
    }
  }
  Reduction r = code_of(c.node);
  bool integer = t == DType::i32 || t == DType::i64;
  if (integer ? r == Reduction::l2 || r >= Reduction::log_sum : !(float_lane(t) || t == DType::f64)) return ok();
  if (t == DType::f32 || !float_lane(t)) return emit(c, "reduce.axes");
  // 16-bit floats by way of f32.
  Strided x;
  Arg in = input_as_f32(c, 0, x);
  GE_TRY(auto view, kept_view(c, reduced));
  Arg out = c.temp(DType::f32, view.dims);
  c.call("reduce.axes", {in}, {out}, {static_cast<int64_t>(r)});
  emit_copy(c, out, DType::f32, c.out_as(0, view), t);
  return ok();
}

std::vector<int> layout(const Graph& g, const Node& n) {
  return keeps(n) ? inherit_layout(g, n) : std::vector<int>{};
}

OpDef define(const Entry& e) {
  OpDef d;
  d.name = e.name;
  d.min_inputs = 1;
  d.max_inputs = 2;
  d.types = types::numbers | types::boolean;
  d.attrs = {{"keepdims", "0: reduced axes are left out"}, {"noop_with_empty_axes", "1: no axes means none, not all"}};
  d.doc = "over the axes in input 1, or all";
  d.infer = infer;
  d.upgrade = upgrade;
  d.expand = expand;
  d.reference = reference;
  d.lower = lower;
  d.vector_kind = VectorKind::row;
  d.vector = vector;
  d.row_axes = row_axes;
  d.layout = layout;
  d.parameters = 1u << 1;
  return d;
}

[[maybe_unused]] const bool registered = [] {
  for (auto& e : kTable) Register r(define(e));
  return true;
}();

}  // namespace
}  // namespace ge::ops
