#include "import/opset6.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"

namespace ge::onnx {
namespace {

bool is_one_of(std::string_view s, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), s) != list.end();
}

std::optional<AttributeProto> take(NodeProto& n, std::string_view key) {
  for (size_t i = 0; i < n.attributes.size(); ++i)
    if (n.attributes[i].name == key) {
      AttributeProto a = std::move(n.attributes[i]);
      n.attributes.erase(n.attributes.begin() + static_cast<std::ptrdiff_t>(i));
      return a;
    }
  return std::nullopt;
}

// Operators of opset 1 whose next version came after opset 6.
bool is_unchanged_until_6(std::string_view op) {
  return is_one_of(op, {"And", "ArgMax", "ArgMin", "AveragePool", "Conv", "ConvTranspose", "DepthToSpace", "Equal", "Flatten",
                        "Gather", "GlobalAveragePool", "GlobalMaxPool", "Greater", "Hardmax", "Identity", "LRN", "Less",
                        "LogSoftmax", "LpNormalization", "MatMul", "MaxPool", "Not", "Or", "Pow", "RandomNormal",
                        "RandomNormalLike", "RandomUniform", "RandomUniformLike", "ReduceL1", "ReduceL2", "ReduceLogSum",
                        "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
                        "ReduceSumSquare", "Shape", "Size", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth",
                        "Squeeze", "Transpose", "Unsqueeze", "Xor"});
}

class Raiser {
 public:
  explicit Raiser(GraphProto& g) : g_(g) {}

  Status run() {
    for (auto& v : g_.value_info) learn(v);
    for (auto& v : g_.outputs) learn(v);
    for (auto& v : g_.inputs) learn(v);
    for (auto& t : g_.initializers) ranks_[t.name] = t.dims.size();
    std::vector<NodeProto> nodes = std::move(g_.nodes);
    g_.nodes.clear();
    for (auto& n : nodes) {
      for (auto& a : n.attributes)
        for (auto& inner : a.graphs) GE_RETURN_IF_ERROR(raise_opset6(inner));
      if (n.domain.empty() && n.opset < 6 && is_unchanged_until_6(n.op_type)) n.opset = 6;
      if (n.domain.empty() && n.opset == 6) {
        GE_RETURN_IF_ERROR(raise(n));
        n.opset = 7;
      }
      learn(n);
      g_.nodes.push_back(std::move(n));
    }
    return ok();
  }

 private:
  void learn(const ValueInfoProto& v) {
    if (v.type.kind == TypeProto::Kind::tensor && v.type.has_shape)
      ranks_[v.name] = v.type.dims.size();
  }
  // Ranks that follow from the node alone; enough for what exporters of that time wrote.
  void learn(const NodeProto& n) {
    if (n.outputs.empty() || ranks_.count(n.outputs[0])) return;
    if (n.op_type == "Constant") {
      for (auto& a : n.attributes)
        if (!a.tensors.empty()) ranks_[n.outputs[0]] = a.tensors[0].dims.size();
    } else if (is_one_of(n.op_type, {"Flatten", "Gemm"})) {
      ranks_[n.outputs[0]] = 2;
    } else if (is_one_of(n.op_type, {"Add",
                                     "Sub",
                                     "Mul",
                                     "Div",
                                     "Pow",
                                     "Sum",
                                     "Max",
                                     "Min",
                                     "Concat",
                                     "Conv",
                                     "ConvTranspose",
                                     "MaxPool",
                                     "AveragePool",
                                     "GlobalAveragePool",
                                     "GlobalMaxPool",
                                     "LRN",
                                     "BatchNormalization",
                                     "InstanceNormalization",
                                     "Relu",
                                     "LeakyRelu",
                                     "PRelu",
                                     "Elu",
                                     "Selu",
                                     "Sigmoid",
                                     "Tanh",
                                     "Softmax",
                                     "LogSoftmax",
                                     "Clip",
                                     "Dropout",
                                     "Pad",
                                     "Identity",
                                     "Transpose",
                                     "Abs",
                                     "Neg",
                                     "Exp",
                                     "Log",
                                     "Sqrt",
                                     "Cast"})) {
      if (auto r = rank(n, 0)) ranks_[n.outputs[0]] = *r;
    }
  }
  std::optional<size_t> rank(const NodeProto& n, size_t input) const {
    if (input >= n.inputs.size()) return std::nullopt;
    auto it = ranks_.find(n.inputs[input]);
    return it == ranks_.end() ? std::nullopt : std::optional(it->second);
  }

