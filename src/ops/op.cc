#include "ops/op.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {
std::map<std::string, OpDef, std::less<>>& table() {
  static std::map<std::string, OpDef, std::less<>> t;
  return t;
}
}  // namespace

Register::Register(OpDef def) {
  std::string n = def.name;
  bool fresh = table().emplace(n, std::move(def)).second;
  GE_CHECK(fresh, "op registered twice: " + n);
}

const OpDef* find(std::string_view name) {
  auto it = table().find(name);
  return it == table().end() ? nullptr : &it->second;
}

std::vector<const OpDef*> all() {
  std::vector<const OpDef*> out;
  for (auto& [n, d] : table()) out.push_back(&d);
  return out;
}

const Tensor* InferContext::constant(int i) const {
  return has(i) ? graph.value(node.inputs[static_cast<size_t>(i)]).constant.get() : nullptr;
}

std::optional<std::vector<Dim>> InferContext::elements(int i) const {
  return has(i) ? graph.elements(node.inputs[static_cast<size_t>(i)]) : std::nullopt;
}

std::optional<std::vector<int64_t>> InferContext::ints(int i) const {
  auto e = elements(i);
  if (!e) return std::nullopt;
  std::vector<int64_t> numbers;
  for (auto& d : *e) {
    if (!d.known()) return std::nullopt;
    numbers.push_back(d.value());
  }
  return numbers;
}

std::string own_symbol(const Graph& g, const Node& n, std::string_view what) {
  // What a size's text cannot hold is written as :XX, so that no two names become one.
  std::string symbol = g.scope;
  for (char c : format("{}.{}", n.name, what)) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/';
    symbol += plain ? std::string(1, c) : format(":{:02x}", static_cast<int>(static_cast<unsigned char>(c)));
  }
  return symbol;
}

Dim InferContext::fresh(std::string_view what) {
  std::string symbol = own_symbol(graph, node, what);
  graph.symbols.emplace(symbol, ir::SymbolInfo{.data = true});
  return Dim::symbol(symbol);
}

Error InferContext::fail(std::string message, std::string fix) const {
  return node_error(code::kBadOp, node.name, format("{}: {}", node.op, message), "", std::move(fix));
}

Result<int> normalize_axis(const InferContext& c, int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return c.fail(format("axis {} is outside -{}..{}", axis, rank, rank - 1));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

namespace {

// d is min(n, whole) for a number n of 2 or more.
bool is_cut_off(const Dim& d, const Dim& whole) {
  auto* atom = d.as_call();
  if (!atom || atom->call != DimCall::min) return false;
  auto &a = atom->args[0], &b = atom->args[1];
  return (a.known() && a.value() >= 2 && b == whole) || (b.known() && b.value() >= 2 && a == whole);
}

}  // namespace

Result<std::vector<Dim>> broadcast_dims(const InferContext& c, const std::vector<Dim>& a,
                                        const std::vector<Dim>& b) {
  size_t n = std::max(a.size(), b.size());
  std::vector<Dim> out(n);
  for (size_t i = 0; i < n; ++i) {
    Dim x = i + a.size() >= n ? a[i + a.size() - n] : Dim(1);
    Dim y = i + b.size() >= n ? b[i + b.size() - n] : Dim(1);
    if (x.known() && y.known() && !x.is(1) && !y.is(1) && !(x == y))
      return c.fail(format("shapes {} and {} do not broadcast (axis {}: {} against {})", text(a), text(b), i,
                           x.text(), y.text()));
    if (is_cut_off(x, y)) std::swap(x, y);
    // Where neither can be 1, or both are, they must be equal.
    const bool equal = !(x == y) && (is_cut_off(y, x) || (lower_bound(c.graph, x) >= 2 && lower_bound(c.graph, y) >= 2));
    out[i] = broadcast(x, y);
    if (equal) {
      GE_TRY(out[i], unify(c, x, y, format("axis {}", i)));
    }
  }
  return out;
}

void UpgradeContext::attr_to_input(std::string_view attr, int index) {
  auto it = node().attrs.find(attr);
  if (it == node().attrs.end()) return;
  ValueId v;
  if (auto* ints = std::get_if<std::vector<int64_t>>(&it->second)) v = constant_ints(*ints);
  else if (auto* i = std::get_if<int64_t>(&it->second)) v = graph.add_constant(Tensor::scalar_i64(*i), attr);
  else if (auto* f = std::get_if<double>(&it->second)) v = constant_float(static_cast<float>(*f));
  else if (auto* fs = std::get_if<std::vector<double>>(&it->second)) {
    std::vector<float> values(fs->begin(), fs->end());
    v = graph.add_constant(Tensor::of<float>(DType::f32, {static_cast<int64_t>(values.size())}, std::span<const float>(values)), attr);
  } else return;
  while (node().inputs.size() <= static_cast<size_t>(index)) graph.add_node_input(id, {});
  graph.set_input(id, index, v);
  node().attrs.erase(node().attrs.find(attr));
}

ValueId UpgradeContext::constant_ints(const std::vector<int64_t>& v) {
  return graph.add_constant(Tensor::vector_i64(v));
}
ValueId UpgradeContext::constant_float(float v) { return graph.add_constant(Tensor::scalar_f32(v)); }

Strided Strided::dense(std::vector<Dim> dims) {
  Strided s;
  s.strides.resize(dims.size());
  Dim step(1);
  for (size_t i = dims.size(); i-- > 0;) {
    s.strides[i] = step;
    step = step * dims[i];
  }
  s.dims = std::move(dims);
  return s;
}

bool Strided::is_dense() const {
  Dim step(1);
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i].is(1)) continue;
    if (!(strides[i] == step)) return false;
    step = step * dims[i];
  }
  return true;
}

