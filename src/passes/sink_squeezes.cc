// What adds or drops axes of size 1 goes below the elementwise nodes that follow a product or convolution:
// op(S(x), constant) becomes S(op(x, constant')). The product can then take them up. A convolution over one axis that was
// written as one over two is followed by such a Squeeze.
#include <algorithm>
#include <set>

#include "ops/vector_lowering.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

class Sinker {
 public:
  explicit Sinker(ir::Graph& g) : g_(g) {}
  bool run() {
    bool changed = false;
    for (NodeId id : g_.order()) changed |= sink(id);
    return changed;
  }

 private:
  // The node that makes v of the same elements in other axes of size 1; none: another does.
  NodeId squeeze_of(ValueId v) const {
    NodeId id = v ? g_.value(v).producer : NodeId{};
    if (!id) return {};
    auto& n = g_.node(id);
    if (n.op != "Squeeze" && n.op != "Unsqueeze" && n.op != "Reshape") return {};
    auto &from = g_.value(n.inputs[0]).type, &to = g_.value(v).type;
    if (!from.ranked || !to.ranked || from.dims == to.dims) return {};
    auto longer = [](const ir::Type& t) {
      std::vector<Dim> d;
      std::copy_if(t.dims.begin(), t.dims.end(), std::back_inserter(d), [](auto& x) { return !x.is(1); });
      return d;
    };
    return longer(from) == longer(to) ? id : NodeId{};
  }
  bool serves(ValueId x) const {
    NodeId id = g_.value(x).producer;
    if (!id) return false;
    auto* def = ops::find(g_.node(id).op);
    return sunk_.count(id.v) > 0 || (def && def->unit == kernels::Unit::cube && g_.only_reader(x));
  }
  // For each axis of `after`, which of `before` it is; axes of size 1 are left out or added between them. None: not so.
  static std::vector<int> places(const std::vector<Dim>& after, const std::vector<Dim>& before) {
    std::vector<int> at;
    size_t k = 0;
    for (auto& d : after) {
      while (k < before.size() && !(before[k] == d)) {
        if (!before[k].is(1)) break;
        ++k;
      }
      const bool here = k < before.size() && before[k] == d;
      if (!here && !d.is(1)) return {};
      at.push_back(here ? static_cast<int>(k++) : -1);
    }
    return at;
  }
  // The operand, which broadcasts along `after`, as it does along `before`; none: it has elements along an axis that is not
  // there, or would have to lose axes while running.
  ValueId operand_before(ValueId v, const std::vector<Dim>& after, const std::vector<Dim>& before, NodeId like) {
    auto& type = g_.value(v).type;
    const auto at = places(after, before);
    if (!type.ranked || type.dtype == DType::string || at.size() != after.size() || type.dims.size() > after.size()) return {};
    const size_t lead = after.size() - type.dims.size();
    std::vector<Dim> dims(before.size(), 1);
    bool dropped = false;
    for (size_t k = 0; k < type.dims.size(); ++k) {
      const int to = at[lead + k];
      if (to >= 0) dims[static_cast<size_t>(to)] = type.dims[k];
      else if (!type.dims[k].is(1)) return {};
      else dropped = true;
    }
    if (g_.is_constant(v)) {
      const Tensor& c = *g_.value(v).constant;
      std::vector<int64_t> sizes;
      for (auto& d : dims) sizes.push_back(d.value());
      if (c.count() == 1) sizes.clear();
      return g_.add_constant(c.reshaped(std::move(sizes)), g_.value(v).name);
    }
    if (dropped) return {};
    std::vector<int64_t> added;
    for (size_t k = 0; k < before.size(); ++k)
      if (std::find(at.begin() + static_cast<ptrdiff_t>(lead), at.end(), static_cast<int>(k)) == at.end()) added.push_back(static_cast<int64_t>(k));
    if (added.empty()) return v;
    ir::Type wide = type;
    wide.dims = std::move(dims);
    NodeId id = g_.insert("Unsqueeze", {v, g_.add_constant(Tensor::vector_i64(added), "axes")}, {wide}, {}, like);
    g_.node(id).origin.clear();
    return g_.node(id).outputs[0];
  }

  bool sink(NodeId id) {
    const ir::Node n = g_.node(id);
    if (n.outputs.size() != 1 || !n.outputs[0] || ops::vector_row_axes(g_, n) != std::optional(0) || squeeze_of(n.outputs[0])) return false;
    const ValueId old = n.outputs[0];
    const ir::Type out = g_.value(old).type;
    std::vector<Dim> before;
    bool found = false;
    for (ValueId v : n.inputs) {
      NodeId s = squeeze_of(v);
      ValueId x = s ? g_.node(s).inputs[0] : ValueId{};
      if (!s || found || !serves(x)) continue;
      if (g_.value(v).type.dims != out.dims) return false;
      before = g_.value(x).type.dims, found = true;
    }
    if (!found || !out.ranked || g_.value(old).content) return false;
    std::vector<ValueId> inputs;
    NodeId like;
    for (ValueId v : n.inputs) {
      NodeId s = squeeze_of(v);
      if (s && g_.value(g_.node(s).inputs[0]).type.dims == before) v = g_.node(s).inputs[0], like = s;
      else if (v && !(v = operand_before(v, out.dims, before, id))) return false;
      inputs.push_back(v);
    }
    const ir::Node squeeze = g_.node(like);   // one of the same kind, behind the node
    ir::Type type = out;
    type.dims = before;
    NodeId made = g_.insert(n.op, std::move(inputs), {type}, n.attrs, id);
    auto moved = squeeze.inputs;
    moved[0] = g_.node(made).outputs[0];
    NodeId below = g_.insert(squeeze.op, std::move(moved), {out}, squeeze.attrs, id);
    g_.node(below).origin.clear();
    g_.replace_uses(old, g_.node(below).outputs[0]);
    g_.erase(id);
    sunk_.insert(made.v);
    for (ValueId v : n.inputs)
      if (NodeId s = squeeze_of(v); s && g_.reader_count(v) == 0) g_.erase(s);
    return true;
  }

  ir::Graph& g_;
  std::set<int> sunk_;
};

}  // namespace

Result<bool> sink_squeezes(ir::Graph& g, PassContext&) { return Sinker(g).run(); }

}  // namespace ge::passes
