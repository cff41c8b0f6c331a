// Vector regions: connected elementwise nodes and row reductions become one ge.Vector node. A region is
// grown upwards from its last node: a producer joins when its output has the region's shape (or that shape
// with the row axes reduced to 1, or one that is broadcast to it at tiny sizes alone); what others read too becomes a
// further output. The name of the rule and of its near misses: "vector_region".
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "ops/vector_lowering.h"
#include "passes/fusions/cube_group.h"
#include "passes/pass.h"
#include "tensor/dim_range.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;
using kernels::vector::ProgramBuilder;
using kernels::vector::Reg;

constexpr size_t kMaxNodes = 96, kMaxOperands = 24, kMaxExtra = 4;

struct Region {
  std::vector<NodeId> nodes;    // last first
  std::vector<ValueId> extra;   // values that others read too: further outputs
  std::set<int> members;
  std::vector<Dim> dims;        // of the last node's output, or of its input when that is reduced
  int row_axes = 0;
  bool stretched = false;       // a node's shape may have to be broadcast to `dims`
};

bool loadable(DType t) { return ops::vector_dtype(t) || t == DType::i64 || t == DType::u8 || t == DType::i8 || t == DType::u16 || t == DType::i16; }

// Can the node be computed in registers at all?
bool vectorizable(const ir::Graph& g, const ir::Node& n) {
  if (!ops::vector_row_axes(g, n) || n.outputs.size() != 1 || !n.outputs[0]) return false;
  ProgramBuilder b;
  std::vector<Reg> regs;
  for (ValueId v : n.inputs) {
    if (v && (!loadable(g.value(v).type.dtype) || !g.value(v).type.ranked)) return false;
    regs.push_back(v ? b.load(static_cast<int>(regs.size()), ops::vector_lane(g.value(v).type.dtype)) : kernels::vector::kNoReg);
  }
  auto& out = g.value(n.outputs[0]);
  if (!out.type.ranked || !loadable(out.type.dtype) || out.content) return false;
  auto made = ops::append_vector(g, n, b, std::move(regs));
  if (!made || (*made)[0] == kernels::vector::kNoReg) return false;
  b.store(0, (*made)[0]);
  return b.finish(static_cast<int>(n.inputs.size()), 1).ok();
}

// dims with the last `axes` sizes replaced by 1.
std::vector<Dim> reduced(std::vector<Dim> dims, int axes) {
  for (size_t k = dims.size() - static_cast<size_t>(axes); k < dims.size(); ++k) dims[k] = 1;
  return dims;
}

// Of an operand of an elementwise node, whose result has these dims: its sizes are those, or 1. They count as the same where
// both are open and follow from the same symbols: "floordiv(h - 1, 16) + 1" against "2*floordiv(h - 1, 32) + 2" is 1 for
// tiny h alone, and its node is then computed for each place that reads it, which is right all the same.
bool nearly(const std::vector<Dim>& own, const std::vector<Dim>& dims) {
  if (own.size() != dims.size()) return false;
  for (size_t k = 0; k < own.size(); ++k)
    if (!(own[k] == dims[k]) && (own[k].known() || dims[k].known() || symbols_of(own[k]) != symbols_of(dims[k]))) return false;
  return true;
}

// The operands with a `used` number have, taken together, the region's axes and sizes.
bool cover(const ir::Graph& g, const std::vector<ValueId>& inputs, const std::vector<uint32_t>& used, const std::vector<Dim>& dims) {
  std::vector<bool> found(dims.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& own = g.value(inputs[i]).type.dims;
    if (!used[i] || own.size() > dims.size()) continue;
    for (size_t k = 0, shift = dims.size() - own.size(); k < own.size(); ++k)
      if (own[k] == dims[k + shift]) found[k + shift] = true;
  }
  return std::all_of(found.begin(), found.end(), [](bool f) { return f; });
}

// An operand of that many axes, each of the region's size or 1.
bool fills(const ir::Type& t, const std::vector<Dim>& dims) {
  if (!loadable(t.dtype) || t.dims.size() != dims.size()) return false;
  for (size_t k = 0; k < dims.size(); ++k)
    if (!t.dims[k].is(1) && !(t.dims[k] == dims[k])) return false;
  return true;
}

