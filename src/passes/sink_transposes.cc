// Transposes go below elementwise nodes: op(T(a), T(b), constant) becomes T(op(a, b, constant')). There they meet
// their inverses and vanish (normal_form), and what they stood between is fused. A model that was written
// channels-last is full of them.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ops/vector_lowering.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr int64_t kMaxConstant = int64_t{1} << 20;   // elements that are moved while compiling

std::vector<int64_t> perm_of(const ir::Graph& g, ValueId v) {
  NodeId id = g.value(v).producer;
  if (!id || g.node(id).op != "Transpose") return {};
  auto perm = ir::attr_ints(g.node(id), "perm");
  if (perm.empty()) {
    perm.resize(g.value(v).type.dims.size());
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  return perm;
}

bool one_element(const ir::Type& t, size_t rank) {
  return t.ranked && t.dims.size() <= rank && std::all_of(t.dims.begin(), t.dims.end(), [](auto& d) { return d.is(1); });
}

// The constant t, which broadcasts along the transposed axes, with its axes where they were before.
Tensor before(const Tensor& t, const std::vector<int64_t>& perm) {
  size_t rank = perm.size(), lead = rank - t.dims().size();
  std::vector<int64_t> wide(rank, 1), dims(rank), from(rank);
  std::copy(t.dims().begin(), t.dims().end(), wide.begin() + static_cast<ptrdiff_t>(lead));
  auto strides = dense_strides(wide);
  for (size_t k = 0; k < rank; ++k) {
    dims[static_cast<size_t>(perm[k])] = wide[k];
    from[static_cast<size_t>(perm[k])] = strides[k];
  }
  Tensor out(t.dtype(), dims);
  size_t bytes = static_cast<size_t>(size_of(t.dtype()));
  for (int64_t i = 0; i < out.count(); ++i) {
    int64_t left = i, at = 0;
    for (size_t a = rank; a-- > 0; left /= dims[a]) at += left % dims[a] * from[a];
    std::memcpy(out.as<std::byte>() + static_cast<size_t>(i) * bytes, t.as<std::byte>() + static_cast<size_t>(at) * bytes, bytes);
  }
  return out;
}

// The operands of n before their common Transpose; empty where there is none.
std::vector<ValueId> operands_before(ir::Graph& g, const ir::Node& n, std::vector<int64_t>& perm) {
  size_t rank = g.value(n.outputs[0]).type.dims.size();
  for (ValueId v : n.inputs) {
    auto p = v ? perm_of(g, v) : std::vector<int64_t>{};
    if (p.empty() || p.size() != rank) continue;
    if (!perm.empty() && perm != p) return {};
    perm = p;
  }
  if (perm.empty()) return {};
  std::vector<ValueId> out;
  for (ValueId v : n.inputs) {
    if (!v || one_element(g.value(v).type, rank)) {
      out.push_back(v);
    } else if (perm_of(g, v) == perm) {
      out.push_back(g.node(g.value(v).producer).inputs[0]);
    } else if (g.is_constant(v) && g.value(v).constant->count() <= kMaxConstant && g.value(v).type.dtype != DType::string &&
               g.value(v).constant->dims().size() <= rank) {
      out.push_back(g.add_constant(before(*g.value(v).constant, perm), g.value(v).name));
    } else {
      return {};
    }
  }
  return out;
}

bool elementwise(const ir::Graph& g, const ir::Node& n) {
  return n.outputs.size() == 1 && n.outputs[0] && n.op != "Transpose" && g.value(n.outputs[0]).type.ranked &&
         ops::vector_row_axes(g, n) == std::optional(0);
}

// Is it worth it: does the chain of elementwise nodes end at another Transpose, or can n join what made its
// operand? Else n reads through the Transpose at no cost, and below n it could be a copy.
bool worthwhile(const ir::Graph& g, const ir::Node& n) {
  ValueId v = n.outputs[0];
  for (int step = 0; step < 16; ++step) {
    NodeId reader = g.only_reader(v);
    if (!reader) break;
    if (g.node(reader).op == "Transpose") return true;
    if (!elementwise(g, g.node(reader))) break;
    v = g.node(reader).outputs[0];
  }
  return std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId in) {
    if (!in || perm_of(g, in).empty() || !g.only_reader(in)) return false;
    ValueId x = g.node(g.value(in).producer).inputs[0];
    return g.value(x).producer && g.only_reader(x);
  });
}

bool sink(ir::Graph& g, NodeId id) {
  auto& n = g.node(id);
  if (!elementwise(g, n)) return false;
  bool behind = std::any_of(n.inputs.begin(), n.inputs.end(), [&](ValueId v) { return v && !perm_of(g, v).empty(); });
  if (!behind || !worthwhile(g, n)) return false;
  std::vector<int64_t> perm;
  auto inputs = operands_before(g, n, perm);
  if (inputs.empty()) return false;
  ValueId old = g.node(id).outputs[0];
  auto type = g.value(old).type;
  for (size_t k = 0; k < perm.size(); ++k) type.dims[static_cast<size_t>(perm[k])] = g.value(old).type.dims[k];
  NodeId made = g.insert(g.node(id).op, inputs, {type}, g.node(id).attrs, id);
  NodeId transpose = g.insert("Transpose", {g.node(made).outputs[0]}, {g.value(old).type}, {{"perm", perm}}, id);
  g.node(transpose).origin.clear();
  g.replace_uses(old, g.node(transpose).outputs[0]);
  g.erase(id);
  return true;
}

}  // namespace

Result<bool> sink_transposes(ir::Graph& g, PassContext&) {
  bool changed = false;
  for (NodeId id : g.order()) changed |= sink(g, id);
  return changed;
}

}  // namespace ge::passes
