#include "driver/model_edits.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>

#include "base/text.h"

namespace ge {
namespace {

using ir::NodeId;
using ir::ValueId;

// "node:0", or a value's name (which may contain ':').
Result<ValueId> find_output(const ir::Graph& g, const std::string& text, const char* option) {
  std::vector<std::string> names;
  for (size_t i = 0; i < g.value_capacity(); ++i) {
    ValueId v{static_cast<int32_t>(i)};
    if (g.value(v).name == text && (g.value(v).producer || g.is_input(v))) return v;
  }
  size_t colon = text.rfind(':');
  std::string node = text.substr(0, colon);
  size_t index = 0;
  if (colon != std::string::npos) {
    const char* begin = text.data() + colon + 1;
    auto [end, e] = std::from_chars(begin, text.data() + text.size(), index);
    if (e != std::errc() || end != text.data() + text.size()) node = text;
  }
  for (NodeId id : g.order()) {
    auto& n = g.node(id);
    names.push_back(n.name);
    if (n.name != node) continue;
    if (index >= n.outputs.size() || !n.outputs[index])
      return error(code::kUnknownName, format("--{} names output {} of node '{}', which has {}.", option, index, node, n.outputs.size()));
    return n.outputs[index];
  }
  std::string near = nearest(node, names);
  return error(code::kUnknownName, format("--{} names '{}', which the model does not have.", option, text), "", near.empty() ? "give node:index or the name of a value" : format("did you mean '{}'?", near));
}

const std::map<std::string, DType>& type_names() {
  static const std::map<std::string, DType> names = {{"FP32", DType::f32}, {"FP16", DType::f16}, {"BF16", DType::bf16}, {"FP64", DType::f64},
                                                     {"UINT8", DType::u8}, {"INT8", DType::i8}, {"INT16", DType::i16}, {"UINT16", DType::u16},
                                                     {"INT32", DType::i32}, {"INT64", DType::i64}, {"UINT32", DType::u32}, {"UINT64", DType::u64}, {"BOOL", DType::boolean}};
  return names;
}

void cast_output(ir::Graph& g, size_t i, DType type) {
  ValueId v = g.outputs[i];
  if (g.value(v).type.dtype == type) return;
  ir::Type t = g.value(v).type;
  t.dtype = type;
  ValueId made = g.add_value(g.output_names[i] + ".cast", t);
  g.add_node("Cast", {v}, {made}, {{"to", static_cast<int64_t>(type)}}, "output_type");
  g.set_graph_output(i, made);
}

}  // namespace

Status cut_outputs(ir::Graph& g, const std::vector<std::string>& out_nodes) {
  if (out_nodes.empty()) return ok();
  std::vector<ValueId> outputs;
  for (auto& text : out_nodes) {
    GE_TRY(ValueId v, find_output(g, text, "out_nodes"));
    outputs.push_back(v);
  }
  g.outputs.clear();
  g.output_names.clear();
  for (ValueId v : outputs) g.add_graph_output(v, g.value(v).name);
  return ok();
}

Status set_output_types(ir::Graph& g, const std::vector<std::string>& output_type) {
  for (auto& text : output_type) {
    size_t colon = text.rfind(':');
    std::string word = colon == std::string::npos ? text : text.substr(colon + 1);
    auto it = type_names().find(word);
    if (it == type_names().end()) {
      std::vector<std::string> known;
      for (auto& [n, t] : type_names()) known.push_back(n);
      return error(code::kInvalidValue, format("Value {} for parameter --output_type is invalid. Reason: {} is no type.", text, word), "the types are " + join(known, ", "));
    }
    if (colon == std::string::npos) {
      for (size_t i = 0; i < g.outputs.size(); ++i) cast_output(g, i, it->second);
      continue;
    }
    GE_TRY(ValueId v, find_output(g, text.substr(0, colon), "output_type"));
    auto at = std::find(g.outputs.begin(), g.outputs.end(), v);
    if (at == g.outputs.end())
      return error(code::kInvalidValue, format("Value {} for parameter --output_type is invalid. Reason: it is no output of the model.", text));
    cast_output(g, static_cast<size_t>(at - g.outputs.begin()), it->second);
  }
  return ok();
}

void set_input_format(ir::Graph& g, const std::string& format_name) {
  if (format_name != "NHWC") return;
  for (ValueId v : g.inputs) {
    auto& value = g.value(v);
    if (!value.type.ranked || value.type.dims.size() != 4) continue;
    auto d = value.type.dims;
    ValueId inner = g.add_value(value.name + ".nchw", value.type);
    g.replace_uses(v, inner);
    g.value(v).type.dims = {d[0], d[2], d[3], d[1]};
    NodeId id = g.add_node("Transpose", {v}, {inner}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}}, "input_format");
    g.node(id).rank = -1;
  }
}

void set_order(ir::Graph& g, int mode) {
  if (mode == 3) return;
  std::vector<NodeId> order;
  std::vector<bool> seen(g.node_capacity());
  if (mode == 0) {
    std::map<int, int> waiting;
    std::deque<NodeId> ready;
    auto nodes = g.order();
    for (NodeId id : nodes) {
      int n = 0;
      for (ValueId v : g.node(id).inputs) n += v && g.value(v).producer;
      waiting[id.v] = n;
      if (!n) ready.push_back(id);
    }
    while (!ready.empty()) {
      NodeId id = ready.front();
      ready.pop_front();
      order.push_back(id);
      for (ValueId v : g.node(id).outputs)
        if (v)
          for (auto& u : g.value(v).uses)
            if (--waiting[u.node.v] == 0) ready.push_back(u.node);
    }
  } else {
    // Depth first from the outputs, operands before their node; an explicit stack, as models are deep.
    std::vector<std::pair<NodeId, size_t>> stack;
    auto push = [&](ValueId v) {
      if (v && g.value(v).producer && !seen[static_cast<size_t>(g.value(v).producer.v)]) {
        seen[static_cast<size_t>(g.value(v).producer.v)] = true;
        stack.push_back({g.value(v).producer, 0});
      }
    };
    for (ValueId out : g.outputs) {
      push(out);
      while (!stack.empty()) {
        auto& [id, next] = stack.back();
        auto& ins = g.node(id).inputs;
        if (next == ins.size()) {
          order.push_back(id);
          stack.pop_back();
          continue;
        }
        size_t at = next++;
        push(ins[mode == 1 ? at : ins.size() - 1 - at]);
      }
    }
  }
  for (size_t i = 0; i < order.size(); ++i) g.node(order[i]).rank = static_cast<int64_t>(i);
}

}  // namespace ge
