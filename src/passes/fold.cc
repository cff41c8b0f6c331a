// Constant folding, bounded: a node of constants is computed now unless that would make the model
// larger by more than the limit (weights stored in fewer bits are unpacked all the same, and so are weights that a
// product would otherwise pack in each run). Values whose elements are all known numbers become constants too.
#include <algorithm>

#include "ops/evaluate.h"
#include "passes/pass.h"
#include "tensor/pages.h"

namespace ge::passes {
namespace {

bool known_numbers(const std::vector<Dim>& e) {
  return std::all_of(e.begin(), e.end(), [](auto& d) { return d.known(); });
}

Tensor integer_tensor(const ir::Type& type, const std::vector<Dim>& elements) {
  std::vector<int64_t> dims;
  for (auto& d : type.dims) dims.push_back(d.value());
  Tensor t(type.dtype, std::move(dims));
  for (size_t i = 0; i < elements.size(); ++i) {
    int64_t v = elements[i].value();
    switch (size_of(type.dtype)) {
      case 1: t.as<int8_t>()[i] = static_cast<int8_t>(v); break;
      case 2: t.as<int16_t>()[i] = static_cast<int16_t>(v); break;
      case 4: t.as<int32_t>()[i] = static_cast<int32_t>(v); break;
      default: t.as<int64_t>()[i] = v;
    }
  }
  return t;
}

// Bytes become floats, or numbers of fewer bits an element each: each run would unpack the weights again.
bool unpacks(const ir::Graph& g, const ir::Node& n) {
  if (n.inputs.empty() || !n.inputs[0] || !n.outputs[0]) return false;
  DType from = g.value(n.inputs[0]).type.dtype, to = g.value(n.outputs[0]).type.dtype;
  return is_integer(from) && bits(from) <= 8 && (is_float(to) || (bits(from) == 8 && bits(to) < 8));
}

constexpr size_t kNextToNothing = 4096;
constexpr int64_t kMostWeights = int64_t{1} << 30;  // bytes of such weights

// Its result is nothing but the right side of products and convolutions, and comes from next to nothing: other weights
// that are turned are read as they lie.
bool makes_weights(const ir::Graph& g, const ir::Node& n) {
  if (n.outputs.size() != 1 || !n.outputs[0] || g.is_output(n.outputs[0])) return false;
  for (auto v : n.inputs)
    if (v && g.value(v).constant->bytes() > kNextToNothing) return false;
  auto& uses = g.value(n.outputs[0]).uses;
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](auto& u) {
    auto* def = ops::find(g.node(u.node).op);
    return def && def->unit == kernels::Unit::cube && u.index > 0;
  });
}

}  // namespace

Result<bool> fold(ir::Graph& g, PassContext& c) {
  bool changed = false;
  int64_t grown = 0, weights = 0;
  for (ir::NodeId id : g.order()) {
    auto& n = g.node(id);
    auto* def = ops::find(n.op);
    if (!def || !def->deterministic || !def->foldable) continue;
    bool all_known = true;
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (!n.outputs[i]) continue;
      auto& v = g.value(n.outputs[i]);
      bool numbers = v.content && known_numbers(*v.content) && v.type.is_static() && (is_integer(v.type.dtype) || v.type.dtype == DType::boolean);
      if (numbers) {
        g.make_constant(n.outputs[i], integer_tensor(v.type, *v.content));
        changed = true;
      } else {
        all_known = false;
      }
    }
    if (all_known) {
      g.erase(id);
      continue;
    }
    bool constant = !n.inputs.empty() || n.op == "ConstantOfShape";
    int64_t freed = 0, made = 0;
    for (auto v : n.inputs) {
      constant &= !v || g.is_constant(v);
      if (v && g.is_constant(v) && g.reader_count(v) == 1) freed += static_cast<int64_t>(g.value(v).constant->bytes());
    }
    for (auto v : n.outputs) {
      if (!v) continue;
      auto& t = g.value(v).type;
      constant &= t.is_static() && t.dtype != DType::string && t.kind == ir::TypeKind::tensor;
      if (!constant) break;
      Dim count = product(t.dims);
      constant &= count.known() && count.value() < (int64_t(1) << 40);
      if (constant) made += count.value() * size_of(t.dtype);
    }
    if (!constant) continue;
    const bool free = unpacks(g, n), weight = !free && made - freed > c.options.fold_limit && makes_weights(g, n) && weights + made <= kMostWeights;
    if (!free && !weight && grown + made - freed > c.options.fold_limit) continue;
    auto values = ops::evaluate(g, n);
    for (auto v : n.inputs)
      if (v) rest(*g.value(v).constant);
    if (!values.ok()) continue;  // it stays, and runs
    if (weight) weights += made;
    else if (!free) grown += std::max<int64_t>(0, made - freed);
    auto outputs = n.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i]) continue;
      g.make_constant(outputs[i], std::move((*values)[i]));
    }
    g.erase(id);
    changed = true;
  }
  return changed;
}

}  // namespace ge::passes
