//   MatMul(OneHot(index, K, [0, 1]), W)              W constant, [K, N]
//   MatMul(Cast(Equal(index, [0, 1, ..., K-1])), W)  the same spelt out
//   becomes   Gather(W', index)                      W' is W and a row of zeros, for indices beyond it
// Exact where W is finite: a row of the product is one row of W, and zeros.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "passes/fusion.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

// The left side of a product: ones where the index is the class of the column.
struct OneHot {
  ValueId index;
  bool spelt_out = false;   // no negative classes; the index has an axis of size 1 for them
};

// None: v is nothing of the kind for this many classes.
std::optional<OneHot> spelt_out(const ir::Graph& g, const ir::Node& cast, int64_t classes) {
  NodeId equal = g.value(cast.inputs[0]).producer;
  if (!equal || g.node(equal).op != "Equal") return std::nullopt;
  auto& n = g.node(equal);
  const size_t numbers = g.is_constant(n.inputs[0]) ? 0 : 1;
  if (!g.is_constant(n.inputs[numbers])) return std::nullopt;
  auto &hit = g.value(n.outputs[0]).type, &index = g.value(n.inputs[1 - numbers]).type;
  if (!hit.ranked || !index.ranked || hit.rank() < 1 || index.rank() != hit.rank() || !index.dims.back().is(1)) return std::nullopt;
  if (!is_integer(index.dtype) || index.dtype == DType::u64) return std::nullopt;
  const Tensor& k = *g.value(n.inputs[numbers]).constant;
  if (k.count() != classes || k.rank() < 1 || k.dims().back() != k.count()) return std::nullopt;
  for (int64_t i = 0; i < k.count(); ++i)
    if (k.at(i) != static_cast<double>(i)) return std::nullopt;
  return OneHot{n.inputs[1 - numbers], true};
}

std::optional<OneHot> one_hot(const ir::Graph& g, ValueId v, int64_t classes) {
  NodeId id = v ? g.value(v).producer : NodeId{};
  if (!id || g.value(v).type.dtype != DType::f32) return std::nullopt;
  auto& n = g.node(id);
  if (n.op == "Cast") return spelt_out(g, n, classes);
  if (n.op != "OneHot" || !g.is_constant(n.inputs[1]) || !g.is_constant(n.inputs[2])) return std::nullopt;
  auto& index = g.value(n.inputs[0]).type;
  const int64_t axis = ir::attr_int(n, "axis", -1);
  if (!index.ranked || (axis != -1 && axis != index.rank()) || index.dtype == DType::u64) return std::nullopt;
  const Tensor &depth = *g.value(n.inputs[1]).constant, &values = *g.value(n.inputs[2]).constant;
  if (depth.count() != 1 || depth.at(0) != static_cast<double>(classes) || values.at(0) != 0 || values.at(1) != 1) return std::nullopt;
  return OneHot{n.inputs[0]};
}

// The node that makes v of such ones and nothing else.
NodeId hides_one_hot(const ir::Graph& g, ValueId v, int64_t classes) {
  NodeId first = v ? g.value(v).producer : NodeId{};
  for (NodeId id = first; id; id = g.value(g.node(id).inputs[0]).producer) {
    if (g.node(id).op == "OneHot" || (g.node(id).op == "Cast" && spelt_out(g, g.node(id), classes))) return id == first ? NodeId{} : first;
    if (!is_glue(g.node(id).op) || !g.node(id).inputs[0]) return {};
  }
  return {};
}

bool finite(const Tensor& w) {
  return std::all_of(w.as<float>(), w.as<float>() + w.count(), [](float x) { return std::isfinite(x); });
}

Tensor with_zeros(const Tensor& w) {
  Tensor out(DType::f32, {w.dims()[0] + 1, w.dims()[1]});
  std::memset(out.as<std::byte>(), 0, out.bytes());
  if (w.count() > 0) std::memcpy(out.as<std::byte>(), w.as<std::byte>(), w.bytes());
  return out;
}

NodeId build(ir::Graph& g, NodeId id, const OneHot& hot) {
  const ir::Node product = g.node(id);
  const ValueId w = product.inputs[1];
  const int64_t classes = g.value(w).constant->dims()[0];
  ir::Type type = g.value(hot.index).type;
  ValueId at = hot.index;
  auto add = [&](std::string op, std::vector<ValueId> inputs, DType to, ir::Attrs attrs = {}) {
    type.dtype = to;
    at = g.node(g.insert(std::move(op), std::move(inputs), {type}, std::move(attrs), id)).outputs[0];
    return at;
  };
  auto number = [&](int64_t v) { return g.add_constant(Tensor::scalar_i64(v), "class"); };
  if (hot.spelt_out) {
    type.dims.pop_back();
    add("Squeeze", {at, g.add_constant(Tensor::vector_i64(std::vector<int64_t>{-1}), "axes")}, type.dtype);
  }
  if (type.dtype != DType::i64) add("Cast", {at}, DType::i64, {{"to", static_cast<int64_t>(DType::i64)}});
  if (!hot.spelt_out) {   // negative indices count from the end
    const ValueId index = at, negative = add("Less", {index, number(0)}, DType::boolean), back = add("Add", {index, number(classes)}, DType::i64);
    add("Where", {negative, back, index}, DType::i64);
  }
  add("Clip", {at, number(-1), number(classes)}, DType::i64);   // -1 is the last row, of zeros
  NodeId made = g.insert("Gather", {g.add_constant(with_zeros(*g.value(w).constant), g.value(w).name), at}, {g.value(product.outputs[0]).type}, {{"axis", int64_t{0}}}, id);
  g.replace_uses(product.outputs[0], g.node(made).outputs[0]);
  // What made the ones goes too, where nobody else reads them.
  std::vector<std::string> origins;
  for (NodeId from = id; from;) {
    const ir::Node n = g.node(from);
    auto names = origins_of(n);
    origins.insert(origins.begin(), names.begin(), names.end());
    if (g.reader_count(n.outputs[0]) == 0) g.erase(from);
    from = n.op == "OneHot" || n.op == "Equal" ? NodeId{} : g.value(n.inputs[0]).producer;
  }
  g.node(made).origin = std::move(origins);
  return made;
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    const ir::Node& n = g.node(id);
    if (n.op != "MatMul" || !g.is_constant(n.inputs[1]) || !in_scope(c.options, g, id)) continue;
    const Tensor& w = *g.value(n.inputs[1]).constant;
    if (w.dtype() != DType::f32 || w.rank() != 2) continue;
    const std::string anchor = n.name;
    auto miss = [&](NodeId blocker, std::string why, std::string help) { c.trace.near_miss({"one_hot_product", anchor, 1, 2, g.node(blocker).name, std::move(why), std::move(help)}); };
    auto hot = one_hot(g, n.inputs[0], w.dims()[0]);
    if (!hot) {
      if (NodeId between = hides_one_hot(g, n.inputs[0], w.dims()[0]))
        miss(between, format("{} stands between the ones and the product", g.node(between).op), format("move {} out of the way", g.node(between).op));
      continue;
    }
    if (!finite(w)) {
      miss(id, "the right side has values that are not finite", "give it finite numbers");
      continue;
    }
    c.trace.fused("one_hot_product", g, build(g, id, *hot), anchor);
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "one_hot_product", .doc = "a product of ones and zeros with a constant reads the rows of the constant", .order = 0, .search = search});

}  // namespace
}  // namespace ge::passes
