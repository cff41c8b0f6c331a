// Scan: a nested graph for every entry of its scan inputs, along their axes. States go from one entry to the
// next; the other values that it gives are stacked. It runs along first axes: others become Transposes here.
#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "ops/carried.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

struct Counts {
  size_t states, scans, captures, stacked;
};

Counts counts_of(const Node& n, const Graph& body) {
  Counts c;
  c.captures = static_cast<size_t>(attr_int(n, "captures", 0));
  c.scans = static_cast<size_t>(attr_int(n, "num_scan_inputs", 0));
  c.states = n.inputs.size() - c.captures - c.scans;
  c.stacked = body.outputs.size() - c.states;
  return c;
}

int64_t at_or(const std::vector<int64_t>& list, size_t i, int64_t otherwise) { return i < list.size() ? list[i] : otherwise; }

Status check(const InferContext& c, const Graph& body) {
  size_t captures = static_cast<size_t>(attr_int(c.node, "captures", 0));
  int64_t scans = attr_int(c.node, "num_scan_inputs", 0);
  if (scans < 1 || c.node.inputs.size() < captures + static_cast<size_t>(scans)) return c.fail(format("attribute num_scan_inputs is {}, but it has {} inputs; it must be 1 or more, and no more than those", scans, c.node.inputs.size()));
  size_t states = c.node.inputs.size() - captures - static_cast<size_t>(scans);
  if (body.inputs.size() != c.node.inputs.size()) return c.fail(format("its graph takes {} values, but the node gives it {}", body.inputs.size() - captures, c.node.inputs.size() - captures));
  if (body.outputs.size() < states || c.out.size() > body.outputs.size()) return c.fail(format("its graph gives {} outputs for {} states and {} outputs", body.outputs.size(), states, c.out.size()));
  return ok();
}

Status infer(InferContext& c) {
  GE_TRY(auto body, require_nested(c, "body"));
  GE_RETURN_IF_ERROR(check(c, *body));
  GE_RETURN_IF_ERROR(require_inputs(c, static_cast<int>(c.node.inputs.size() - static_cast<size_t>(attr_int(c.node, "captures", 0)))));
  Counts n = counts_of(c.node, *body);
  Border border(c.graph, *body);
  auto in_axes = attr_ints(c.node, "scan_input_axes"), out_axes = attr_ints(c.node, "scan_output_axes");
  std::optional<Dim> length;
  for (size_t i = 0; i < n.scans; ++i) {
    Type t = c.type(static_cast<int>(n.states + i));
    if (t.ranked) {
      GE_TRY(int axis, normalize_axis(c, at_or(in_axes, i, 0), t.rank()));
      GE_TRY(length, unify(c, length.value_or(t.dims[static_cast<size_t>(axis)]), t.dims[static_cast<size_t>(axis)], "lengths of its inputs"));
      t.dims.erase(t.dims.begin() + axis);
    }
    body->value(body->inputs[n.states + i]).type = border.enter(t, n.states + i);
  }
  if (!length) length = c.fresh("length");
  set_captures(c, border, *body, n.states + n.scans, n.states + n.scans);
  std::vector<Type> types;
  GE_RETURN_IF_ERROR(infer_carried(c, border, *body, n.states, 0, 0, 0, types));
  for (size_t i = 0; i < c.out.size(); ++i) {
    if (i < n.states) {
      c.out[i] = types[i];
      continue;
    }
    Type all = border.leave(body->value(body->outputs[i]).type, [&](size_t k) { return c.fresh(format("s{}.d{}", i, k)); });
    if (all.kind != ir::TypeKind::tensor) return c.fail(format("output {} stacks what is no tensor", i));
    if (all.ranked) {
      GE_TRY(int axis, normalize_axis(c, at_or(out_axes, i - n.states, 0), all.rank() + 1));
      all.dims.insert(all.dims.begin() + axis, *length);
    }
    c.out[i] = std::move(all);
  }
  return ok();
}

// The permutation that moves an axis to the front, or from there to where it was.
std::vector<int64_t> to_front(int axis, int rank, bool back) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  auto at = perm.begin() + axis;
  if (back) std::rotate(perm.begin(), perm.begin() + 1, at + 1);
  else std::rotate(perm.begin(), at, at + 1);
  return perm;
}

