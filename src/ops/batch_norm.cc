// BatchNormalization (inference), InstanceNormalization, GroupNormalization, LRN and
// MeanVarianceNormalization (written as other operators on import).
#include <cmath>
#include <optional>

#include "base/text.h"
#include "ops/elementwise.h"
#include "ops/fused_tail.h"
#include "ops/outputs.h"
#include "ops/rewrite.h"
#include "ops/rows.h"
#include "ops/shape_util.h"
#include "ops/vector_lowering.h"

namespace ge::ops {
namespace {

using kernels::vector::ProgramBuilder;
using V = kernels::vector::Op;

double epsilon(const Node& n) { return ir::attr_float(n, "epsilon", static_cast<double>(1e-5f)); }

// Output 0 like input 0, of at least `rank` axes; inputs from 1 on are vectors of one number for each channel, or of `size`.
Status infer_like(InferContext& c, int rank, std::optional<Dim> size = std::nullopt) {
  c.out[0] = c.type(0);
  if (c.ranked(0) && c.rank(0) < rank) return c.fail(format("the input {} has too few axes", text(c.dims(0))));
  const char* of = size ? "groups" : "channels";
  if (!size && c.ranked(0) && c.rank(0) > 1) size = c.dims(0)[1];
  for (int i = 1; i < c.inputs(); ++i) {
    if (!c.has(i) || !c.ranked(i)) continue;
    if (c.rank(i) != 1) return c.fail(format("input {} {} is not a vector", i, text(c.dims(i))));
    if (size) {
      GE_TRY(size, unify(c, *size, c.dims(i)[0], format("numbers of {} and of input {}", of, i)));
    }
  }
  return ok();
}

bool all_float(const LowerContext& c) {
  for (int i = 0; i < c.inputs(); ++i)
    if (!float_lane(c.type(i).dtype)) return false;
  return true;
}

// --- batch ---

Status upgrade_batch(UpgradeContext& c) {
  if (c.version < 9 && ir::attr_int(c.node(), "spatial", 1) == 0)
    return upgrade_error(c, "spatial = 0 (statistics for each element) is not supported");
  c.node().attrs.erase("spatial");
  return with_first_output(c);
}

bool is_training(const Node& n) { return ir::attr_int(n, "training_mode", 0) != 0; }

// Before opset 14 the outputs beside y say that it is training, with other outputs than those of today.
Status infer_batch(InferContext& c) {
  for (int i = 1; i < static_cast<int>(c.out.size()); ++i) {
    if (!c.wants(i)) continue;
    if (!is_training(c.node) || i > 2) return c.fail("outputs of training are not supported here", "export the model for inference");
    c.out[static_cast<size_t>(i)] = c.type(i + 2);
  }
  return infer_like(c, 1);
}

Status reference_batch(LowerContext& c) {
  if (is_training(c.node)) {
    c.call("ref.BatchStatistics", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}, {c.out(), c.out(1), c.out(2)}, {},
           {epsilon(c.node), ir::attr_float(c.node, "momentum", static_cast<double>(0.9f))});
    return ok();
  }
  c.call("ref.BatchNormalization", {c.in(0), c.in(1), c.in(2), c.in(3), c.in(4)}, {c.out()}, {}, {epsilon(c.node)});
  return ok();
}

// x * a + b with a and b computed here.
void batch_of_constants(LowerContext& c, int rank) {
  const Tensor &scale = *c.constant_of(1), &bias = *c.constant_of(2), &mean = *c.constant_of(3), &variance = *c.constant_of(4);
  Tensor a(DType::f32, scale.dims()), b(DType::f32, scale.dims());
  for (int64_t i = 0; i < scale.count(); ++i) {
    double factor = scale.at(i) / std::sqrt(variance.at(i) + epsilon(c.node));
    a.as<float>()[i] = static_cast<float>(factor);
    b.as<float>()[i] = static_cast<float>(bias.at(i) - mean.at(i) * factor);
  }
  Strided view = along_channels(Strided::dense({Dim(scale.count())}), rank);
  Arg wa = c.weight(std::move(a)), wb = c.weight(std::move(b));
  wa.view = wb.view = view;
  ProgramBuilder p;
  p.store(0, p.op(V::add, p.op(V::mul, p.load(0), p.load(1)), p.load(2)));
  auto program = p.finish();
  GE_CHECK(program.ok(), "the program of a batch normalization");
  emit_vector_program(c, *program, 0, {c.in(0), wa, wb}, {c.out()});
}

Status lower_batch(LowerContext& c) {
  int rank = c.type(0).rank();
  if (!all_float(c) || is_training(c.node)) return ok();
  bool constants = true;
  for (int i = 1; i < 5 && constants; ++i) constants = c.constant_of(i) != nullptr && c.constant_of(i)->count() == c.constant_of(1)->count();
  if (constants) {
    batch_of_constants(c, rank);
    return ok();
  }
  std::vector<Arg> in{c.in(0)};
  for (int i = 1; i < 5; ++i) in.push_back(c.in_as(i, along_channels(c.view(i), rank)));
  ProgramBuilder p;
  auto inverse = p.op(V::rsqrt, p.op(V::add, p.load(4), static_cast<float>(epsilon(c.node))));
  auto x = p.op(V::mul, p.op(V::sub, p.load(0), p.load(3)), p.op(V::mul, inverse, p.load(1)));
  p.store(0, p.op(V::add, x, p.load(2)));
  GE_TRY(auto program, p.finish());
  emit_vector_program(c, program, 0, std::move(in), {c.out()});
  return ok();
}

// --- instance and group ---

Status infer_instance(InferContext& c) { return infer_like(c, 3); }

Status reference_instance(LowerContext& c) {
  c.call("ref.GroupNormalization", {c.in(0), c.in(1), c.in(2)}, {c.out()}, {c.type(0).dims[1], Dim(0)}, {epsilon(c.node)});
  return ok();
}

Status lower_instance(LowerContext& c) {
  if (!all_float(c)) return ok();
  int rank = c.type(0).rank();
  ProgramBuilder p;
  auto x = p.load(0);
  x = p.op(V::sub, x, p.reduce(V::row_mean, x));
  auto variance = p.reduce(V::row_mean, p.op(V::square, x));
  auto inverse = p.op(V::rsqrt, p.op(V::add, variance, static_cast<float>(epsilon(c.node))));
  p.store(0, p.op(V::add, p.op(V::mul, p.op(V::mul, x, inverse), p.load(1)), p.load(2)));
  GE_TRY(auto program, p.finish());
  emit_row_program(c, program, c.view(0), c.out_view(0), 2, rank - 2,
                   {c.in_as(1, along_channels(c.view(1), rank)), c.in_as(2, along_channels(c.view(2), rank))});
  return ok();
}

// Before opset 21 scale and bias had one number for each group.
Status upgrade_group(UpgradeContext& c) {
  if (c.version < 21) c.node().attrs["per_group"] = int64_t{1};
  return ok();
}

int64_t groups_of(const Node& n) { return ir::attr_int(n, "num_groups", 1); }
bool per_group(const Node& n) { return ir::attr_int(n, "per_group", 0) != 0; }

Status infer_group(InferContext& c) {
  int64_t groups = groups_of(c.node);
  if (groups < 1) return c.fail(format("attribute num_groups is {}; it must be 1 or more", groups));
  if (c.ranked(0) && c.rank(0) > 1 && c.dims(0)[1].known() && c.dims(0)[1].value() % groups)
    return c.fail(format("{} channels do not divide into {} groups", c.dims(0)[1].text(), groups));
  return per_group(c.node) ? infer_like(c, 2, Dim(groups)) : infer_like(c, 2);
}

Status reference_group(LowerContext& c) {
  c.call("ref.GroupNormalization", {c.in(0), c.in(1), c.in(2)}, {c.out()}, {groups_of(c.node), per_group(c.node)}, {epsilon(c.node)});
  return ok();
}

// Axis 1 as [groups, channels of a group].
Strided split_channels(Strided v, int64_t groups) {
  Dim size = floordiv(v.dims[1], Dim(groups)), stride = v.strides[1];
  v.dims[1] = Dim(groups), v.strides[1] = stride * size;
  v.dims.insert(v.dims.begin() + 2, size);
  v.strides.insert(v.strides.begin() + 2, stride);
  return v;
}

// Statistics of each group in one program, then the affine form in another.
Status lower_group(LowerContext& c) {
  if (!all_float(c)) return ok();
  int64_t groups = groups_of(c.node);
  DType t = c.type(0).dtype;
  Strided x = split_channels(c.view(0), groups), y = split_channels(c.out_view(), groups);
  int row = static_cast<int>(x.dims.size()) - 2;
  Arg from = c.in_as(0, x), to = c.out_as(0, y);
  bool copy_in = !contiguous_row(x, row), copy_out = !contiguous_row(y, row);
  if (copy_in) {
    from = c.temp(t, x.dims);
    emit_copy(c, c.in_as(0, x), t, from, t);
  }
  if (copy_out) to = c.temp(t, x.dims);
  std::vector<Dim> dims(x.dims.begin(), x.dims.begin() + 2);
  dims.resize(x.dims.size(), Dim(1));
  Arg mean = c.temp(DType::f32, dims), inverse = c.temp(DType::f32, dims);

  ProgramBuilder a;
  auto m = a.reduce(V::row_mean, a.load(0));
  auto variance = a.reduce(V::row_mean, a.op(V::square, a.op(V::sub, a.load(0), m)));
  a.store(0, m);
  a.store(1, a.op(V::rsqrt, a.op(V::add, variance, static_cast<float>(epsilon(c.node)))));
  GE_TRY(auto statistics, a.finish());
  emit_vector_program(c, statistics, row, {from}, {mean, inverse});

  auto affine = [&](int i) {
    Strided v = c.view(i);
    if (per_group(c.node)) return c.in_as(i, with_axes(v, 1, static_cast<size_t>(row)));
    Dim size = floordiv(v.dims[0], Dim(groups));
    Strided split{v.offset, {Dim(groups), size}, {v.strides[0] * size, v.strides[0]}};
    return c.in_as(i, with_axes(split, 2, static_cast<size_t>(row) - 1));
  };
  ProgramBuilder b;
  auto z = b.op(V::mul, b.op(V::sub, b.load(0), b.load(1)), b.load(2));
  b.store(0, b.op(V::add, b.op(V::mul, z, b.load(3)), b.load(4)));
  GE_TRY(auto apply, b.finish());
  emit_vector_program(c, apply, 0, {from, mean, inverse, affine(1), affine(2)}, {to});
  if (copy_out) emit_copy(c, to, t, c.out_as(0, y), t);
  return ok();
}

// --- lrn ---

Status infer_lrn(InferContext& c) {
  if (ir::attr_int(c.node, "size", 0) < 1) return c.fail("attribute size must be positive");
  return infer_like(c, 2);
}

void emit_lrn(LowerContext& c, const char* kernel) {
  c.call(kernel, {c.in(0)}, {c.out()}, {ir::attr_int(c.node, "size", 1)},
         {ir::attr_float(c.node, "alpha", static_cast<double>(1e-4f)), ir::attr_float(c.node, "beta", 0.75), ir::attr_float(c.node, "bias", 1)});
}

Status reference_lrn(LowerContext& c) {
  emit_lrn(c, "ref.LRN");
  return ok();
}

Status lower_lrn(LowerContext& c) {
  if (c.type(0).dtype == DType::f32) emit_lrn(c, "lrn");
  return ok();
}

// --- mean and variance: (x - mean) / (sqrt(mean(x^2) - mean^2) + 1e-9) ---

Status upgrade_mvn(UpgradeContext& c) {
  ValueId x = input_of(c, 0);
  auto axes = ir::attr_ints(c.node(), "axes");
  if (axes.empty()) axes = {0, 2, 3};
  ValueId over = c.constant_ints(axes);
  ValueId mean = make_node(c, "ReduceMean", {x, over});
  ValueId square = make_node(c, "ReduceMean", {make_node(c, "Mul", {x, x}), over});
  ValueId variance = make_node(c, "Sub", {square, make_node(c, "Mul", {mean, mean})});
  ValueId epsilon_like = make_node(c, "CastLike", {c.constant_float(1e-9f), x});
  ValueId deviation = make_node(c, "Add", {make_node(c, "Sqrt", {variance}), epsilon_like});
  become(c, "Div", {make_node(c, "Sub", {x, mean}), deviation});
  return ok();
}

OpDef define(const char* name, int inputs, Status (*infer)(InferContext&), Status (*reference)(LowerContext&),
             Status (*lower)(LowerContext&), std::vector<AttrDef> attrs) {
  OpDef d;
  d.name = name;
  d.min_inputs = d.max_inputs = inputs;
  d.types = types::floats;
  d.attrs = std::move(attrs);
  d.doc = "normalization";
  d.infer = infer;
  d.reference = reference;
  d.lower = lower;
  return d;
}

const Register r1([] {
  OpDef d = define("BatchNormalization", 5, infer_batch, reference_batch, lower_batch,
                   {{"epsilon", "added to the variance"}, {"momentum", "share of the old running mean and variance"}, {"training_mode", "1: by the batch's own mean and variance"}});
  d.since = 7;
  d.max_outputs = 5;
  d.upgrade = upgrade_batch;
  d.layout = inherit_layout;
  return d;
}());
const Register r2(define("InstanceNormalization", 3, infer_instance, reference_instance, lower_instance, {{"epsilon", "added to the variance"}}));
const Register r3([] {
  OpDef d = define("GroupNormalization", 3, infer_group, reference_group, lower_group,
                   {{"epsilon", "added to the variance"}, {"num_groups", "groups of channels"}, {"stash_type", "type of the arithmetic"}, {"per_group", "1: scale and bias of each group (opset 18)"}});
  d.since = 18;
  d.upgrade = upgrade_group;
  return d;
}());
const Register r4([] {
  OpDef d = define("LRN", 1, infer_lrn, reference_lrn, lower_lrn,
                   {{"size", "channels of a window"}, {"alpha", "scale"}, {"beta", "exponent"}, {"bias", "addend"}});
  d.layout = inherit_layout;
  return d;
}());
const Register r5([] {
  OpDef d = define("MeanVarianceNormalization", 1, [](InferContext& c) -> Status { c.out[0] = c.type(0); return ok(); }, nullptr, nullptr, {{"axes", "over which"}});
  d.since = 9;
  d.upgrade = upgrade_mvn;
  return d;
}());

}  // namespace
}  // namespace ge::ops
