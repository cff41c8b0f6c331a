// Operators of ONNX's domain that were never in a release, which converters wrote all the same and ONNX Runtime knows.
#include "base/text.h"
#include "ops/rewrite.h"

namespace ge::ops {
namespace {

ValueId like(UpgradeContext& c, double v, ValueId x) { return make_node(c, "CastLike", {c.constant_float(static_cast<float>(v)), x}); }
double number_of(const UpgradeContext& c, const char* name, double otherwise) { return ir::attr_float(c.node(), name, otherwise); }

// alpha * x + beta
Status upgrade_affine(UpgradeContext& c) {
  ValueId x = input_of(c, 0), alpha = like(c, number_of(c, "alpha", 1), x), beta = like(c, number_of(c, "beta", 0), x);
  become(c, "Add", {make_node(c, "Mul", {x, alpha}), beta});
  return ok();
}

// alpha * f(beta * x)
Status upgrade_scaled(UpgradeContext& c) {
  ValueId x = input_of(c, 0), alpha = like(c, number_of(c, "alpha", 1), x), beta = like(c, number_of(c, "beta", 1), x);
  become(c, "Mul", {alpha, make_node(c, c.node().op == "ScaledTanh" ? "Tanh" : "Softplus", {make_node(c, "Mul", {beta, x})})});
  return ok();
}

// scale * x, plus the number of each channel
Status upgrade_image_scaler(UpgradeContext& c) {
  auto bias = ir::attr_floats(c.node(), "bias");
  ValueId x = input_of(c, 0), y = make_node(c, "Mul", {x, like(c, number_of(c, "scale", 1), x)});
  if (bias.empty()) {
    become(c, "Identity", {y});
    return ok();
  }
  std::vector<float> channels(bias.begin(), bias.end());
  ValueId of_channels = c.graph.add_constant(Tensor::of<float>(DType::f32, {static_cast<int64_t>(channels.size()), 1, 1}, std::span<const float>(channels)), "bias");
  become(c, "Add", {y, make_node(c, "CastLike", {of_channels, x})});
  return ok();
}

// A part of each picture [N, C, H, W]: `scale` sizes from the border on, or what lies between the borders.
Status upgrade_crop(UpgradeContext& c) {
  auto border = ir::attr_ints(c.node(), "border"), size = ir::attr_ints(c.node(), "scale");
  auto wrong = [](int64_t v) { return v < 0 || v > (int64_t{1} << 40); };
  if (border.size() != 4 || (!size.empty() && size.size() != 2) || std::any_of(border.begin(), border.end(), wrong) || std::any_of(size.begin(), size.end(), wrong))
    return upgrade_error(c, "border are not left, top, right and bottom, or scale no height and width");
  const int64_t left = border[0], top = border[1];
  std::vector<int64_t> ends = size.empty() ? std::vector<int64_t>{border[3] ? -border[3] : INT64_MAX, border[2] ? -border[2] : INT64_MAX} : std::vector<int64_t>{top + size[0], left + size[1]};
  become(c, "Slice", {input_of(c, 0), c.constant_ints({top, left}), c.constant_ints(ends), c.constant_ints({2, 3})});
  return ok();
}

Status upgrade_slice(UpgradeContext& c) {
  become(c, "Slice", std::vector<ValueId>(c.node().inputs));
  return ok();
}

OpDef define(const char* name, int min_inputs, int max_inputs, Types types, std::vector<AttrDef> attrs, Status (*upgrade)(UpgradeContext&)) {
  OpDef d = rewritten(name, min_inputs, max_inputs, types, upgrade);
  d.attrs = std::move(attrs);
  return d;
}
const std::vector<AttrDef> kTwo{{"alpha", "Factor of the result."}, {"beta", "Of x, or added."}};
const Register registered[] = {
    Register(define("Affine", 1, 1, types::numbers, kTwo, upgrade_affine)),
    Register(define("ScaledTanh", 1, 1, types::floats, kTwo, upgrade_scaled)),
    Register(define("ParametricSoftplus", 1, 1, types::floats, kTwo, upgrade_scaled)),
    Register(define("ImageScaler", 1, 1, types::numbers, {{"scale", "Of all."}, {"bias", "Of each channel."}}, upgrade_image_scaler)),
    Register(define("Crop", 1, 1, types::all, {{"border", "Left, top, right, bottom."}, {"scale", "Height, width."}}, upgrade_crop)),
    Register(define("DynamicSlice", 3, 4, types::all, {}, upgrade_slice)),
};

}  // namespace
}  // namespace ge::ops
