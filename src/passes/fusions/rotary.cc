//   x * cos + Concat(-hi, lo) * sin                          becomes   ge.Rotary(x, cos, sin)
//   Concat(lo * cos - hi * sin, hi * cos + lo * sin)         likewise
// lo and hi: the halves of x along its last axis, by Slice or Split.
#include "base/text.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

struct Half {
  ValueId of;
  int which = 0;   // 0: the first
  NodeId node;
};

// The half of a tensor that v is, if it is one.
std::optional<Half> half(const ir::Graph& g, ValueId v) {
  NodeId id = g.value(v).producer;
  if (!id) return std::nullopt;
  auto& n = g.node(id);
  if (n.op != "Slice" && n.op != "Split") return std::nullopt;
  auto &in = g.value(n.inputs[0]).type, &out = g.value(v).type;
  if (!in.ranked || !out.ranked || in.rank() < 1 || !in.dims.back().known()) return std::nullopt;
  if (!out.dims.back().known() || out.dims.back().value() * 2 != in.dims.back().value()) return std::nullopt;
  for (size_t i = 0; i + 1 < in.dims.size(); ++i)
    if (!(in.dims[i] == out.dims[i])) return std::nullopt;
  if (n.op == "Split") {
    if (n.outputs.size() != 2) return std::nullopt;
    return Half{n.inputs[0], n.outputs[1] == v ? 1 : 0, id};
  }
  // The sizes say that one axis is cut in half: where it starts and that it goes on by ones is left.
  auto one = [&](size_t i, const Dim& otherwise) {
    if (i >= n.inputs.size() || !n.inputs[i]) return std::optional(otherwise);
    auto e = g.elements(n.inputs[i]);
    return e && e->size() == 1 ? std::optional((*e)[0]) : std::nullopt;
  };
  auto start = one(1, 0), axis = one(3, 0), step = one(4, 1);
  if (!start || !axis || !step || !step->is(1)) return std::nullopt;
  if (!axis->is(-1) && !axis->is(in.rank() - 1)) return std::nullopt;
  int64_t width = out.dims.back().value();
  if (start->is(0) || start->is(-2 * width)) return Half{n.inputs[0], 0, id};
  if (start->is(width) || start->is(-width)) return Half{n.inputs[0], 1, id};
  return std::nullopt;
}

class Finder {
 public:
  Finder(const ir::Graph& g, NodeId anchor) : g_(g), anchor_(anchor) {}
  ValueId x, cos, sin;
  Match match;
  NearMiss miss;

  // Sees through nodes that only move data, to name the one that stands in the way.
  bool almost() {
    through_ = true;
    match.nodes.clear();
    auto& n = g_.node(anchor_);
    miss = {"rotary", n.name, 3, 4, "", "", "", true};
    if (n.inputs.size() == 2 && n.op == "Add") whole();
    if (n.inputs.size() == 2 && n.op == "Concat") halves();
    return x && between_ && !fail(between_, format("{} stands between the halves and the sum", g_.node(between_).op), format("move {} out of the way", g_.node(between_).op));
  }

  bool find(const PassOptions& o) {
    auto& n = g_.node(anchor_);
    miss = {"rotary", n.name, 2, 4, "", "", "", true};
    match.g = &g_;
    match.anchor = anchor_;
    match.nodes = {{"y", anchor_}};
    if (n.inputs.size() != 2 || !(n.op == "Add" ? whole() : n.op == "Concat" ? halves() : false)) return false;
    if (!fits()) return false;
    if (o.disabled_at.count({"rotary", n.name})) return fail(anchor_, beyond_eps().why, beyond_eps().help);
    for (auto& [name, id] : match.nodes)
      if (Verdict v = in_scope(o, g_, id); !v) return fail(id, v.why, v.help);
    return true;
  }

 private:
  bool fail(NodeId blocker, std::string why, std::string help = "") {
    miss.blocker = g_.node(blocker).name;
    miss.why = std::move(why);
    miss.help = std::move(help);
    return false;
  }
  const ir::Node* made_by(ValueId v, const char* op) {
    NodeId id = g_.value(seen_through(v, [&](const ir::Node& n) { return n.op == op; })).producer;
    return id && g_.node(id).op == op ? &g_.node(id) : nullptr;
  }
  std::optional<Half> half_of(ValueId v) {
    return half(g_, seen_through(v, [&](const ir::Node& n) { return n.op == "Slice" || n.op == "Split"; }));
  }
  // v, or with through_ what glue moves to v if a node that is wanted made it.
  template <class Wanted>
  ValueId seen_through(ValueId v, Wanted wanted) {
    NodeId first = g_.value(v).producer;
    if (!through_ || !first || wanted(g_.node(first))) return v;
    ValueId at = v;
    for (int depth = 0; depth < 4; ++depth) {
      NodeId id = g_.value(at).producer;
      if (!id) return v;
      if (wanted(g_.node(id))) {
        between_ = first;
        return at;
      }
      if (!is_glue(g_.node(id).op)) return v;
      at = g_.node(id).inputs[0];
    }
    return v;
  }
  // The node joins the group; its value must have no other reader.
  bool take(ValueId v) {
    if (through_) return true;
    match.nodes[format("n{}", match.nodes.size())] = g_.value(v).producer;
    if (g_.only_reader(v)) return true;
    Verdict shared = read_by_others(g_, v, [&](NodeId id) { return g_.node(id).op == "Mul" || g_.node(id).op == "Concat" || id == anchor_; }, anchor_);
    miss.blocker = shared.node, miss.why = shared.why, miss.help = shared.help;
    return false;
  }

