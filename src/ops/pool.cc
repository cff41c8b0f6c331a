// MaxPool, AveragePool, LpPool and their global forms.
#include "base/text.h"
#include "ops/fused_tail.h"
#include "ops/outputs.h"
#include "ops/spatial.h"

namespace ge::ops {
namespace {

enum Kind : int64_t { kMax = 0, kAverage = 1, kAverageWithPad = 2, kLp = 3 };

bool is_global(const Node& n) { return n.op.starts_with("Global"); }

Kind kind_of(const Node& n) {
  if (n.op.ends_with("MaxPool")) return kMax;
  if (n.op.ends_with("LpPool")) return kLp;
  return !is_global(n) && ir::attr_int(n, "count_include_pad", 0) != 0 ? kAverageWithPad : kAverage;
}

Result<Spatial> spatial_of(const Graph& g, const Node& n) {
  auto& x = g.value(n.inputs[0]).type.dims;
  std::vector<Dim> in(x.begin() + 2, x.end());
  if (!is_global(n)) return read_spatial(n, in);
  Spatial s;
  s.kernel = in;
  s.out.assign(in.size(), Dim(1));
  s.pad_begin = s.pad_end = std::vector<Dim>(in.size());
  s.strides = s.dilations = std::vector<int64_t>(in.size(), 1);
  return s;
}

Status infer(InferContext& c) {
  if (!c.ranked(0)) {
    c.set_unranked(0, c.dtype(0));
    c.set_unranked(1, DType::i64);
    return ok();
  }
  if (c.rank(0) < 3) return c.fail(format("the input {} has no spatial axes", text(c.dims(0))));
  GE_TRY(auto s, spatial_of(c.graph, c.node));
  std::vector<Dim> dims{c.dims(0)[0], c.dims(0)[1]};
  append(dims, s.out);
  c.set(0, c.dtype(0), dims);
  c.set(1, DType::i64, dims);
  return ok();
}

Status reference(LowerContext& c) {
  GE_TRY(auto s, spatial_of(c.graph, c.node));
  std::vector<Dim> ints{Dim(kind_of(c.node)), Dim(ir::attr_int(c.node, "storage_order", 0)), Dim(ir::attr_int(c.node, "p", 2))};
  append(ints, s.kernel);
  append(ints, s.strides);
  append(ints, s.dilations);
  append(ints, s.pad_begin);
  append(ints, s.pad_end);
  std::vector<Arg> out{c.out()};
  if (c.wants(1)) out.push_back(c.out(1));
  c.call("ref.Pool", {c.in(0)}, std::move(out), std::move(ints));
  return ok();
}

Status lower(LowerContext& c) {
  Kind kind = kind_of(c.node);
  DType t = c.type(0).dtype;
  int rank = c.type(0).rank();
  // Bytes: the largest of a window needs no float.
  bool bytes = (t == DType::u8 || t == DType::i8) && c.node.op == "MaxPool" && !c.wants(1) && rank <= 5;
  if (kind == kLp || (!cube_float(t) && !bytes) || (rank > 5 && !is_global(c.node))) return ok();
  Strided view;
  Arg x = bytes ? c.in(0) : input_as_f32(c, 0, view);
  auto& dims = c.out_type(0).dims;
  Arg y = t == DType::f32 || bytes ? c.out() : c.temp(DType::f32, dims);
  if (is_global(c.node)) {
    c.call("vector.global_pool", {x}, {y}, {Dim(kind)});
  } else {
    GE_TRY(auto s, spatial_of(c.graph, c.node));
    std::vector<Dim> ints{Dim(rank - 2), Dim(kind)};
    append(ints, s.kernel);
    append(ints, s.strides);
    append(ints, s.dilations);
    append(ints, s.pad_begin);
    append(ints, s.pad_end);
    ints.push_back(Dim(ir::attr_int(c.node, "storage_order", 0)));
    std::vector<Arg> out{y};
    if (c.wants(1)) out.push_back(c.out(1));
    c.call(bytes ? "vector.max_bytes" : "vector.pool", {x}, std::move(out), std::move(ints));
  }
  if (t != DType::f32 && !bytes) emit_copy(c, y, DType::f32, c.out(), t);
  return ok();
}

std::optional<RowWindow> rows(const Graph& g, const Node& n, int, int axis) {
  // Indices count in the whole image; an average knows which of its windows reaches beyond the padding.
  if (n.outputs.size() > 1 || (ir::attr_int(n, "ceil_mode", 0) != 0 && kind_of(n) != kMax)) return std::nullopt;
  auto s = spatial_of(g, n);
  return s.ok() ? window_rows(*s, axis) : std::nullopt;
}

void cut_rows(const Graph& g, const Node& from, Node& to, int axis, const RowRange& out, const RowRange& in) {
  if (auto s = spatial_of(g, from); s.ok()) cut_window(*s, to, axis, out, in);
}

OpDef define(const char* name, bool global, Types types, std::initializer_list<AttrDef> more) {
  OpDef d;
  d.name = name;
  d.min_inputs = d.max_inputs = 1;
  d.max_outputs = d.name == "MaxPool" ? 2 : 1;
  d.types = types;
  d.attrs = more;
  if (!global)
    for (auto* a : {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"}) d.attrs.push_back({a, "of the window"});
  d.doc = global ? "pooling over all spatial axes" : "pooling over windows";
  d.infer = infer;
  d.upgrade = with_first_output;
  d.reference = reference;
  d.lower = lower;
  d.layout = channels_last_layout;
  if (!global) d.window = rows, d.cut_rows = cut_rows;
  return d;
}

const Register r1(define("MaxPool", false, types::numbers | types::boolean, {{"storage_order", "1: indices count column-major"}}));
const Register r2(define("AveragePool", false, types::floats, {{"count_include_pad", "1: padding counts in the average"}}));
const Register r3(define("LpPool", false, types::floats, {{"p", "of the norm"}}));
const Register r4(define("GlobalMaxPool", true, types::numbers | types::boolean, {}));
const Register r5(define("GlobalAveragePool", true, types::floats, {}));
const Register r6(define("GlobalLpPool", true, types::floats, {{"p", "of the norm"}}));

}  // namespace
}  // namespace ge::ops
