// f16 between operators becomes f32: every kernel computes in f32, so what lies in between would be rounded and
// widened for nothing, and fusions see one form. Inputs are widened where a product or an elementwise node first reads
// them, what leaves the graph is rounded once; constants that are only moved stay as they are.
// A node is written in f32 if its inference says that f32 operands give f32 results and change nothing else.
#include <algorithm>
#include <map>
#include <set>

#include "ops/op.h"
#include "passes/pass.h"
#include "tensor/pages.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::Type;
using ir::ValueId;

class Widening {
 public:
  explicit Widening(ir::Graph& g) : g_(g) {}

  bool run() {
    for (NodeId id : g_.order()) {
      if (is_nothing(id)) {
        g_.replace_uses(g_.node(id).outputs[0], g_.node(id).inputs[0]);
        g_.erase(id);
        changed_ = true;
      } else if (is_rounding(id)) {
        wide_[g_.node(id).outputs[0].v] = g_.node(id).inputs[0];
        made_.insert(g_.node(id).outputs[0].v);
        rounded_.insert(g_.node(id).outputs[0].v);
      } else if (widens(id)) {
        widen(id);
      }
    }
    return changed_;
  }

 private:
  bool is_f16(ValueId v) const { return v && g_.value(v).type.dtype == DType::f16 && g_.value(v).type.kind == ir::TypeKind::tensor; }

  // A Cast to what it is already, which would end the f32.
  bool is_nothing(NodeId id) const {
    auto& n = g_.node(id);
    return (n.op == "Cast" || n.op == "CastLike") && is_f16(n.outputs[0]) && is_f16(n.inputs[0]);
  }

  // f32 rounded to f16: what reads it takes the f32, but for a Cast back, which asks for the rounding. What constants
  // and sizes alone decide is rounded: that costs nothing in a run.
  bool is_rounding(NodeId id) {
    auto& n = g_.node(id);
    return n.op == "Cast" && is_f16(n.outputs[0]) && g_.value(n.inputs[0]).type.dtype == DType::f32 && !settled(n.inputs[0]);
  }
  bool settled(ValueId v, int depth = 0) {
    constexpr int kMaxDepth = 100;   // chains that long are computed, not looked through
    if (!v) return true;
    if (depth > kMaxDepth) return false;
    auto [it, fresh] = settled_.emplace(v.v, false);
    if (!fresh) return it->second;
    NodeId up = g_.value(v).producer;
    bool all = g_.is_constant(v) || g_.value(v).content.has_value();
    if (!all && up) {
      auto* def = ops::find(g_.node(up).op);
      auto& inputs = g_.node(up).inputs;
      all = def && def->deterministic && std::all_of(inputs.begin(), inputs.end(), [&](ValueId in) { return settled(in, depth + 1); });
    }
    return settled_[v.v] = all;
  }
  bool asks_for_rounding(const ir::Node& n) const { return n.op == "Cast" && rounded_.count(n.inputs[0].v); }

  bool widens(NodeId id) {
    auto& n = g_.node(id);
    auto* def = ops::find(n.op);
    bool any = false, held = false;  // held: an operand is there in f32
    for (ValueId v : n.inputs) {
      any = any || is_f16(v);
      held = held || made_.count(v.v);
    }
    if (!any || !def || !def->infer || !def->deterministic || asks_for_rounding(n)) return false;
    if (!held && def->unit != kernels::Unit::cube && def->vector_kind == ops::VectorKind::none) return false;
    for (auto& [name, attr] : n.attrs)
      if (std::holds_alternative<std::shared_ptr<ir::Graph>>(attr) || std::holds_alternative<std::vector<std::shared_ptr<ir::Graph>>>(attr)) return false;
    return infers_wide(n, *def);
  }

  bool infers_wide(const ir::Node& n, const ops::OpDef& def) {
    std::vector<ValueId> changed;
    for (ValueId v : n.inputs)
      if (is_f16(v)) g_.value(v).type.dtype = DType::f32, changed.push_back(v);
    ops::InferContext c(g_, n);
    bool good = def.infer(c).ok();
    for (ValueId v : changed) g_.value(v).type.dtype = DType::f16;
    for (size_t i = 0; good && i < n.outputs.size(); ++i) {
      if (!n.outputs[i]) continue;
      Type now = g_.value(n.outputs[i]).type;
      if (now.dtype == DType::f16) now.dtype = DType::f32;
      good = c.out[i].dtype == now.dtype && c.out[i].kind == now.kind && c.out[i].ranked == now.ranked && c.out[i].dims == now.dims;
    }
    return good;
  }

  // v in f32, for a reader next to `like`.
  ValueId wide(ValueId v, NodeId like) {
    if (auto it = wide_.find(v.v); it != wide_.end()) return it->second;
    ValueId out;
    if (g_.is_constant(v)) {
      const Tensor& t = *g_.value(v).constant;
      Tensor f32(DType::f32, t.dims());
      for (int64_t i = 0; i < t.count(); ++i) f32.as<float>()[i] = static_cast<float>(t.at(i));
      rest(t);
      out = g_.add_constant(std::move(f32), g_.value(v).name);
    } else {
      out = cast(v, DType::f32, like, g_.value(v).name + " as f32");
    }
    return wide_[v.v] = out;
  }

  ValueId cast(ValueId v, DType to, NodeId like, std::string name) {
    Type type = g_.value(v).type;
    type.dtype = to;
    NodeId made = g_.insert("Cast", {v}, {type}, {{"to", static_cast<int64_t>(to)}}, like);
    g_.node(made).name = std::move(name);
    return g_.node(made).outputs[0];
  }

  void widen(NodeId id) {
    const ir::Node n = g_.node(id);
    std::vector<ValueId> in = n.inputs;
    for (ValueId& v : in)
      if (is_f16(v)) v = wide(v, id);
    std::vector<Type> types;
    for (ValueId v : n.outputs) {
      types.push_back(v ? g_.value(v).type : Type{});
      if (is_f16(v)) types.back().dtype = DType::f32;
    }
    NodeId made = g_.insert(n.op, std::move(in), types, n.attrs, id);
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      ValueId old = n.outputs[i], fresh = g_.node(made).outputs[i];
      if (!old) {
        g_.node(made).outputs[i] = {};
        continue;
      }
      g_.value(fresh).content = g_.value(old).content;
      if (!is_f16(old)) {
        g_.replace_uses(old, fresh);
        continue;
      }
      ValueId narrow = cast(fresh, DType::f16, id, g_.value(old).name + " as f16");
      wide_[narrow.v] = fresh;
      made_.insert(narrow.v);
      g_.replace_uses(old, narrow);
    }
    g_.erase(id);
    g_.node(made).name = n.name;
    changed_ = true;
  }

  ir::Graph& g_;
  std::map<int32_t, ValueId> wide_;    // of a value in f16: the same in f32
  std::map<int32_t, bool> settled_;    // whether constants and sizes alone decide a value
  std::set<int32_t> made_;             // those whose f32 is there anyway
  std::set<int32_t> rounded_;          // what the model's own Casts rounded
  bool changed_ = false;
};

}  // namespace

Result<bool> widen(ir::Graph& g, PassContext&) { return Widening(g).run(); }

}  // namespace ge::passes