  void cut(const Half& lo, const Half& hi) {
    match.nodes["lo"] = lo.node;
    if (hi.node != lo.node) match.nodes["hi"] = hi.node;
  }

  // x * cos + Concat(-hi, lo) * sin
  bool whole() {
    for (int turn = 0; turn < 2; ++turn) {
      ValueId product = g_.node(anchor_).inputs[static_cast<size_t>(turn)], rotated = g_.node(anchor_).inputs[static_cast<size_t>(1 - turn)];
      auto *left = made_by(product, "Mul"), *right = made_by(rotated, "Mul");
      if (!left || !right) return false;
      for (size_t k : {0, 1}) {
        auto* turned = made_by(right->inputs[k], "Concat");
        if (!turned || turned->inputs.size() != 2) continue;
        auto* negated = made_by(turned->inputs[0], "Neg");
        auto hi = negated ? half_of(negated->inputs[0]) : std::nullopt, lo = half_of(turned->inputs[1]);
        if (!hi || !lo || hi->of != lo->of || hi->which != 1 || lo->which != 0 || !last_axis(*turned)) continue;
        for (size_t j : {0, 1})
          if (left->inputs[j] == hi->of) x = hi->of, cos = left->inputs[1 - j], sin = right->inputs[1 - k];
        if (!x) continue;
        bool own = take(product) && take(rotated) && take(right->inputs[k]) && take(turned->inputs[0]);
        cut(*lo, *hi);
        return own;
      }
    }
    return false;
  }

  // Concat(lo * cos - hi * sin, hi * cos + lo * sin)
  bool halves() {
    auto& n = g_.node(anchor_);
    auto *first = made_by(n.inputs[0], "Sub"), *second = made_by(n.inputs[1], "Add");
    if (!first || !second || !last_axis(n)) return false;
    auto a = turn(first->inputs[0]), b = turn(first->inputs[1]), c = turn(second->inputs[0]), d = turn(second->inputs[1]);
    if (!a || !b || !c || !d) return false;
    if (c->half.which == 0) std::swap(c, d);
    if (a->half.of != b->half.of || a->half.of != c->half.of || a->half.of != d->half.of) return false;
    if (a->half.which != 0 || b->half.which != 1 || c->half.which != 1 || d->half.which != 0) return false;
    if (a->table != c->table || b->table != d->table) return fail(anchor_, "the halves are turned by different tables");
    x = a->half.of, cos = a->table, sin = b->table;
    for (ValueId v : {n.inputs[0], n.inputs[1], first->inputs[0], first->inputs[1], second->inputs[0], second->inputs[1]})
      if (!take(v)) return false;
    cut(a->half, b->half);
    return true;
  }
  struct Turn {
    Half half;
    ValueId table;
  };
  std::optional<Turn> turn(ValueId v) {
    auto* n = made_by(v, "Mul");
    if (!n) return std::nullopt;
    for (size_t i : {0, 1})
      if (auto h = half_of(n->inputs[i])) return Turn{*h, n->inputs[1 - i]};
    return std::nullopt;
  }

  bool last_axis(const ir::Node& n) const {
    int64_t axis = ir::attr_int(n, "axis", 0);
    return axis == -1 || axis == g_.value(n.outputs[0]).type.rank() - 1;
  }

  bool fits() {
    auto& type = g_.value(x).type;
    if (type.dtype != DType::f32) return fail(anchor_, format("the values are {}, f32 is expected", name(type.dtype)));
    if (type.rank() > 4 || g_.value(g_.node(anchor_).outputs[0]).type.dims != type.dims)
      return fail(anchor_, format("{} is turned into {}", ir::text(type), ir::text(g_.value(g_.node(anchor_).outputs[0]).type)));
    int64_t width = type.dims.back().value();
    for (ValueId v : {cos, sin}) {
      auto& t = g_.value(v).type;
      bool good = t.dtype == DType::f32 && t.ranked && t.rank() >= 1 && t.rank() <= type.rank();
      for (size_t i = 1; good && i < t.dims.size(); ++i) {
        auto& d = t.dims[t.dims.size() - 1 - i];
        good = d.is(1) || d == type.dims[type.dims.size() - 1 - i];
      }
      if (!good || !(t.dims.back().is(width) || t.dims.back().is(width / 2)))
        return fail(anchor_, format("the table {} does not fit {}", ir::text(t), ir::text(type)));
    }
    return true;
  }

  const ir::Graph& g_;
  NodeId anchor_;
  bool through_ = false;
  NodeId between_;
};

Result<bool> search(ir::Graph& g, PassContext& c) {
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || (g.node(id).op != "Add" && g.node(id).op != "Concat")) continue;
    Finder f(g, id);
    if (!f.find(c.options)) {
      if (!f.miss.why.empty() || f.almost()) c.trace.near_miss(f.miss);
      continue;
    }
    std::string anchor = g.node(id).name;
    NodeId made = g.insert("ge.Rotary", {f.x, f.cos, f.sin}, {g.value(f.x).type}, {}, id);
    take_over(g, f.match, g.node(id).outputs[0], made);
    erase_matched(g, f.match);
    c.trace.fused("rotary", g, made, anchor);
    c.trace.drop_near_misses_at(anchor, "rotary");
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "rotary", .doc = "rotary position embedding spelt out, by halves", .order = 0, .search = search});

}  // namespace
}  // namespace ge::passes
