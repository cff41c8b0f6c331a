// com.microsoft's operators on images whose channels come last: NhwcConv, NhwcFusedConv, NhwcMaxPool, QLinearConv, GroupNorm
// and SkipGroupNorm. Written as ONNX's between transposes once the number of axes is known.
#include "base/text.h"
#include "ops/microsoft_activation.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

ValueId channels_first(UpgradeContext& c, ValueId v, int rank) {
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t a = 1; a < rank - 1; ++a) perm.push_back(a);
  return make_node(c, "Transpose", {v}, {{"perm", perm}});
}
std::vector<int64_t> last(int rank) {
  std::vector<int64_t> perm{0};
  for (int64_t a = 2; a < rank; ++a) perm.push_back(a);
  perm.push_back(1);
  return perm;
}
ValueId channels_last(UpgradeContext& c, ValueId v, int rank) { return make_node(c, "Transpose", {v}, {{"perm", last(rank)}}); }

// Known once it is written as others.
Status infer(InferContext& c) {
  for (size_t i = 0; i < c.out.size(); ++i) c.set_unranked(static_cast<int>(i), c.dtype(0));
  if (c.ranked(0) && c.rank(0) < 3) return c.fail("its input has no spatial axes");
  return ok();
}
Status infer_quantized(InferContext& c) {
  GE_RETURN_IF_ERROR(infer(c));
  if (c.has(7)) c.set_unranked(0, c.dtype(7));
  return ok();
}

std::optional<int> rank_of(const UpgradeContext& c, size_t i) {
  ValueId v = input_of(c, i);
  if (!v || !c.graph.value(v).type.ranked) return std::nullopt;
  return c.graph.value(v).type.rank();
}

// NhwcConv has its weights' channels last too.
Result<bool> expand_conv(UpgradeContext& c) {
  const bool fused = c.node().op == "com.microsoft.NhwcFusedConv";
  auto rank = rank_of(c, 0);
  if (!rank || rank_of(c, 1) != rank) return false;
  ir::Attrs attrs = c.node().attrs;
  attrs.erase("activation"), attrs.erase("activation_params");
  std::vector<ValueId> in{channels_first(c, input_of(c, 0), *rank), fused ? input_of(c, 1) : channels_first(c, input_of(c, 1), *rank)};
  if (ValueId bias = input_of(c, 2)) in.push_back(bias);
  ValueId y = make_node(c, "Conv", std::move(in), std::move(attrs));
  if (!fused) {
    become(c, "Transpose", {y}, {{"perm", last(*rank)}});
    return true;
  }
  y = channels_last(c, y, *rank);
  if (ValueId added = input_of(c, 3)) y = make_node(c, "Add", {y, added});
  GE_RETURN_IF_ERROR(become_activation(c, ir::attr_string(c.node(), "activation", ""), ir::attr_floats(c.node(), "activation_params"), y));
  return true;
}

Result<bool> expand_pool(UpgradeContext& c) {
  auto rank = rank_of(c, 0);
  if (!rank) return false;
  ValueId y = make_node(c, "MaxPool", {channels_first(c, input_of(c, 0), *rank)}, c.node().attrs);
  become(c, "Transpose", {y}, {{"perm", last(*rank)}});
  return true;
}

Result<bool> expand_quantized(UpgradeContext& c) {
  auto rank = rank_of(c, 0);
  if (!rank) return false;
  const ir::Node n = c.node();
  ir::Attrs attrs = n.attrs;
  attrs.erase("channels_last");
  std::vector<ValueId> in = n.inputs;
  if (!ir::attr_int(n, "channels_last", 0)) {
    become(c, "QLinearConv", std::move(in), std::move(attrs));
    return true;
  }
  in[0] = channels_first(c, in[0], *rank);
  become(c, "Transpose", {make_node(c, "QLinearConv", std::move(in), std::move(attrs))}, {{"perm", last(*rank)}});
  return true;
}