  Status raise(NodeProto& n) {
    if (is_one_of(n.op_type, {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal",
                              "Greater", "Less"})) {
      auto broadcast = take(n, "broadcast");
      auto axis = take(n, "axis");
      if (!broadcast || broadcast->i == 0 || !axis) return ok();
      return align(n, axis->i);
    }
    if (n.op_type == "PRelu") {
      // One slope a channel, or one for all.
      if (rank(n, 1) != std::optional<size_t>(1) || rank(n, 0) == std::optional<size_t>(1))
        return ok();
      return align(n, 1);
    }
    if (n.op_type == "Gemm") take(n, "broadcast");
    if (is_one_of(n.op_type, {"RNN", "GRU", "LSTM"})) take(n, "output_sequence");
    if (is_one_of(n.op_type, {"BatchNormalization", "Dropout"})) {
      auto test = take(n, "is_test");
      bool training =
          (!test || test->i == 0) && n.outputs.size() > 1 && n.op_type == "BatchNormalization";
      if (training)
        return node_error(code::kUnsupportedOp, n.name,
                          format("Node {} is in training mode, which is not supported at "
                                 "opset 6.",
                                 describe(n)),
                          "", "export the model for inference");
    }
    if (n.op_type == "Upsample") {
      auto height = take(n, "height_scale"), width = take(n, "width_scale");
      if (!height || !width) return ok();
      AttributeProto scales;
      scales.name = "scales";
      scales.type = AttributeType::reals;
      scales.floats = {1, 1, height->f, width->f};
      n.attributes.push_back(std::move(scales));
    }
    return ok();
  }

  // Input 1 lies along the axes of input 0 from `axis` on: ones are put behind its dimensions.
  Status align(NodeProto& n, int64_t axis) {
    auto a = rank(n, 0), b = rank(n, 1);
    if (!a || !b)
      return node_error(code::kUnsupportedOp, n.name,
                        format("Node {} broadcasts along axis {} as in opset 6, but the "
                               "ranks of its inputs are not known.",
                               describe(n), axis),
                        "", "convert the model with onnx.version_converter");
    if (axis < 0) axis += static_cast<int64_t>(*a);
    int64_t missing = static_cast<int64_t>(*a) - axis - static_cast<int64_t>(*b);
    if (axis < 0 || missing < 0)
      return node_error(
          code::kBadOp, n.name,
          format("Node {} broadcasts along axis {}, which does not fit ranks {} and {}.",
                 describe(n), axis, *a, *b));
    if (missing == 0) return ok();
    NodeProto expand;
    expand.name = format("{}/align", n.outputs.empty() ? n.name : n.outputs[0]);
    expand.op_type = "Unsqueeze";
    expand.opset = 7;
    expand.inputs = {n.inputs[1]};
    expand.outputs = {expand.name};
    AttributeProto axes;
    axes.name = "axes";
    axes.type = AttributeType::integers;
    for (int64_t i = 0; i < missing; ++i) axes.ints.push_back(static_cast<int64_t>(*b) + i);
    expand.attributes.push_back(std::move(axes));
    n.inputs[1] = expand.outputs[0];
    g_.nodes.push_back(std::move(expand));
    return ok();
  }

  GraphProto& g_;
  std::map<std::string, size_t, std::less<>> ranks_;
};

}  // namespace

Status raise_opset6(GraphProto& graph) { return Raiser(graph).run(); }

}  // namespace ge::onnx