Result<bool> expand(UpgradeContext& c) {
  auto in_axes = attr_ints(c.node(), "scan_input_axes"), out_axes = attr_ints(c.node(), "scan_output_axes");
  if (in_axes.empty() && out_axes.empty()) return false;
  Counts n = counts_of(c.node(), *nested(c.node(), "body"));
  for (size_t i = 0; i < n.scans; ++i) {
    ValueId v = c.node().inputs[n.states + i];
    auto& type = c.graph.value(v).type;
    if (!type.ranked) return node_error(code::kUnsupportedOp, c.node().name, "Scan: the number of axes of an input is not known");
    int axis = wrap_axis(at_or(in_axes, i, 0), type.rank());
    if (axis == 0) continue;
    NodeId moved = c.graph.insert("Transpose", {v}, {Type{type.dtype, false, {}, ir::TypeKind::tensor}}, {{"perm", to_front(axis, type.rank(), false)}}, c.id);
    c.graph.set_input(c.id, static_cast<int>(n.states + i), c.graph.node(moved).outputs[0]);
  }
  for (size_t i = n.states; i < c.node().outputs.size(); ++i) {
    ValueId v = c.node().outputs[i];
    if (!v || at_or(out_axes, i - n.states, 0) == 0) continue;
    Type type = c.graph.value(v).type;
    if (!type.ranked) return node_error(code::kUnsupportedOp, c.node().name, "Scan: the number of axes of an output is not known");
    int axis = wrap_axis(out_axes[i - n.states], type.rank());
    if (axis == 0) continue;
    NodeId moved = c.graph.insert("Transpose", {}, {type}, {{"perm", to_front(axis, type.rank(), true)}}, c.id);
    ValueId there = c.graph.node(moved).outputs[0];
    c.graph.replace_uses(v, there);
    c.graph.value(v).type.ranked = false;
    c.graph.value(v).type.dims.clear();
    c.graph.add_node_input(moved, v);
  }
  c.node().attrs.erase("scan_input_axes");
  c.node().attrs.erase("scan_output_axes");
  return true;
}

// Opset 8 had a batch: one scan after the other over its entries, each of which is a scan as it is now.
Status upgrade(UpgradeContext& c) {
  if (c.version > 8) return ok();
  Graph& g = c.graph;
  auto body = nested(c.node(), "body");
  if (!body) return ok();
  const auto captures = static_cast<size_t>(attr_int(c.node(), "captures", 0));
  auto& given = c.node().inputs;
  if (given.size() < 2 + captures || std::any_of(given.begin() + 1, given.end(), [](ValueId v) { return !v; })) return node_error(code::kBadOp, c.node().name, "Scan: it has no input to scan", "sequence_lens comes first, and may be empty");
  if (!c.node().inputs.empty() && c.node().inputs[0])
    return node_error(code::kUnsupportedOp, c.node().name, "Scan of opset 8 with sequence_lens is not supported", "", "export the model with a newer opset");
  std::vector<ValueId> inputs(c.node().inputs.begin() + 1, c.node().inputs.end());
  for (size_t i = 0; i <= inputs.size(); ++i) g.set_input(c.id, static_cast<int>(i), {});
  c.node().inputs.clear();
  auto entry = std::make_shared<Graph>();
  entry->name = body->name + ".entry";
  entry->scope = format("{}_.{}.", g.scope, c.node().name);
  ir::Attrs attrs = c.node().attrs;
  if (auto it = attrs.find("directions"); it != attrs.end()) {
    attrs["scan_input_directions"] = it->second;
    attrs.erase(it);
  }
  std::vector<ValueId> in, out;
  for (ValueId v : body->inputs) in.push_back(entry->add_input(body->value(v).name, {}));
  for (size_t i = 0; i < body->outputs.size(); ++i) out.push_back(entry->add_value(body->output_names[i], {}));
  entry->add_node("Scan", in, out, std::move(attrs), c.node().name);
  for (size_t i = 0; i < out.size(); ++i) entry->add_graph_output(out[i], body->output_names[i]);
  for (ValueId v : inputs) g.add_node_input(c.id, v);
  c.node().attrs = {{"body", entry}, {"captures", static_cast<int64_t>(captures)}, {"num_scan_inputs", static_cast<int64_t>(inputs.size() - captures)}};
  return ok();
}

Status lower(LowerContext& c) {
  auto body = nested(c.node, "body");
  Counts n = counts_of(c.node, *body);
  std::vector<Arg> in, out;
  for (int i = 0; i < c.inputs(); ++i) in.push_back(c.in(i));
  for (size_t i = 0; i < body->outputs.size(); ++i) out.push_back(c.out(static_cast<int>(i)));
  std::vector<Dim> ints{static_cast<int64_t>(n.states), static_cast<int64_t>(n.scans)};
  auto in_directions = attr_ints(c.node, "scan_input_directions"), out_directions = attr_ints(c.node, "scan_output_directions");
  for (size_t i = 0; i < n.scans; ++i) ints.push_back(at_or(in_directions, i, 0));
  for (size_t i = 0; i < n.stacked; ++i) ints.push_back(at_or(out_directions, i, 0));
  c.call("flow.scan", std::move(in), std::move(out), std::move(ints));
  c.calls.back().graphs = {body};
  return ok();
}

const Register r(OpDef{.name = "Scan",
                       .min_inputs = 1,
                       .max_inputs = -1,
                       .optional = 0b1,  // sequence_lens of opset 8; inference asks for all others
                       .max_outputs = -1,
                       .since = 8,
                       .attrs = {{"body", "What runs."}, {"num_scan_inputs", "How many inputs are cut into entries."},
                                 {"scan_input_axes", "Along which axes."}, {"scan_output_axes", ""},
                                 {"scan_input_directions", "1: from the end."}, {"scan_output_directions", ""}},
                       .unit = kernels::Unit::host,
                       .doc = "A graph for every entry.",
                       .infer = infer,
                       .upgrade = upgrade,
                       .expand = expand,
                       .lower = lower,
                       .executor = true,
                       .foldable = false});

}  // namespace
}  // namespace ge::ops