// With `skip` (x's shape, or one vector a picture) and a bias added first.
Result<bool> expand_group(UpgradeContext& c) {
  const ir::Node n = c.node();
  auto rank = rank_of(c, 0);
  if (!rank) return false;
  const bool turned = ir::attr_int(n, "channels_last", 1) != 0, skips = n.op == "com.microsoft.SkipGroupNorm";
  const int64_t groups = ir::attr_int(n, "groups", 0), act = ir::attr_int(n, "activation", 0);
  if (groups < 1 || act < 0 || act > 1) return upgrade_error(c, format("groups = {}, activation = {}", groups, act));
  ValueId x = input_of(c, 0);
  // A vector [C], or [N, C], against x.
  auto spread = [&](ValueId v, bool batch) {
    std::vector<int64_t> axes;
    for (int64_t a = batch ? 1 : 0; a < *rank; ++a)
      if (a != (turned ? *rank - 1 : 1)) axes.push_back(a);
    return make_node(c, "Unsqueeze", {v, c.constant_ints(axes)});
  };
  if (skips) {
    auto skip_rank = rank_of(c, 3);
    if (!skip_rank) return false;
    x = make_node(c, "Add", {x, *skip_rank == 2 ? spread(input_of(c, 3), true) : input_of(c, 3)});
    if (ValueId bias = input_of(c, 4)) x = make_node(c, "Add", {x, spread(bias, false)});
  }
  ValueId like = x, y = turned ? channels_first(c, x, *rank) : x;
  auto vector = [&](size_t i) { return make_node(c, "CastLike", {input_of(c, i), like}); };
  y = make_node(c, "GroupNormalization", {y, vector(1), vector(2)}, {{"num_groups", groups}, {"epsilon", ir::attr_float(n, "epsilon", static_cast<double>(1e-5f))}});
  if (turned) y = channels_last(c, y, *rank);
  if (n.outputs.size() > 1 && n.outputs[1]) c.graph.replace_uses(n.outputs[1], x);
  c.node().outputs.resize(1);
  become(c, act ? "Swish" : "Identity", {y});
  return true;
}

OpDef define(const char* name, int min_inputs, int max_inputs, Types types, std::vector<AttrDef> attrs, Result<bool> (*expand)(UpgradeContext&)) {
  OpDef d;
  d.name = name;
  d.min_inputs = min_inputs, d.max_inputs = max_inputs;
  d.attrs = std::move(attrs);
  d.unit = kernels::Unit::cube;
  d.doc = "written as ONNX's between transposes";
  d.types = types;
  d.infer = expand == expand_quantized ? infer_quantized : infer;
  d.expand = expand;
  return d;
}

const std::vector<AttrDef> kConv{{"auto_pad", "As of Conv."}, {"dilations", "As of Conv."}, {"group", "As of Conv."}, {"kernel_shape", "As of Conv."}, {"pads", "As of Conv."}, {"strides", "As of Conv."}};
const std::vector<AttrDef> kGroup{{"groups", "Groups of channels."}, {"epsilon", "Added to the variance."}, {"activation", "1: silu."}, {"channels_last", "0: they come second."}};
const Register registered[] = {
    Register(define("com.microsoft.NhwcConv", 2, 3, types::numbers, kConv, expand_conv)),
    Register([] {
      OpDef d = define("com.microsoft.NhwcFusedConv", 2, 4, types::numbers, kConv, expand_conv);
      d.attrs.push_back({"activation", "Of the result."});
      d.attrs.push_back({"activation_params", "Of the activation."});
      return d;
    }()),
    Register(define("com.microsoft.NhwcMaxPool", 1, 1, types::numbers | types::boolean, {{"kernel_shape", "As of MaxPool."}, {"pads", "As of MaxPool."}, {"strides", "As of MaxPool."}}, expand_pool)),
    Register([] {
      OpDef d = define("com.microsoft.QLinearConv", 8, 9, {DType::u8, DType::i8}, kConv, expand_quantized);
      d.attrs.push_back({"channels_last", "1: of input and output."});
      return d;
    }()),
    Register(define("com.microsoft.GroupNorm", 3, 3, types::floats, kGroup, expand_group)),
    Register([] {
      OpDef d = define("com.microsoft.SkipGroupNorm", 4, 5, types::floats, kGroup, expand_group);
      d.max_outputs = 2;
      return d;
    }()),
};

}  // namespace
}  // namespace ge::ops
