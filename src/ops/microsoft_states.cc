// com.microsoft.CausalConvWithState and LinearAttention: ONNX's under their own names, with layouts and windows of states of
// which the plain ones are known here.
#include "base/text.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

// Attributes that must be as they are by default.
Status plain(const UpgradeContext& c, std::initializer_list<std::pair<const char*, int64_t>> attrs) {
  for (auto& [name, value] : attrs)
    if (int64_t v = ir::attr_int(c.node(), name, value); v != value) return upgrade_error(c, format("{} = {} is not supported", name, v));
  if (c.node().outputs.size() > 2 && c.node().outputs[2]) return upgrade_error(c, "output 2 is not supported");
  c.node().outputs.resize(std::min<size_t>(c.node().outputs.size(), 2));
  return ok();
}

Status upgrade_conv(UpgradeContext& c) {
  GE_RETURN_IF_ERROR(plain(c, {{"ndim", 1}, {"dilation", 1}, {"state_window", 0}, {"state_update_capacity", 0}, {"state_channels_last", -1}, {"state_length", 0}, {"input_channels", 0}, {"input_channel_offset", 0}}));
  const bool last = ir::attr_int(c.node(), "channels_last", 0) != 0;
  ir::Attrs attrs = {{"activation", ir::attr_string(c.node(), "activation", "none")}};
  std::vector<ValueId> in = c.node().inputs;
  if (!last) {
    become(c, "CausalConvWithState", std::move(in), std::move(attrs));
    return ok();
  }
  auto turned = [&](ValueId v) { return make_node(c, "Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 1}}}); };
  in[0] = turned(in[0]);
  if (in.size() > 3 && in[3]) in[3] = turned(in[3]);
  auto made = c.graph.node(c.graph.insert("CausalConvWithState", std::move(in), {Type{}, Type{}}, std::move(attrs), c.id)).outputs;
  if (c.node().outputs.size() > 1 && c.node().outputs[1]) hand_over(c, 1, turned(made[1]));
  c.node().outputs.resize(1);
  become(c, "Transpose", {made[0]}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  return ok();
}

Status upgrade_attention(UpgradeContext& c) {
  GE_RETURN_IF_ERROR(plain(c, {{"state_window", 0}}));
  if (ir::attr_int(c.node(), "q_num_heads", 0) < ir::attr_int(c.node(), "kv_num_heads", 0)) return upgrade_error(c, "fewer heads of queries than of keys are not supported");
  std::vector<ValueId> in = c.node().inputs;
  become(c, "LinearAttention", std::move(in), ir::Attrs(c.node().attrs));
  return ok();
}

OpDef define(const char* name, int min_inputs, int max_inputs, int max_outputs, Status (*upgrade)(UpgradeContext&)) {
  OpDef d = rewritten(name, min_inputs, max_inputs, types::floats, upgrade);
  d.max_outputs = max_outputs;
  return d;
}
const Register r1(define("com.microsoft.CausalConvWithState", 2, 4, 3, upgrade_conv));
const Register r2(define("com.microsoft.LinearAttention", 3, 6, 2, upgrade_attention));

}  // namespace
}  // namespace ge::ops
