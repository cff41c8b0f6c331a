// Einsum. Every operand is seen in one space of labels (kernels/reference/einsum.cc). Operands are contracted
// from left to right, each step as a product of matrices; what no product fits goes to the reference.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "ops/fused_tail.h"
#include "ops/matmul_lowering.h"

namespace ge::ops {
namespace {

// A label is a letter, or for axis k from the right of "..." the number -1 - k.
struct Equation {
  std::vector<std::vector<int>> in;
  std::vector<int> out;
  std::vector<int> labels;  // of the output, then those summed over
};

Error bad(const Node& n, std::string why) {
  return node_error(code::kBadOp, n.name, format("Einsum '{}': {}", ir::attr_string(n, "equation", ""), why));
}

Result<std::vector<int>> read_term(const Node& n, std::string_view term, int ellipsis) {
  std::vector<int> out;
  bool dots = false;
  for (size_t i = 0; i < term.size(); ++i) {
    char ch = term[i];
    if (term.substr(i, 3) == "..." && !dots) {
      for (int k = ellipsis; k-- > 0;) out.push_back(-1 - k);
      dots = true;
      i += 2;
    } else if ((ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z')) {
      out.push_back(ch);
    } else {
      return bad(n, format("'{}' is no term", term));
    }
  }
  return out;
}

Result<Equation> read(const Graph& g, const Node& n) {
  std::string text = ir::attr_string(n, "equation", "");
  std::erase_if(text, [](char ch) { return ch == ' ' || ch == '\t'; });
  size_t arrow = text.find("->");
  auto terms = split(text.substr(0, arrow), ',');
  if (terms.size() != n.inputs.size()) return bad(n, format("{} terms for {} inputs", terms.size(), n.inputs.size()));
  Equation e;
  int widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    int rank = g.value(n.inputs[i]).type.rank();
    size_t dots = terms[i].find("...");
    int letters = static_cast<int>(terms[i].size()) - (dots == std::string::npos ? 0 : 3);
    int ellipsis = rank - letters;
    if (ellipsis < 0 || (ellipsis && dots == std::string::npos)) return bad(n, format("'{}' for an input of {} axes", terms[i], rank));
    widest = std::max(widest, ellipsis);
    GE_TRY(auto labels, read_term(n, terms[i], ellipsis));
    e.in.push_back(std::move(labels));
  }
  std::map<int, int> times;
  for (auto& t : e.in)
    for (int l : t) ++times[l];
  if (arrow != std::string::npos) {
    GE_TRY(e.out, read_term(n, std::string_view(text).substr(arrow + 2), widest));
  } else {
    for (int k = widest; k-- > 0;) e.out.push_back(-1 - k);
    for (auto& [l, count] : times)
      if (l > 0 && count == 1) e.out.push_back(l);
  }
  e.labels = e.out;
  for (size_t i = 0; i < e.out.size(); ++i) {
    if (!times.count(e.out[i])) return bad(n, "the output has a label that no input has");
    if (std::count(e.out.begin(), e.out.end(), e.out[i]) != 1) return bad(n, "the output has a label twice");
  }
  for (auto& [l, count] : times)
    if (std::find(e.out.begin(), e.out.end(), l) == e.out.end()) e.labels.push_back(l);
  return e;
}

// An operand in the space of labels: axes that it lacks are of size 1, repeated labels run along a diagonal.
Strided in_space(const Strided& v, const std::vector<int>& own, const std::vector<int>& labels) {
  Strided out{v.offset, {}, {}};
  for (int l : labels) {
    Dim size(1), stride(0);
    for (size_t a = 0; a < own.size(); ++a)
      if (own[a] == l) size = v.dims[a], stride = stride + v.strides[a];
    out.dims.push_back(size);
    out.strides.push_back(stride);
  }
  return out;
}

Status infer(InferContext& c) {
  for (int i = 0; i < c.inputs(); ++i) {
    if (!c.has(i) || c.dtype(i) != c.dtype(0)) return c.fail("its inputs have different types; they need one");
    if (c.ranked(i)) continue;
    c.set_unranked(0, c.dtype(0));
    return ok();
  }
  GE_TRY(auto e, read(c.graph, c.node));
  if (e.labels.size() > static_cast<size_t>(kMaxRank)) return c.fail(format("the equation has {} labels; at most {} are possible", e.labels.size(), kMaxRank));
  std::map<int, Dim> size;
  for (size_t i = 0; i < e.in.size(); ++i)
    for (size_t a = 0; a < e.in[i].size(); ++a) {
      Dim d = c.dims(static_cast<int>(i))[a];
      auto [it, fresh] = size.emplace(e.in[i][a], d);
      if (fresh) continue;
      GE_TRY(auto both, broadcast_dims(c, {it->second}, {d}));
      it->second = both[0];
    }
  std::vector<Dim> dims;
  for (int l : e.out) dims.push_back(size[l]);
  c.set(0, c.dtype(0), std::move(dims));
  return ok();
}

Status reference(LowerContext& c) {
  GE_TRY(auto e, read(c.graph, c.node));
  std::vector<Arg> in;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.in_as(i, in_space(c.view(i), e.in[static_cast<size_t>(i)], e.labels)));
  c.call("ref.Einsum", std::move(in), {c.out_as(0, in_space(c.out_view(), e.out, e.labels))});
  return ok();
}

// --- by products ---

// An operand in the space of labels.
struct Term {
  Arg arg;
  Strided view;
  const Tensor* constant = nullptr;
};

using Axes = std::vector<size_t>;

// The axes as one: its size and stride, if they lie evenly.
std::optional<std::pair<Dim, Dim>> merged(const Strided& v, const Axes& axes) {
  Dim size(1), stride(0);
  for (size_t i = axes.size(); i-- > 0;) {
    const Dim &d = v.dims[axes[i]], &s = v.strides[axes[i]];
    if (d.is(1)) continue;
    if (size.is(1)) stride = s;
    else if (!(s == stride * size)) return std::nullopt;
    size = size * d;
  }
  return std::pair(size, stride);
}

// [batch..., first, second] with the groups merged.
std::optional<Strided> as_matrices(const Strided& v, const Axes& batch, const Axes& first, const Axes& second) {
  auto a = merged(v, first), b = merged(v, second);
  if (!a || !b) return std::nullopt;
  Strided out{v.offset, {}, {}};
  for (size_t x : batch) out.dims.push_back(v.dims[x]), out.strides.push_back(v.strides[x]);
  for (auto& [size, stride] : {*a, *b}) out.dims.push_back(size), out.strides.push_back(stride);
  return out;
}

// A dense temporary for v's sizes whose axes lie in this order, seen as v's axes.
Arg ordered_temp(LowerContext& c, const Strided& v, const Axes& order, Strided& seen) {
  std::vector<Dim> dims;
  for (size_t a : order) dims.push_back(v.dims[a]);
  Strided dense = Strided::dense(dims);
  seen = {Dim(0), v.dims, std::vector<Dim>(v.dims.size(), Dim(0))};
  for (size_t i = 0; i < order.size(); ++i) seen.strides[order[i]] = dense.strides[i];
  return c.temp(DType::f32, dims);
}

Axes join(const Axes& a, const Axes& b, const Axes& d) {
  Axes out = a;
  out.insert(out.end(), b.begin(), b.end());
  out.insert(out.end(), d.begin(), d.end());
  return out;
}

// The operand as [batch..., first, second], copied where its axes do not merge.
Term matrices(LowerContext& c, Term t, const Axes& batch, const Axes& first, const Axes& second) {
  if (auto v = as_matrices(t.view, batch, first, second)) {
    t.view = *v;
    return t;
  }
  Strided seen;
  Arg temp = ordered_temp(c, t.view, join(batch, first, second), seen);
  temp.view = seen, t.arg.view = t.view;
  emit_copy(c, t.arg, DType::f32, temp, DType::f32);
  return {temp, *as_matrices(seen, batch, first, second), nullptr};
}

// Sums over the axes that neither the other operand nor the result has.
void sum_alone(LowerContext& c, Term& t, const Axes& axes) {
  if (axes.empty()) return;
  Strided less = t.view;
  for (size_t a : axes) less.dims[a] = Dim(1);
  Arg temp = c.temp(DType::f32, less.dims);
  t.arg.view = t.view;
  c.call("reduce.axes", {t.arg}, {temp}, {Dim(0)});
  t = {temp, Strided::dense(less.dims), nullptr};
}

bool one(const Term& t, size_t a) { return t.view.dims[a].is(1); }

// out = a x b over the axes of the space; those that `out` has of size 1 are summed over. False where sizes
// of a summed axis are not known to be equal.
bool contract(LowerContext& c, Term a, Term b, const Arg& out, const Strided& out_view) {
  if (a.constant && !b.constant) std::swap(a, b);
  Axes batch, m, n, k, alone_a, alone_b;
  for (size_t x = 0; x < out_view.dims.size(); ++x) {
    bool in_a = !one(a, x), in_b = !one(b, x), kept = !out_view.dims[x].is(1);
    if (in_a && in_b && !kept && !(a.view.dims[x] == b.view.dims[x])) return false;
    if (in_a && in_b) (kept ? batch : k).push_back(x);
    else if (in_a) (kept ? m : alone_a).push_back(x);
    else if (in_b) (kept ? n : alone_b).push_back(x);
  }
  if (!alone_b.empty()) b.constant = nullptr;
  sum_alone(c, a, alone_a);
  sum_alone(c, b, alone_b);
  Term left = matrices(c, a, batch, m, k);
  left.arg.view = left.view;
  Term right = matrices(c, b, batch, k, n);
  const Dim rows = left.view.dims[left.view.dims.size() - 2];
  RightSide rhs = right.constant ? constant_right_side(c, *right.constant, right.view)
                                 : computed_right_side(c, right.arg, right.view, rows);
  auto direct = as_matrices(out_view, batch, m, n);
  if (direct) {
    Arg to = out;
    to.view = *direct;
    c.call("cube.matmul", {left.arg, rhs.arg}, {to}, rhs.ints(0), {0, 0, 1});
    return true;
  }
  Strided seen;
  Arg temp = ordered_temp(c, out_view, join(batch, m, n), seen);
  Arg product = temp, from = temp, to = out;
  product.view = *as_matrices(seen, batch, m, n);
  c.call("cube.matmul", {left.arg, rhs.arg}, {product}, rhs.ints(0), {0, 0, 1});
  from.view = seen, to.view = out_view;
  emit_copy(c, from, DType::f32, to, DType::f32);
  return true;
}

// One operand: a copy, or a sum.
void single(LowerContext& c, const Equation& e) {
  Strided from = in_space(c.view(0), e.in[0], e.labels), to = in_space(c.out_view(), e.out, e.labels);
  c.call(e.labels.size() == e.out.size() ? "move.copy" : "reduce.axes", {c.in_as(0, from)}, {c.out_as(0, to)},
         e.labels.size() == e.out.size() ? std::vector<Dim>{} : std::vector<Dim>{Dim(0)});
}

Status lower(LowerContext& c) {
  GE_TRY(auto e, read(c.graph, c.node));
  DType t = c.type(0).dtype;
  bool reducible = t == DType::f32 || t == DType::f64 || t == DType::i32 || t == DType::i64;
  if (e.in.size() == 1) {
    if (reducible || e.labels.size() == e.out.size()) single(c, e);
    return ok();
  }
  if (t != DType::f32) return ok();
  auto term = [&](int i) {
    return Term{c.in(i), in_space(c.view(i), e.in[static_cast<size_t>(i)], e.labels), c.constant_of(i)};
  };
  Term left = term(0);
  for (int i = 1; i < c.inputs(); ++i) {
    Term right = term(i);
    bool last = i + 1 == c.inputs();
    Arg out = c.out();
    Strided view = in_space(c.out_view(), e.out, e.labels);
    if (!last) {
      // A label stays while a later operand or the output has it.
      std::vector<Dim> dims;
      for (size_t x = 0; x < e.labels.size(); ++x) {
        bool kept = x < e.out.size();
        for (size_t j = static_cast<size_t>(i) + 1; j < e.in.size(); ++j)
          kept |= std::find(e.in[j].begin(), e.in[j].end(), e.labels[x]) != e.in[j].end();
        dims.push_back(kept ? broadcast(left.view.dims[x], right.view.dims[x]) : Dim(1));
      }
      out = c.temp(DType::f32, dims);
      view = Strided::dense(dims);
    }
    if (!contract(c, left, right, out, view)) {
      c.calls.clear();
      return ok();
    }
    left = {out, view, nullptr};
  }
  return ok();
}

const Register r(OpDef{.name = "Einsum",
                       .min_inputs = 1,
                       .max_inputs = -1,
                       .since = 12,
                       .attrs = {{"equation", "labels of the inputs' axes, and of the output's"}},
                       .unit = kernels::Unit::cube,
                       .doc = "sums of products along labelled axes",
                       .infer = infer,
                       .reference = reference,
                       .lower = lower});

}  // namespace
}  // namespace ge::ops