// Leaves out the inputs that the program does not load: the axes of a reduction say nothing to it, and their
// shape need not broadcast. One that gives the region its axes stays (Pow with an exponent [1,1,1] of 2).
void drop_unread(const ir::Graph& g, const std::vector<Dim>& dims, kernels::vector::Program& p, std::vector<ValueId>& inputs) {
  using kernels::vector::Op;
  auto loads = [](auto& inst) { return inst.op == Op::load || inst.op == Op::load_i32; };
  std::vector<uint32_t> number(inputs.size(), 0);
  for (auto& phase : p.phases)
    for (auto& inst : phase)
      if (loads(inst)) number[inst.imm] = 1;
  for (size_t i = 0; i < inputs.size() && !cover(g, inputs, number, dims); ++i) number[i] |= fills(g.value(inputs[i]).type, dims);
  std::vector<ValueId> kept;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (number[i]) number[i] = static_cast<uint32_t>(kept.size()), kept.push_back(inputs[i]);
  for (auto& phase : p.phases)
    for (auto& inst : phase)
      if (loads(inst)) inst.imm = number[inst.imm];
  p.inputs = static_cast<uint16_t>(kept.size());
  inputs = std::move(kept);
}

class Grower {
 public:
  Grower(ir::Graph& g, PassContext& c) : g_(g), options_(c.options), trace_(c.trace), taken_(g.node_capacity()) {}

  bool run() {
    auto order = g_.order();
    for (size_t i = 0; i < order.size(); ++i) position_[order[i].v] = i;
    for (NodeId id : order) good_[id.v] = vectorizable(g_, g_.node(id)) && in_scope(options_, g_, id).holds;
    bool changed = false;
    for (size_t k = order.size(); k-- > 0;) {
      NodeId id = order[k];
      if (taken_[static_cast<size_t>(id.v)] || !good_[id.v]) continue;
      Region r = grow(id);
      for (NodeId n : r.nodes) taken_[static_cast<size_t>(n.v)] = true;
      if (r.nodes.size() > 1) changed |= replace(r);
    }
    return changed;
  }

 private:
  Region grow(NodeId last) {
    Region r;
    auto& n = g_.node(last);
    r.row_axes = *ops::vector_row_axes(g_, n);
    r.dims = g_.value(n.outputs[0]).type.dims;
    if (r.row_axes) r.dims = g_.value(n.inputs[0]).type.dims;
    r.nodes.push_back(last);
    r.members.insert(last.v);
    for (size_t i = 0; i < r.nodes.size() && r.nodes.size() < kMaxNodes; ++i) {
      auto inputs = g_.node(r.nodes[i]).inputs;
      for (ValueId v : inputs) {
        if (!v || !g_.value(v).producer) continue;
        NodeId p = g_.value(v).producer;
        if (r.members.count(p.v) || taken_[static_cast<size_t>(p.v)]) continue;
        if (!good_[p.v] && !between(p)) continue;
        Verdict verdict = good_[p.v] ? joins(r, p, v) : no(g_.node(p).op == "Cast" ? format("Cast to {} is not computed in registers", name(g_.value(v).type.dtype)) : format("{} stands between elementwise nodes", g_.node(p).op), format("move {} out of the way (before or after the group)", g_.node(p).op));
        if (!verdict) {
          trace_.near_miss({"vector_region", g_.node(last).name, static_cast<int>(r.nodes.size()), static_cast<int>(r.nodes.size()) + 1, g_.node(p).name, verdict.why, verdict.help});
          continue;
        }
        int axes = *ops::vector_row_axes(g_, g_.node(p));
        r.row_axes = std::max(r.row_axes, axes);
        r.stretched |= r.row_axes == 0 && g_.value(v).type.dims != r.dims;
        if (shared(r, v)) r.extra.push_back(v);
        r.nodes.push_back(p);
        r.members.insert(p.v);
      }
    }
    return r;
  }

