// com.microsoft's operators that move, select or measure: written as ONNX's on import, or once the number of axes is
// known.
#include "base/text.h"
#include "ops/rewrite.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

ValueId scalar(UpgradeContext& c, ValueId v) { return make_node(c, "Reshape", {v, c.constant_ints({})}); }

Status upgrade_expand_dims(UpgradeContext& c) {
  become(c, "Unsqueeze", {input_of(c, 0), make_node(c, "Reshape", {input_of(c, 1), c.constant_ints({1})})});
  return ok();
}

Status upgrade_range(UpgradeContext& c) {
  ValueId start = scalar(c, input_of(c, 0)), limit = scalar(c, input_of(c, 1)), step = input_of(c, 2);
  step = step ? scalar(c, step) : make_node(c, "CastLike", {number(c, 1), start});
  become(c, "Range", {start, limit, step});
  return ok();
}

// Of the same meaning under the same name, but for defaults and names of modes.
Status upgrade_same(UpgradeContext& c) {
  std::string op = c.node().op.substr(std::string("com.microsoft.").size());
  ir::Attrs attrs = c.node().attrs;
  if (op == "GridSample") {
    std::string mode = ir::attr_string(c.node(), "mode", "bilinear");
    attrs["mode"] = mode == "bilinear" ? std::string("linear") : mode == "bicubic" ? std::string("cubic") : mode;
  }
  become(c, op, std::vector<ValueId>(c.node().inputs), std::move(attrs));
  return ok();
}

// The different entries as they come; ONNX's has their places as output 1.
Status upgrade_unique(UpgradeContext& c) {
  NodeId made = c.graph.insert("Unique", {input_of(c, 0)}, {Type{}, Type{}, Type{}, Type{}}, {{"sorted", int64_t{0}}}, c.id);
  std::vector<ValueId> wanted = c.node().outputs;
  for (size_t i = 1; i < wanted.size(); ++i)
    if (wanted[i]) c.graph.set_output(made, static_cast<int>(i) + 1, wanted[i]);
  c.node().outputs.resize(1);
  become(c, "Identity", {c.graph.node(made).outputs[0]});
  return ok();
}

// Along the last axis; a complex number is two.
Status upgrade_fourier(UpgradeContext& c) {
  const bool inverse = c.node().op == "com.microsoft.Irfft";
  if (ir::attr_int(c.node(), "signal_ndim", 1) != 1 || ir::attr_int(c.node(), "onesided", 1) != 1 || ir::attr_int(c.node(), "normalized", 0) != 0)
    return upgrade_error(c, "only one axis, one-sided and without normalization");
  ValueId x = input_of(c, 0);
  if (!inverse) x = make_node(c, "Unsqueeze", {x, c.constant_ints({-1})});
  ir::Attrs attrs = {{"onesided", int64_t{1}}, {"inverse", int64_t{inverse}}};
  std::vector<ValueId> in{x, ValueId{}, number(c, -2)};
  if (inverse) become(c, "Squeeze", {make_node(c, "DFT", std::move(in), std::move(attrs)), c.constant_ints({-1})});
  else become(c, "DFT", std::move(in), std::move(attrs));
  return ok();
}

Status upgrade_sum(UpgradeContext& c) {
  ValueId wide = make_node(c, "Cast", {input_of(c, 0)}, {{"to", static_cast<int64_t>(DType::i32)}});
  std::vector<ValueId> in{wide};
  if (ir::has_attr(c.node(), "axes")) in.push_back(c.constant_ints(ir::attr_ints(c.node(), "axes")));
  int64_t keep = ir::attr_int(c.node(), "keepdims", 1);
  become(c, "ReduceSum", std::move(in), {{"keepdims", keep}});
  return ok();
}

// |a|^2 - 2 a b + |b|^2 of each row of A and row of B, never negative.
Status upgrade_distance(UpgradeContext& c) {
  std::string metric = ir::attr_string(c.node(), "metric", "sqeuclidean");
  if (metric != "euclidean" && metric != "sqeuclidean") return upgrade_error(c, format("metric '{}' is not supported", metric));
  ValueId a = input_of(c, 0), b = input_of(c, 1), axis = c.constant_ints({1});
  auto turned = [&](ValueId v) { return make_node(c, "Transpose", {v}, {{"perm", std::vector<int64_t>{1, 0}}}); };
  ValueId rows = make_node(c, "ReduceSumSquare", {a, axis}), columns = turned(make_node(c, "ReduceSumSquare", {b, axis}));
  ValueId product = make_node(c, "MatMul", {a, turned(b)});
  ValueId sum = make_node(c, "Sub", {make_node(c, "Add", {rows, columns}), make_node(c, "Add", {product, product})});
  if (metric == "sqeuclidean") become(c, "Relu", {sum});
  else become(c, "Sqrt", {make_node(c, "Relu", {sum})});
  return ok();
}

