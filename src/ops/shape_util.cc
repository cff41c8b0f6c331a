#include "ops/shape_util.h"

#include "base/text.h"

namespace ge::ops {

Status require_inputs(const InferContext& c, int n) {
  for (int i = 0; i < n; ++i) {
    if (!c.has(i)) return c.fail(format("input {} is missing", i));
    if (c.type(i).kind != ir::TypeKind::tensor) return c.fail(format("input {} is not a tensor", i));
  }
  return ok();
}

bool is_index_type(DType t) { return t == DType::i32 || t == DType::i64; }

Status require_index(const InferContext& c, int i) {
  if (c.has(i) && !is_index_type(c.dtype(i))) return c.fail(format("input {} is {}, not i64 or i32", i, name(c.dtype(i))), "Convert the input with a Cast.");
  return ok();
}

Status require_one(const InferContext& c, int i) {
  if (!c.has(i) || !c.ranked(i)) return ok();
  for (auto& d : c.dims(i))
    if (d.known() && !d.is(1)) return c.fail(format("input {} has shape {}; it must be one number", i, text(c.dims(i))));
  return ok();
}

Status infer_same(InferContext& c) {
  if (!c.has(0)) return c.fail("input 0 is missing");
  if (!c.out.empty()) c.out[0] = c.type(0);
  if (auto e = c.elements(0)) c.set_elements(0, *e);
  return ok();
}

std::optional<std::vector<int64_t>> known_dims(const std::vector<Dim>& dims) {
  std::vector<int64_t> out;
  for (auto& d : dims) {
    if (!d.known()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

std::optional<KnownElements> known_elements(const InferContext& c, int i) {
  if (!c.has(i) || !c.ranked(i)) return std::nullopt;
  auto e = c.elements(i);
  auto dims = known_dims(c.dims(i));
  if (!e || !dims) return std::nullopt;
  int64_t count = 1;
  for (int64_t d : *dims) count *= d;
  if (count != static_cast<int64_t>(e->size())) return std::nullopt;
  return KnownElements{std::move(*dims), std::move(*e)};
}

std::optional<size_t> listed_rank(const InferContext& c, int i) {
  if (!c.ranked(i) || c.rank(i) != 1 || !c.dims(i)[0].known()) return std::nullopt;
  const int64_t n = c.dims(i)[0].value();
  if (n < 0 || n > kMaxRank) return std::nullopt;
  return static_cast<size_t>(n);
}

std::vector<Dim> fresh_dims(InferContext& c, size_t n) {
  std::vector<Dim> out;
  for (size_t i = 0; i < n; ++i) out.push_back(c.fresh(format("d{}", i)));
  return out;
}

Result<Dim> unify(const InferContext& c, const Dim& a, const Dim& b, std::string_view what) {
  if (a.known() && b.known() && !(a == b)) return c.fail(format("{}: {} and {} differ", what, a.text(), b.text()));
  if (a == b) return a;
  // Data decide when tasks run, and who may take memory: such sizes keep their names.
  if (c.demands && !c.graph.decided_by_data(a) && !c.graph.decided_by_data(b))
    c.graph.facts.add(a, b, format("{} ({}): {}", c.node.name, c.node.op, what));
  return a.known() ? a : b.known() ? b : c.graph.facts.normal(a);
}

int64_t lower_bound(const Graph& g, const Dim& d) {
  if (d.known()) return d.value();
  int64_t plain = d.lower_bound();
  // s = s' + min with s' >= 0.
  Dim shifted = d.substitute([&](std::string_view s) -> std::optional<Dim> {
    auto it = g.symbols.find(s);
    if (it == g.symbols.end() || it->second.min <= 0) return std::nullopt;
    return Dim::symbol(s) + Dim(it->second.min);
  });
  return std::max(plain, shifted.lower_bound());
}

Dim min_of(const Graph& g, const Dim& a, const Dim& b) {
  if (lower_bound(g, b - a) >= 0) return a;
  if (lower_bound(g, a - b) >= 0) return b;
  return min(a, b);
}
Dim max_of(const Graph& g, const Dim& a, const Dim& b) {
  if (lower_bound(g, b - a) >= 0) return b;
  if (lower_bound(g, a - b) >= 0) return a;
  return max(a, b);
}
Dim select(const Dim& condition, const Dim& a, const Dim& b) { return Dim::call(DimCall::select, {condition, a, b}); }
Dim equal(const Dim& a, const Dim& b) { return Dim::call(DimCall::equal, {a, b}); }

std::vector<Dim> as_dims(const std::vector<int64_t>& v) { return {v.begin(), v.end()}; }

Status lower_views(LowerContext& c) {
  const OpDef* def = find(c.node.op);
  for (size_t i = 0; i < c.node.outputs.size(); ++i) {
    int output = static_cast<int>(i);
    if (!c.wants(output)) continue;
    if (!c.type(0).ranked) return c.fail("the number of axes of its input is known only at run time");
    auto view = seen_through(*def, c.graph, c.node, output, c.view(0));
    if (!view) return c.fail("its parameters are known only at run time");
    c.call("move.copy", {c.in_as(0, std::move(*view))}, {c.out(output)});
  }
  return ok();
}

Status lower_flat(LowerContext& c) {
  c.call("move.reshape", {c.in(0)}, {c.out()});
  return ok();
}
Status reference_flat(LowerContext& c) {
  c.call("ref.Reshape", {c.in(0)}, {c.out()});
  return ok();
}

std::optional<Strided> view_same(const Graph&, const Node&, int output, const Strided& in) {
  if (output != 0) return std::nullopt;
  return in;
}

std::vector<int> layout_of_input(const Graph& g, const Node& n) {
  if (n.inputs.empty() || !n.inputs[0] || n.outputs.empty() || !n.outputs[0]) return {};
  auto& in = g.value(n.inputs[0]);
  auto& out = g.value(n.outputs[0]).type;
  if (!in.type.ranked || !out.ranked || in.type.rank() != out.rank()) return {};
  return in.layout;
}

namespace {

// Axes [begin, end) walk memory evenly: one axis with the innermost's stride.
bool mergeable(const Strided& v, size_t begin, size_t end) {
  Dim step;
  bool first = true;
  for (size_t i = end; i-- > begin;) {
    if (v.dims[i].is(1)) continue;
    if (!first && !(v.strides[i] == step)) return false;
    step = v.strides[i] * v.dims[i];
    first = false;
  }
  return true;
}

// Stride of the innermost axis that is not of size 1; 1 if there is none.
Dim inner_stride(const Strided& v, size_t begin, size_t end) {
  for (size_t i = end; i-- > begin;)
    if (!v.dims[i].is(1)) return v.strides[i];
  return Dim(1);
}

}  // namespace

std::optional<Strided> reshape_view(const Strided& in, const std::vector<Dim>& dims) {
  Strided out;
  out.offset = in.offset;
  out.dims = dims;
  out.strides.resize(dims.size());
  // Groups of axes whose products agree: [a,b,c] and [a*b,c] are the groups (a,b | a*b) and (c | c).
  size_t i = 0, j = 0;
  while (i < in.dims.size() || j < dims.size()) {
    size_t i1 = i, j1 = j;
    Dim p(1), q(1);
    // The shortest pair of runs with equal products, taking from both sides by turns over all pairs.
    bool found = false;
    std::vector<Dim> left{p};
    for (size_t k = i; k < in.dims.size(); ++k) left.push_back(left.back() * in.dims[k]);
    for (size_t k = j; k <= dims.size() && !found; ++k) {
      if (k > j) q = q * dims[k - 1];
      for (size_t m = 0; m < left.size() && !found; ++m) {
        if (m == 0 && k == j) continue;
        if (!(left[m] == q)) continue;
        i1 = i + m, j1 = k;
        found = true;
      }
    }
    if (!found || !mergeable(in, i, i1)) {
      // A dense view takes any sizes.
      if (!in.is_dense()) return std::nullopt;
      Strided whole = Strided::dense(dims);
      whole.offset = in.offset;
      return whole;
    }
    Dim step = inner_stride(in, i, i1);
    for (size_t k = j1; k-- > j;) {
      out.strides[k] = step;
      step = step * dims[k];
    }
    i = i1, j = j1;
  }
  return out;
}

}  // namespace ge::ops
