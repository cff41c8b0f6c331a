// A Concat of many parts that are one element wide where memory is innermost: made inside the output, each part would write
// and read one element of every so many, all cache lines of the whole for each part. Such parts are made as planes of their
// own, and one copy puts them between one another.
#include <algorithm>

#include "ops/op.h"
#include "ops/shape_util.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr size_t kLeastParts = 4;             // fewer waste less than the copy takes
constexpr double kLeastBytes = 256 << 10;     // what a cache near the core holds is not read from afar each time

// Outermost first.
std::vector<int> order_in_memory(const ir::Value& v) {
  std::vector<int> order = v.layout;
  for (int k = 0; order.size() < v.type.dims.size(); ++k) order.push_back(k);
  return order;
}

bool interleaves(const ir::Graph& g, const ir::Node& n) {
  if (n.op != "Concat" || n.inputs.size() < kLeastParts || ir::has_attr(n, "copied") || ir::has_attr(n, "strip")) return false;
  auto& out = g.value(n.outputs[0]);
  if (!out.type.ranked || out.type.rank() < 2 || out.content || size_of(out.type.dtype) != 4) return false;
  const int axis = ops::wrap_axis(ir::attr_int(n, "axis", 0), out.type.rank());
  if (order_in_memory(out).back() != axis) return false;
  double bytes = 4;
  for (auto& d : out.type.dims) bytes *= d.known() ? static_cast<double>(d.value()) : 1;
  return bytes >= kLeastBytes && std::all_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) {
    return v && g.value(v).type.ranked && g.value(v).type.dims[static_cast<size_t>(axis)].is(1) && g.value(v).producer;
  });
}

void separate(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  const ValueId out = n.outputs[0];
  const ir::Type type = g.value(out).type;
  const int64_t axis = ir::attr_int(n, "axis", 0);
  std::vector<int> planes = order_in_memory(g.value(out));
  std::rotate(planes.begin(), planes.end() - 1, planes.end());
  const ValueId apart = g.add_value(g.value(out).name + ".planes", type);
  g.value(apart).layout = std::move(planes);
  g.set_output(id, 0, apart);
  const NodeId copy = g.insert("Concat", {apart}, {type}, {{"axis", axis}, {"copied", std::vector<int64_t>{0}}}, id);
  g.node(copy).origin.clear();
  g.set_output(copy, 0, out);
}

}  // namespace

Result<bool> planar_parts(ir::Graph& g, PassContext&) {
  bool changed = false;
  for (NodeId id : g.order())
    if (interleaves(g, g.node(id))) separate(g, id), changed = true;
  return changed;
}

}  // namespace ge::passes