  // Glue that keeps two elementwise nodes apart is worth a word; other nodes that do not join are not.
  bool between(NodeId p) {
    auto& n = g_.node(p);
    if (!is_glue(n.op) || n.inputs.empty() || !n.inputs[0]) return false;
    NodeId above = g_.value(n.inputs[0]).producer;
    return above && good_[above.v];
  }

  Verdict joins(const Region& r, NodeId p, ValueId v) {
    auto& value = g_.value(v);
    if (shared(r, v)) {
      Verdict extra = further_output(r, v);
      if (!extra) return extra;
    }
    // Registers hold 32 bits: a Cast to fewer rounds only when its result is stored.
    DType t = value.type.dtype;
    if (g_.node(p).op == "Cast" && (t == DType::f16 || t == DType::bf16)) return no(format("{} rounds to {}", g_.node(p).name, name(t)), "remove the Cast");
    if (!ops::vector_dtype(value.type.dtype)) return no(format("{} is {}, which registers do not hold", value.name, name(value.type.dtype)));
    int axes = *ops::vector_row_axes(g_, g_.node(p));
    if (axes && r.row_axes && axes != r.row_axes) return no("it reduces other axes than the region");
    if (axes && r.stretched) return no("a size of the region may have to be broadcast");
    int row = std::max(axes, r.row_axes);
    if (row > static_cast<int>(r.dims.size())) return no("its row is longer than the region's shape");
    if (axes && g_.value(g_.node(p).inputs[0]).type.dims != r.dims) return no(format("it reduces rows of another shape than {}", ge::text(r.dims)));
    if (value.type.dims == r.dims) return operands(r, p);
    if (row && value.type.dims == reduced(r.dims, row) && (axes || r.row_axes)) return operands(r, p);
    if (!row && nearly(value.type.dims, r.dims)) return shared(r, v) ? stretched_output(r, v) : operands(r, p);
    return no(format("{} has shape {}, the region {}", value.name, ir::text(value.type), ge::text(r.dims)));
  }

  bool shared(const Region& r, ValueId v) const {
    auto& uses = g_.value(v).uses;
    return g_.is_output(v) || std::any_of(uses.begin(), uses.end(), [&](auto& u) { return !r.members.count(u.node.v); });
  }

  // A value that others read becomes one more output of the region, if they all come after its last node:
  // then no way leads from them back into it, and the order of nodes stays as it is.
  Verdict further_output(const Region& r, ValueId v) const {
    if (r.extra.size() >= kMaxExtra) return no("the region would have too many outputs");
    size_t last = position_.at(r.nodes[0].v);
    for (auto& u : g_.value(v).uses)
      if (!r.members.count(u.node.v) && position_.at(u.node.v) < last)
        return no(format("{} is also read by {}, before the region ends", g_.value(v).name, g_.node(u.node).name));
    return yes();
  }

  // What the region stores has its shape.
  Verdict stretched_output(const Region& r, ValueId v) const {
    auto& uses = g_.value(v).uses;
    auto other = std::find_if(uses.begin(), uses.end(), [&](auto& u) { return !r.members.count(u.node.v); });
    return no(format("{} is also {}, and may have to be broadcast to {}", g_.value(v).name, other == uses.end() ? "an output of the graph" : "read by " + g_.node(other->node).name, ge::text(r.dims)), "give the inputs' shapes with --input_shape");
  }

  Verdict operands(const Region& r, NodeId p) {
    std::set<int> inputs;
    auto add = [&](NodeId id) {
      for (ValueId v : g_.node(id).inputs)
        if (v) inputs.insert(v.v);
    };
    for (NodeId id : r.nodes) add(id);
    add(p);
    return inputs.size() <= kMaxOperands + r.nodes.size() ? yes() : no("the region would read too many operands");
  }

