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
  // The constant, which broadcasts along `after`, as it does along `before`; none: it has elements along an axis that is not
  // there.
  ValueId constant_before(ValueId v, const std::vector<Dim>& after, const std::vector<Dim>& before) {
    const Tensor& c = *g_.value(v).constant;
    if (c.count() == 1) {
      Tensor one(c.dtype(), {});
      std::copy_n(c.as<std::byte>(), c.bytes(), one.as<std::byte>());
      return g_.add_constant(std::move(one), g_.value(v).name);
    }
    if (c.dims().size() > after.size() || c.dtype() == DType::string) return {};
    std::vector<int64_t> wide(after.size() - c.dims().size(), 1), dims;
    wide.insert(wide.end(), c.dims().begin(), c.dims().end());
    size_t from = 0;
    for (auto& d : before) {
      if (d.is(1)) {
        dims.push_back(1);
        continue;
      }
      for (; after[from].is(1); ++from)
        if (wide[from] != 1) return {};
      dims.push_back(wide[from++]);
    }
    for (; from < after.size(); ++from)
      if (wide[from] != 1) return {};
    Tensor out(c.dtype(), std::move(dims));
    std::copy_n(c.as<std::byte>(), c.bytes(), out.as<std::byte>());
    return g_.add_constant(std::move(out), g_.value(v).name);
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
      if (!s) {
        if (v && !g_.is_constant(v)) return false;
        continue;
      }
      ValueId x = g_.node(s).inputs[0];
      if (g_.value(v).type.dims != out.dims || !serves(x) || (found && g_.value(x).type.dims != before)) return false;
      before = g_.value(x).type.dims, found = true;
    }
    if (!found || !out.ranked || g_.value(old).content) return false;
    std::vector<ValueId> inputs;
    for (ValueId v : n.inputs) {
      if (NodeId s = squeeze_of(v)) v = g_.node(s).inputs[0];
      else if (v && !(v = constant_before(v, out.dims, before))) return false;
      inputs.push_back(v);
    }
    // A squeeze of the same kind, behind the node.
    NodeId like;
    for (ValueId v : n.inputs)
      if (!like) like = squeeze_of(v);
    const ir::Node squeeze = g_.node(like);
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