// --- UnfoldTensor: windows along an axis, their elements along a new last one ---

Status infer_unfold(InferContext& c) {
  c.set_unranked(0, c.dtype(0));
  const int64_t size = ir::attr_int(c.node, "size", 0), step = ir::attr_int(c.node, "step", 1);
  constexpr int64_t kMost = 1 << 24;
  if (size < 1 || step < 1 || size > kMost || step > kMost) return c.fail(format("windows of {} every {} are not possible: both must be 1 to {}", size, step, kMost));
  if (!c.ranked(0)) return ok();
  GE_TRY(int axis, normalize_axis(c, ir::attr_int(c.node, "dim", -1), c.rank(0)));
  const Dim& d = c.dims(0)[static_cast<size_t>(axis)];
  if (d.known() && d.value() < size) return c.fail(format("windows of {} do not fit an axis of {}", size, d.value()));
  return ok();
}

Result<bool> expand_unfold(UpgradeContext& c) {
  ValueId x = input_of(c, 0);
  const Type& type = c.graph.value(x).type;
  if (!type.ranked) return false;
  const int64_t size = ir::attr_int(c.node(), "size", 0), step = ir::attr_int(c.node(), "step", 1);
  const int rank = type.rank(), axis = wrap_axis(ir::attr_int(c.node(), "dim", -1), rank);
  auto counted = [&](ValueId limit, int64_t by) { return make_node(c, "Range", {number(c, 0), limit, number(c, by)}); };
  ValueId limit = make_node(c, "Sub", {size_of(c, x, axis), number(c, size - 1)});
  ValueId starts = make_node(c, "Unsqueeze", {counted(limit, step), c.constant_ints({1})});
  ValueId windows = make_node(c, "Gather", {x, make_node(c, "Add", {starts, counted(number(c, size), 1)})}, {{"axis", int64_t{axis}}});
  std::vector<int64_t> perm;
  for (int64_t a = 0; a <= rank; ++a)
    if (a != axis + 1) perm.push_back(a);
  perm.push_back(axis + 1);
  become(c, "Transpose", {windows}, {{"perm", perm}});
  return true;
}

struct Entry {
  const char* name;
  int min_inputs, max_inputs, max_outputs;
  Types types;
  Status (*upgrade)(UpgradeContext&);
};
constexpr Types kOrdinary = types::numbers | types::boolean | types::complex;
const Entry kTable[] = {
    {"com.microsoft.ExpandDims", 2, 2, 1, types::all, upgrade_expand_dims},
    {"com.microsoft.Range", 2, 3, 1, types::floats | Types{DType::i16, DType::i32, DType::i64}, upgrade_range},
    {"com.microsoft.Trilu", 1, 2, 1, types::all, upgrade_same},
    {"com.microsoft.Pad", 2, 3, 1, types::all, upgrade_same},
    {"com.microsoft.GatherND", 2, 2, 1, types::all, upgrade_same},
    {"com.microsoft.GridSample", 2, 2, 1, kOrdinary, upgrade_same},
    {"com.microsoft.Unique", 1, 1, 3, types::all, upgrade_unique},
    {"com.microsoft.Rfft", 1, 1, 1, types::floats, upgrade_fourier},
    {"com.microsoft.Irfft", 1, 1, 1, types::floats, upgrade_fourier},
    {"com.microsoft.ReduceSumInteger", 1, 1, 1, types::all - types::complex, upgrade_sum},
    {"com.microsoft.CDist", 2, 2, 1, types::floats, upgrade_distance},
};

[[maybe_unused]] const bool registered = [] {
  for (auto& e : kTable) {
    OpDef d = rewritten(e.name, e.min_inputs, e.max_inputs, e.types, e.upgrade);
    d.max_outputs = e.max_outputs;
    Register r(std::move(d));
  }
  Register unfold(OpDef{.name = "com.microsoft.UnfoldTensor",
                        .min_inputs = 1,
                        .max_inputs = 1,
                        .attrs = {{"dim", "The axis."}, {"size", "Of a window."}, {"step", "From window to window."}},
                        .doc = "written as Gather",
                        .infer = infer_unfold,
                        .expand = expand_unfold});
  return true;
}();

}  // namespace
}  // namespace ge::ops