  bool replace(const Region& r) {
    std::vector<NodeId> nodes = r.nodes;
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return position_[a.v] < position_[b.v]; });
    ProgramBuilder b;
    std::map<int, Reg> reg;
    std::vector<ValueId> inputs;
    for (NodeId id : nodes) {
      auto& n = g_.node(id);
      std::vector<Reg> in;
      for (ValueId v : n.inputs) in.push_back(v ? operand(r, v, b, reg, inputs) : kernels::vector::kNoReg);
      auto made = ops::append_vector(g_, n, b, std::move(in));
      if (!made) return false;
      reg[n.outputs[0].v] = (*made)[0];
    }
    std::vector<ValueId> outs = {g_.node(nodes.back()).outputs[0]};
    outs.insert(outs.end(), r.extra.begin(), r.extra.end());
    std::vector<int64_t> dtypes, is_reduced;
    for (size_t i = 0; i < outs.size(); ++i) {
      auto& type = g_.value(outs[i]).type;
      b.store(static_cast<int>(i), reg[outs[i].v]);
      dtypes.push_back(static_cast<int64_t>(type.dtype));
      is_reduced.push_back(r.row_axes && type.dims != r.dims);
    }
    auto program = b.finish(static_cast<int>(inputs.size()), static_cast<int>(outs.size()));
    if (!program.ok() || inputs.size() > kMaxOperands) {
      trace_.near_miss({"vector_region", g_.node(nodes.back()).name, static_cast<int>(nodes.size()), static_cast<int>(nodes.size()), g_.node(nodes.back()).name, program.ok() ? "the region reads too many operands" : program.error().message, ""});
      return false;
    }
    drop_unread(g_, r.dims, *program, inputs);
    ir::Attrs attrs;
    attrs["program"] = kernels::vector::print(*program);
    attrs["row_axes"] = int64_t(r.row_axes);
    attrs["dtypes"] = std::move(dtypes);
    attrs["reduced"] = std::move(is_reduced);
    return put(nodes, std::move(inputs), outs, std::move(attrs));
  }

  // Constants of one element go into the program, unless a region of one element may have its axis from them.
  Reg operand(const Region& r, ValueId v, ProgramBuilder& b, std::map<int, Reg>& reg, std::vector<ValueId>& inputs) {
    auto it = reg.find(v.v);
    if (it != reg.end()) return it->second;
    auto scalar = scalar_constant(g_, v);
    auto most = static_cast<size_t>(r.dims.size() == 1 && r.dims[0].is(1) ? 0 : 1);
    Reg made;
    if (scalar && g_.value(v).type.dtype == DType::f32 && static_cast<size_t>(g_.value(v).type.rank()) <= most) {
      made = b.constant(static_cast<float>(*scalar));
    } else {
      made = b.load(static_cast<int>(inputs.size()), ops::vector_lane(g_.value(v).type.dtype));
      inputs.push_back(v);
    }
    return reg[v.v] = made;
  }

  bool put(const std::vector<NodeId>& nodes, std::vector<ValueId> inputs, const std::vector<ValueId>& outs, ir::Attrs attrs) {
    Match m;
    m.g = &g_;
    for (size_t i = 0; i < nodes.size(); ++i) m.nodes[format("n{}", i)] = nodes[i];
    auto origins = m.origins();
    NodeId last = nodes.back();
    auto id = g_.add_node("ge.Vector", std::move(inputs), std::vector<ValueId>(outs.size()), std::move(attrs), g_.node(last).name + ".region");
    g_.node(id).rank = g_.node(last).rank;
    g_.node(id).origin = std::move(origins);
    position_[id.v] = position_[last.v];
    // The values keep name, type and layout.
    for (size_t i = 0; i < outs.size(); ++i) g_.set_output(id, static_cast<int>(i), outs[i]);
    for (size_t i = nodes.size(); i-- > 0;) g_.erase(nodes[i]);
    trace_.fused("vector_region", g_, id);
    return true;
  }

  ir::Graph& g_;
  const PassOptions& options_;
  Trace& trace_;
  std::vector<bool> taken_;
  std::map<int, bool> good_;
  std::map<int, size_t> position_;
};

}  // namespace

Result<bool> vector_regions(ir::Graph& g, PassContext& c) {
  if (c.options.disabled.count("vector_region")) {
    c.trace.off("vector_region");
    return false;
  }
  return Grower(g, c).run();
}

}  // namespace ge::passes