const Tensor* LowerContext::constant_of(int i) const {
  return has(i) ? graph.value(input(i)).constant.get() : nullptr;
}

Arg LowerContext::in(int i) const {
  if (!has(i)) return {};
  return {Arg::Kind::value, input(i).v, std::nullopt};
}
Arg LowerContext::in_as(int i, Strided view) const {
  Arg a = in(i);
  a.view = std::move(view);
  return a;
}
Arg LowerContext::out(int i) const {
  if (!wants(i)) return {};
  return {Arg::Kind::value, node.outputs[static_cast<size_t>(i)].v, std::nullopt};
}
Arg LowerContext::out_as(int i, Strided view) const {
  Arg a = out(i);
  a.view = std::move(view);
  return a;
}
Arg LowerContext::weight(Tensor t) {
  constants.push_back(std::move(t));
  return {Arg::Kind::constant, static_cast<int32_t>(constants.size()) - 1, std::nullopt};
}
Arg LowerContext::temp(DType t, std::vector<Dim> dims) {
  temps.push_back({t, std::move(dims)});
  return {Arg::Kind::temp, static_cast<int32_t>(temps.size()) - 1, std::nullopt};
}
void LowerContext::call(std::string kernel, std::vector<Arg> ins, std::vector<Arg> outs, std::vector<Dim> ints,
                        std::vector<double> floats, std::vector<std::byte> blob) {
  calls.push_back({std::move(kernel), std::move(ins), std::move(outs), std::move(ints), std::move(floats),
                   std::move(blob)});
}
void LowerContext::size(const Dim& symbol, Arg from, int element) {
  GE_CHECK(!symbol.symbol_name().empty(), "a size from data is no symbol: " + symbol.text());
  sizes.push_back({std::string(symbol.symbol_name()), std::move(from), element});
}
Dim LowerContext::own(std::string_view what) const { return Dim::symbol(own_symbol(graph, node, what)); }
Error LowerContext::fail(std::string message, std::string fix) const {
  return node_error(code::kUnsupportedOp, node.name, format("{}: {}", node.op, message), "", std::move(fix));
}

OpDef executor_op(const char* name, int min_inputs, int max_inputs, int since, const char* doc, Status (*infer)(InferContext&), Status (*lower)(LowerContext&)) {
  OpDef d;
  d.name = name;
  d.min_inputs = min_inputs;
  d.max_inputs = max_inputs;
  d.since = since;
  d.unit = kernels::Unit::host;
  d.doc = doc;
  d.infer = infer;
  d.reference = lower;
  d.executor = true;
  d.foldable = false;
  return d;
}

std::optional<Strided> seen_through(const OpDef& def, const Graph& g, const Node& n, int output, const Strided& in) {
  ValueId from = n.inputs.empty() ? ValueId{} : n.inputs[0], to = n.outputs[static_cast<size_t>(output)];
  if (!def.view || !from || !g.value(from).type.ranked || in.dims.size() != g.value(from).type.dims.size()) return std::nullopt;
  if (to && !g.value(to).type.ranked) return std::nullopt;
  return def.view(g, n, output, in);
}

std::optional<Strided> placed_in(const OpDef& def, const Graph& g, const Node& n, int input, const Strided& out) {
  ValueId from = n.inputs[static_cast<size_t>(input)], to = n.outputs[0];
  if (!def.place || !from || !to || !g.value(from).type.ranked || !g.value(to).type.ranked || out.dims.size() != g.value(to).type.dims.size()) return std::nullopt;
  return def.place(g, n, input, out);
}

std::optional<size_t> missing_input(const OpDef& def, const Node& n) {
  for (size_t i = 0; i < static_cast<size_t>(def.min_inputs); ++i)
    if (!(def.optional >> i & 1) && (i >= n.inputs.size() || !n.inputs[i])) return i;
  return std::nullopt;
}

RowRange rows_read(const RowWindow& w, const RowRange& out, int64_t height) {
  auto down = [&](int64_t x) { return x >= 0 ? x / w.scale : -((-x + w.scale - 1) / w.scale); };
  const int64_t begin = out.begin * w.stride - w.begin, last = (out.end - 1) * w.stride - w.begin + w.extent - 1;
  RowRange in{std::max<int64_t>(0, down(begin + w.scale - 1)), std::min(height, down(last) + 1)};
  return in.count() > 0 ? in : RowRange{};
}

std::optional<RowWindow> broadcast_rows(const Graph& g, const Node& n, int input, int axis) {
  auto &from = g.value(n.inputs[static_cast<size_t>(input)]).type, &to = g.value(n.outputs[0]).type;
  if (!from.ranked || !to.ranked || from.rank() > to.rank()) return std::nullopt;
  const int at = axis - (to.rank() - from.rank());
  if (at < 0 || (from.dims[static_cast<size_t>(at)].is(1) && !to.dims[static_cast<size_t>(axis)].is(1))) return RowWindow{.whole = true};
  if (from.dims[static_cast<size_t>(at)] == to.dims[static_cast<size_t>(axis)]) return RowWindow{};
  return std::nullopt;
}

std::optional<RowWindow> row_window(const Graph& g, const Node& n, int input, int axis) {
  auto* def = find(n.op);
  if (!def) return std::nullopt;
  if (def->window) return def->window(g, n, input, axis);
  return def->vector_kind == VectorKind::elementwise ? broadcast_rows(g, n, input, axis) : std::nullopt;
}

}  // namespace ge::ops
