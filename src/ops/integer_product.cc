#include "ops/integer_product.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "kernels/cube/integer.h"
#include "kernels/reference/elementwise.h"
#include "ops/conv_lowering.h"
#include "ops/fused_tail.h"

namespace ge::ops {
namespace {

constexpr int64_t kMaxGroups = 16;

bool has(const LowerContext& c, int i) { return i >= 0 && c.has(i); }

// The axis of channels last: the order in which the kernel sees a convolution's operands.
Strided channels_moved(Strided v) {
  v.dims.push_back(v.dims[1]), v.strides.push_back(v.strides[1]);
  v.dims.erase(v.dims.begin() + 1), v.strides.erase(v.strides.begin() + 1);
  return v;
}

struct Packed {
  Arg panels, sums;
};

// A constant [K, N], one for each index of the leading axes of `view`.
Packed pack_constant(LowerContext& c, const Tensor& t, const Strided& view) {
  size_t lead = view.dims.size() - 2;
  int64_t k = view.dims[lead].value(), n = view.dims[lead + 1].value(), batches = 1, p = (n + 15) / 16;
  std::vector<int64_t> dims;
  for (size_t a = 0; a < lead; ++a) dims.push_back(view.dims[a].value()), batches *= dims.back();
  std::vector<int64_t> panel_dims = dims, sum_dims = dims;
  panel_dims.insert(panel_dims.end(), {p, kernels::cube::quads(k), 16, 4});
  sum_dims.push_back(p * 16);
  Tensor panels(DType::i8, panel_dims), sums(DType::i32, sum_dims);
  const int64_t sizes[2] = {k, n}, strides[2] = {view.strides[lead].value(), view.strides[lead + 1].value()};
  for (int64_t i = 0; i < batches; ++i) {
    int64_t at = view.offset.value(), left = i;
    for (size_t a = lead; a-- > 0; left /= dims[a]) at += left % dims[a] * view.strides[a].value();
    View b{const_cast<std::byte*>(t.data()) + at, t.dtype(), 2, sizes, strides};
    kernels::cube::pack_integer(b, panels.as<int8_t>() + i * kernels::cube::packed_integer_bytes(k, n), sums.as<int32_t>() + i * p * 16);
  }
  return {c.weight(std::move(panels)), c.weight(std::move(sums))};
}

Packed pack_computed(LowerContext& c, Arg b, const Strided& view) {
  size_t rank = view.dims.size();
  std::vector<Dim> panel_dims(view.dims.begin(), view.dims.end() - 2), sum_dims = panel_dims;
  Dim p = ceildiv(view.dims[rank - 1], Dim(16));
  panel_dims.insert(panel_dims.end(), {p, ceildiv(view.dims[rank - 2], Dim(4)), Dim(16), Dim(4)});
  sum_dims.push_back(p * Dim(16));
  Packed out{c.temp(DType::i8, panel_dims), c.temp(DType::i32, sum_dims)};
  b.view = view;
  c.call("cube.pack_integer", {b}, {out.panels, out.sums});
  return out;
}

// Filters [M, C / groups, k...] of one group as a matrix [k..., C / groups; M / groups].
Packed pack_filters(LowerContext& c, const IntegerForm& f, int64_t groups, int64_t group) {
  const Tensor* t = c.constant_of(f.w);
  Strided v = t ? Strided::dense(c.type(f.w).dims) : c.view(f.w), moved;
  Dim mg = floordiv(v.dims[0], Dim(groups));
  moved.offset = v.offset + Dim(group) * mg * v.strides[0];
  auto axis = [&](const Dim& d, const Dim& s) { moved.dims.push_back(d), moved.strides.push_back(s); };
  for (size_t a = 2; a < v.dims.size(); ++a) axis(v.dims[a], v.strides[a]);
  axis(v.dims[1], v.strides[1]);
  axis(mg, v.strides[0]);
  Dim k = product(moved.dims, 0, moved.dims.size() - 1);
  Strided matrix = Strided::dense({k, mg});
  DType type = c.type(f.w).dtype;
  if (!t) {
    Arg rows = c.temp(type, moved.dims);
    c.call("move.copy", {c.in_as(f.w, moved)}, {rows});
    return pack_computed(c, rows, matrix);
  }
  Tensor rows(type, {k.value(), mg.value()});
  std::vector<int64_t> index(moved.dims.size(), 0);
  for (int64_t i = 0; i < rows.count(); ++i) {
    int64_t at = moved.offset.value(), left = i;
    for (size_t a = moved.dims.size(); a-- > 0; left /= moved.dims[a].value()) at += left % moved.dims[a].value() * moved.strides[a].value();
    rows.as<uint8_t>()[i] = t->as<uint8_t>()[at];
  }
  return pack_constant(c, rows, matrix);
}

// True if the operand is f32 and moves along the columns alone, or not at all.
bool along_columns(const IntegerForm& f, size_t i, const std::function<Strided(Strided)>& seen) {
  Strided v = seen(f.extra_views[i]);
  for (size_t a = 0; a + 1 < v.dims.size(); ++a)
    if (!v.dims[a].is(1)) return false;
  return f.extra_types[i] == DType::f32;
}

// A program that begins with load 0 * load s, perhaps + load b, of vectors along the columns: the kernel does
// that with the sums in registers.
void peel_scale(IntegerForm& f, const std::function<Strided(Strided)>& seen) {
  using kernels::vector::Inst;
  using kernels::vector::Reg;
  using V = kernels::vector::Op;
  if (!f.program || f.program->phases.size() != 1) return;
  auto& insts = f.program->phases[0];
  auto find_load = [&](Reg r) {
    for (auto& i : insts)
      if (i.dst == r && i.op == V::load) return static_cast<int>(i.imm);
    return -1;
  };
  // The only instruction that reads r.
  auto reader = [&](Reg r) -> Inst* {
    Inst* only = nullptr;
    for (auto& i : insts)
      if (i.a == r || i.b == r || i.c == r) {
        if (only) return nullptr;
        only = &i;
      }
    return only;
  };
  // The operand of `op` beside r, when it is a vector along the columns.
  auto vector_beside = [&](Inst* i, V op, Reg r) {
    if (!i || i->op != op || i->a == i->b) return -1;
    int load = find_load(i->a == r ? i->b : i->a);
    return load >= 1 && along_columns(f, static_cast<size_t>(load) - 1, seen) ? load - 1 : -1;
  };
  Inst* sum = nullptr;
  for (auto& i : insts)
    if (i.op == V::load && i.imm == 0) sum = &i;
  if (!sum) return;
  Inst* product = reader(sum->dst);
  f.scale = vector_beside(product, V::mul, sum->dst);
  if (f.scale < 0) return;
  Inst* last = product;
  Inst* added = reader(product->dst);
  f.bias = vector_beside(added, V::add, product->dst);
  if (f.bias >= 0) last = added;
  sum->dst = kernels::vector::kNoReg;
  Reg result = last->dst;
  if (last != product) product->dst = kernels::vector::kNoReg;
  *last = Inst{V::load, result, kernels::vector::kNoReg, kernels::vector::kNoReg, kernels::vector::kNoReg, 0};
  std::erase_if(insts, [](const Inst& i) { return i.op != V::store && i.dst == kernels::vector::kNoReg; });
  // Loads that nobody reads go; the operands that are left are numbered anew.
  std::vector<int> number(f.extras.size() + 1, -1);
  std::set<Reg> read;
  for (auto& i : insts) read.insert({i.a, i.b, i.c});
  std::erase_if(insts, [&](const Inst& i) { return (i.op == V::load || i.op == V::load_i32) && i.imm > 0 && !read.count(i.dst); });
  int next = 1;
  for (auto& i : insts)
    if ((i.op == V::load || i.op == V::load_i32) && i.imm > 0) {
      if (number[i.imm] < 0) number[i.imm] = next++;
      i.imm = static_cast<uint32_t>(number[i.imm]);
    }
  f.program->inputs = static_cast<uint16_t>(next);
  f.order.assign(static_cast<size_t>(next) - 1, 0);
  for (size_t i = 1; i < number.size(); ++i)
    if (number[i] > 0) f.order[static_cast<size_t>(number[i]) - 1] = i - 1;
  f.peeled = true;
}

bool unit_inner(const Strided& v) { return v.dims.back().is(1) || v.strides.back().is(1); }

// Outputs as the kernel sees them; those that it cannot write go through a temporary.
struct Outputs {
  std::vector<Arg> args;
  std::vector<Strided> views;
  std::vector<std::pair<Arg, int>> later;  // temporary, output
};

Outputs make_outputs(LowerContext& c, bool program, const std::function<Strided(Strided)>& seen) {
  Outputs o;
  for (int i = 0; i < static_cast<int>(c.node.outputs.size()); ++i) {
    Strided v = seen(c.out_view(i));
    if (program && !unit_inner(v)) {
      Strided dense = Strided::dense(v.dims);
      Arg temp = c.temp(c.out_type(i).dtype, v.dims);
      o.args.push_back(temp), o.views.push_back(dense);
      o.later.push_back({temp, i});
    } else {
      o.args.push_back(c.out(i)), o.views.push_back(v);
    }
  }
  return o;
}

void finish_outputs(LowerContext& c, const Outputs& o, const std::function<Strided(Strided)>& seen) {
  for (auto& [temp, i] : o.later) emit_copy(c, temp, c.out_type(i).dtype, c.out_as(i, seen(c.out_view(i))), c.out_type(i).dtype);
}

// Extras of the program: contiguous or broadcast along the last axis, else copied so.
std::vector<Arg> make_extras(LowerContext& c, const IntegerForm& f, const std::function<Strided(Strided)>& seen) {
  std::vector<Arg> out;
  std::vector<size_t> order = f.order;
  if (!f.peeled)
    for (size_t i = 0; i < f.extras.size(); ++i) order.push_back(i);
  for (size_t i : order) {
    Arg a = f.extras[i];
    Strided v = seen(f.extra_views[i]);
    if (!unit_inner(v) && !v.strides.back().is(0)) {
      Arg copy = c.temp(f.extra_types[i], v.dims);
      a.view = v;
      emit_copy(c, a, f.extra_types[i], copy, f.extra_types[i]);
      a = copy, v = Strided::dense(v.dims);
    }
    a.view = v;
    out.push_back(a);
  }
  return out;
}

// Columns [group * size, (group + 1) * size) of a view that has them.
Strided columns(Strided v, int64_t groups, int64_t group) {
  if (groups == 1 || v.dims.back().is(1)) return v;
  Dim size = floordiv(v.dims.back(), Dim(groups));
  v.offset = v.offset + Dim(group) * size * v.strides.back();
  v.dims.back() = size;
  return v;
}

// Zero points of 0 are left out: rows then need no sums, and may be read where they lie.
bool all_zero(const Tensor& t) {
  for (int64_t i = 0; i < t.count(); ++i)
    if (t.at_int(i) != 0) return false;
  return true;
}

Arg zero_point(LowerContext& c, int i, int64_t groups, int64_t group) {
  if (!has(c, i) || (c.constant_of(i) && all_zero(*c.constant_of(i)))) return {};
  Strided v = c.view(i);
  if (groups > 1 && v.dims.size() == 1) v = columns(v, groups, group);
  return c.in_as(i, v);
}

// in[5] or in[6] of the kernel.
Arg column_vector(const IntegerForm& f, int i, const std::function<Strided(Strided)>& seen, int64_t groups, int64_t group) {
  if (i < 0) return {};
  Arg a = f.extras[static_cast<size_t>(i)];
  a.view = columns(seen(f.extra_views[static_cast<size_t>(i)]), groups, group);
  return a;
}

std::vector<std::byte> encoded(const IntegerForm& f) {
  return f.program ? kernels::vector::encode(*f.program) : std::vector<std::byte>{};
}

Status lower_conv_form(LowerContext& c, IntegerForm f) {
  GE_TRY(Spatial s, conv_spatial(c.graph, c.node, f.w));
  const size_t rank = c.out_type(0).dims.size();
  const int64_t groups = ir::attr_int(c.node, "group", 1);
  auto seen = [&](Strided v) {
    while (v.dims.size() < rank) v = with_axis(v, 0);
    return channels_moved(v);
  };
  bool pointwise = true;
  for (size_t a = 0; a < s.rank(); ++a) pointwise &= s.kernel[a].is(1) && s.strides[a] == 1 && s.pad_begin[a].is(0) && s.pad_end[a].is(0);
  std::vector<Dim> ints{Dim(pointwise ? 0 : static_cast<int64_t>(s.rank())), Dim(c.type(f.w).dtype == DType::u8)};
  if (!pointwise) append(ints, s.kernel), append(ints, s.strides), append(ints, s.dilations), append(ints, s.pad_begin);
  peel_scale(f, seen);
  Outputs o = make_outputs(c, f.program.has_value(), seen);
  std::vector<Arg> extras = make_extras(c, f, seen);
  for (int64_t g = 0; g < groups; ++g) {
    Packed w = pack_filters(c, f, groups, g);
    std::vector<Arg> in{c.in_as(f.x, columns(seen(c.view(f.x)), groups, g)), w.panels, w.sums, zero_point(c, f.x_zero, 1, 0), zero_point(c, f.w_zero, groups, g),
                        column_vector(f, f.scale, seen, groups, g), column_vector(f, f.bias, seen, groups, g)}, out;
    for (Arg a : extras) a.view = columns(*a.view, groups, g), in.push_back(a);
    while (in.size() > 3 && in.back().kind == Arg::Kind::none) in.pop_back();
    for (size_t i = 0; i < o.args.size(); ++i) {
      Arg a = o.args[i];
      a.view = columns(o.views[i], groups, g);
      out.push_back(a);
    }
    c.call("cube.integer_product", std::move(in), std::move(out), ints, {}, encoded(f));
  }
  finish_outputs(c, o, seen);
  return ok();
}

Status lower_matrix_form(LowerContext& c, IntegerForm f) {
  const bool vector_a = c.type(f.x).rank() == 1, vector_b = c.type(f.w).rank() == 1;
  Strided a = c.view(f.x);
  if (vector_a) a = with_axis(a, 0);
  const Tensor* constant = c.constant_of(f.w);
  Strided b = constant ? Strided::dense(c.type(f.w).dims) : c.view(f.w);
  if (vector_b) b = with_axis(b, 1);
  Packed w = constant ? pack_constant(c, *constant, b) : pack_computed(c, c.in(f.w), b);
  const size_t rank = c.out_type(0).dims.size();
  auto seen = [&](Strided v) {
    // An operand of one element has an axis that the product of two vectors lacks.
    while (v.dims.size() > rank) v.dims.erase(v.dims.begin()), v.strides.erase(v.strides.begin());
    if (vector_b) v = with_axis(v, v.dims.size());
    if (vector_a) v = with_axis(v, v.dims.size() - 1);
    return v.dims.empty() ? with_axis(v, 0) : v;
  };
  peel_scale(f, seen);
  Outputs o = make_outputs(c, f.program.has_value(), seen);
  std::vector<Arg> in{c.in_as(f.x, a), w.panels, w.sums, zero_point(c, f.x_zero, 1, 0), zero_point(c, f.w_zero, 1, 0),
                      column_vector(f, f.scale, seen, 1, 0), column_vector(f, f.bias, seen, 1, 0)}, out;
  for (Arg& e : make_extras(c, f, seen)) in.push_back(e);
  while (in.size() > 3 && in.back().kind == Arg::Kind::none) in.pop_back();
  for (size_t i = 0; i < o.args.size(); ++i) {
    out.push_back(o.args[i]);
    out.back().view = o.views[i];
  }
  c.call("cube.integer_product", std::move(in), std::move(out), {Dim(0), Dim(c.type(f.w).dtype == DType::u8)}, {}, encoded(f));
  finish_outputs(c, o, seen);
  return ok();
}

// Input i as i32 less its zero point.
Arg centred(LowerContext& c, int i, int zero, size_t zero_axis) {
  Strided v = c.view(i);
  Arg wide = c.temp(DType::i32, v.dims);
  c.call("ref.Cast", {c.in(i)}, {wide});
  if (!has(c, zero)) return wide;
  Strided z = c.view(zero);
  Arg z32 = c.temp(DType::i32, z.dims);
  c.call("ref.Cast", {c.in(zero)}, {z32});
  // A vector of zero points runs along one axis.
  if (z.dims.size() == 1 && !z.dims[0].is(1)) {
    Strided spread{Dim(0), std::vector<Dim>(v.dims.size(), Dim(1)), std::vector<Dim>(v.dims.size(), Dim(0))};
    spread.dims[zero_axis] = z.dims[0], spread.strides[zero_axis] = Dim(1);
    z32.view = spread;
  }
  Arg out = c.temp(DType::i32, v.dims);
  c.call("ref.elementwise", {wide, z32}, {out}, {static_cast<int64_t>(kernels::reference::Ew::sub)}, {0, 0});
  return out;
}

}  // namespace

bool is_byte(DType t) { return t == DType::u8 || t == DType::i8; }

void IntegerForm::extra(LowerContext& c, int input) {
  extras.push_back(c.in(input));
  extra_views.push_back(c.view(input));
  if (extra_views.back().dims.empty()) extra_views.back() = with_axis(extra_views.back(), 0);
  extra_types.push_back(c.type(input).dtype);
}

bool takes_integer_product(const Graph& g, const Node& n, const IntegerForm& f) {
  auto present = [&](int i) { return i >= 0 && static_cast<size_t>(i) < n.inputs.size() && n.inputs[static_cast<size_t>(i)]; };
  auto type = [&](int i) -> const Type& { return g.value(n.inputs[static_cast<size_t>(i)]).type; };
  const Type &x = type(f.x), &w = type(f.w);
  if (!is_byte(x.dtype) || !is_byte(w.dtype) || !x.ranked || !w.ranked) return false;
  auto one = [&](int i) { return type(i).ranked && product(type(i).dims).is(1); };
  if (present(f.x_zero) && !one(f.x_zero)) return false;
  if (present(f.w_zero) && !one(f.w_zero)) {
    if (type(f.w_zero).rank() != 1) return false;
    if (!f.conv && w.rank() < 2) return false;
  }
  if (!f.conv) return x.rank() > 0 && w.rank() > 0;
  const int64_t groups = ir::attr_int(n, "group", 1);
  return x.rank() >= 3 && x.rank() <= 5 && groups <= kMaxGroups && (groups == 1 || w.dims[0].known());
}

Status lower_integer_product(LowerContext& c, IntegerForm f) {
  if (!takes_integer_product(c.graph, c.node, f)) return ok();
  return f.conv ? lower_conv_form(c, f) : lower_matrix_form(c, f);
}

Status reference_integer_product(LowerContext& c, const IntegerForm& f, Arg out) {
  const size_t rank_x = static_cast<size_t>(c.type(f.x).rank()), rank_w = static_cast<size_t>(c.type(f.w).rank());
  Arg x = centred(c, f.x, f.x_zero, f.conv ? 1 : rank_x > 1 ? rank_x - 2 : 0), w = centred(c, f.w, f.w_zero, f.conv ? 0 : rank_w - 1);
  if (!f.conv) {
    c.call("ref.MatMul", {x, w}, {out});
    return ok();
  }
  GE_TRY(Spatial s, conv_spatial(c.graph, c.node, f.w));
  std::vector<Dim> ints{Dim(ir::attr_int(c.node, "group", 1))};
  append(ints, s.strides), append(ints, s.dilations), append(ints, s.pad_begin);
  c.call("ref.Conv", {x, w}, {out}, std::move(ints));
  return ok();
}

}  // namespace ge::ops
