//   MatMul(q, kt) -> [Mul|Div(scale)] -> [Add(mask) | Where(mask, ., number)] -> Softmax -> MatMul(., v)
// becomes ge.Attention. Grown from the Softmax: upwards through masks and scale to the first product, downwards
// through a guard Where(IsNaN(p), 0, p) to the second. A mask that only hides later keys becomes `causal`.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/text.h"
#include "passes/fusions/banded.h"
#include "passes/fusions/cube_group.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr double kHidden = -1e9;   // a score that adds nothing to a row's softmax

struct Attention {
  ValueId q, kt, v, mask, out;
  double scale = 1, masked = -std::numeric_limits<double>::infinity();
  bool mask_hides = false;     // the mask says what is hidden, not what is seen
  int64_t causal = 0, rows = 1;
  std::vector<int64_t> q_perm, kt_perm;   // of Transposes that stand behind a scale: they stay, the scale goes
  std::vector<NodeId> nodes;   // found so far
};

class Finder {
 public:
  Finder(const ir::Graph& g, NodeId softmax) : g_(g), softmax_(softmax) {}
  Attention found;
  NearMiss miss;               // of the failure
  std::vector<NearMiss> outside;   // scales that stay before a fused group

  // The guards that options put on the rule.
  bool allowed(const PassOptions& o) {
    std::vector<std::string> reasons;
    auto& q = g_.value(found.q).type;
    Dim heads = q.rank() == 4 ? q.dims[1] : Dim(1);
    auto& allowed_heads = o.attention.head_num;
    if (!allowed_heads.empty() && !(heads.known() && std::find(allowed_heads.begin(), allowed_heads.end(), heads.value()) != allowed_heads.end())) {
      std::vector<std::string> list;
      for (int64_t h : allowed_heads) list.push_back(format("{}", h));
      reasons.push_back(format("guard head_num={}: {} found", join(list, ","), heads.text()));
    }
    if (o.attention.scale && std::abs(found.scale - *o.attention.scale) > 1e-3 * std::abs(*o.attention.scale))
      reasons.push_back(format("guard scale={:g}: {:.6g} found", *o.attention.scale, found.scale));
    if (o.disabled_at.count({"attention", g_.node(softmax_).name})) reasons.push_back("the fused result would differ by more than the rule's eps");
    if (!reasons.empty()) return fail(softmax_, join(reasons, "; "), "change [flash_attention_fusion] in the fusion_switch_file");
    for (NodeId id : found.nodes) {
      Verdict v = in_scope(o, g_, id);
      if (!v) return fail(id, v.why, v.help);
    }
    return true;
  }

  bool find() {
    miss = {"attention", g_.node(softmax_).name, 1, 3, "", "", "", true};
    auto& n = g_.node(softmax_);
    auto& type = g_.value(n.outputs[0]).type;
    if (!type.ranked || type.rank() < 2) return false;
    int64_t axis = ir::attr_int(n, "axis", -1);
    if (axis != -1 && axis != type.rank() - 1) return false;
    found.nodes.push_back(softmax_);
    if (!scores(n.inputs[0])) return false;
    miss.matched = 2;
    if (!product() || !shapes()) return false;
    found.q = unscaled(found.q, found.q_perm);
    found.kt = unscaled(found.kt, found.kt_perm);
    return true;
  }

 private:
  bool fail(NodeId blocker, std::string why, std::string help = "") {
    miss.blocker = blocker ? g_.node(blocker).name : "";
    miss.why = std::move(why);
    miss.help = std::move(help);
    return false;
  }
  // Read by the group alone; else the blocker is the other reader.
  bool private_value(ValueId v, NodeId also = {}) {
    if (g_.reader_count(v) == 1 && !g_.is_output(v)) return true;
    Verdict shared = read_by_others(g_, v, [&](NodeId id) { return id == also || std::find(found.nodes.begin(), found.nodes.end(), id) != found.nodes.end() || g_.node(id).op == "MatMul"; }, found.nodes.back());
    miss.blocker = shared.node, miss.why = shared.why, miss.help = shared.help;
    return false;
  }

  // Upwards from the Softmax's input.
  bool scores(ValueId v) {
    for (int step = 0; step < 6; ++step) {
      NodeId id = g_.value(v).producer;
      if (!id) return false;
      auto& n = g_.node(id);
      bool near = n.op == "MatMul" || n.op == "Add" || n.op == "Mul" || n.op == "Div" || n.op == "Where";
      if (!near) {
        // Only what still looks like attention is worth a word: a product above this node.
        ValueId up = v;
        NodeId above = id;
        for (int depth = 0; depth < 4 && above && g_.node(above).op != "MatMul"; ++depth) {
          if (depth && !is_glue(g_.node(above).op)) break;
          up = g_.node(above).inputs.empty() ? ValueId{} : g_.node(above).inputs[0];
          above = up ? g_.value(up).producer : NodeId{};
        }
        if (above && g_.node(above).op == "MatMul") fail(id, format("{} stands between the product and the Softmax", n.op), is_glue(n.op) ? format("move {} out of the way", n.op) : "between them stand a factor, masks that are added or selected by, and nothing else");
        return false;
      }
      if (n.op == "MatMul") {
        if (!private_value(v)) return false;
        found.q = n.inputs[0];
        found.kt = n.inputs[1];
        found.nodes.push_back(id);
        return true;
      }
      auto scalar = scalar_constant(g_, n.inputs[1]);
      auto left = n.op == "Mul" ? scalar_constant(g_, n.inputs[0]) : std::nullopt;
      if (n.op == "Add") {
        bool first = leads_to_product(n.inputs[0]);
        if (!first && !leads_to_product(n.inputs[1])) return false;
        if (!private_value(v) || !added(id, n.inputs[first ? 0 : 1], n.inputs[first ? 1 : 0])) return false;
        v = n.inputs[first ? 0 : 1];
      } else if (n.op == "Where") {
        bool hides = leads_to_product(n.inputs[2]);
        if (!hides && !leads_to_product(n.inputs[1])) return false;
        if (!private_value(v) || !selected(id, hides)) return false;
        v = n.inputs[hides ? 2 : 1];
      } else {
        if (!scalar && !left) return fail(id, format("the factor of {} is not one constant number", n.op), "make it one constant number");
        if (!private_value(v)) return false;
        found.scale *= n.op == "Div" ? 1 / *scalar : scalar ? *scalar : *left;
        if (g_.value(n.inputs[scalar ? 0 : 1]).type.rank() != g_.value(v).type.rank()) return fail(id, "the scale gives the scores further axes", "give the scale no more axes than the scores have");
        v = n.inputs[scalar ? 0 : 1];
      }
      found.nodes.push_back(id);
    }
    return false;
  }

  // Equal, but for sizes at which the model itself fails: a slice of a constant is min(its size, keys) long.
  static bool covers(const Dim& mask, const Dim& scores) {
    if (mask == scores) return true;
    auto* atom = mask.as_call();
    return atom && atom->call == DimCall::min && (atom->args[0] == scores || atom->args[1] == scores);
  }

  // Is `seen` (in: seen, out: not) the shape of a causal mask of the scores? Which: 1 or 2, else 0.
  int64_t causal_kind(const Banded& seen, ValueId mask, bool infinite) const {
    auto &scores = g_.value(g_.node(softmax_).outputs[0]).type.dims, &m = g_.value(mask).type.dims;
    if (seen.uniform() || m.size() < 2) return 0;
    const Dim &queries = scores[scores.size() - 2], &keys = scores.back();
    if (!covers(m[m.size() - 2], queries) || !covers(m.back(), keys)) return 0;
    if (seen.offset.is(0)) return 1;
    // With fewer keys than queries some rows see nothing; a finite number there would count.
    Dim past = keys - queries;
    return seen.offset == past && (infinite || past.lower_bound() >= 0) ? 2 : 0;
  }

  // A mask of more matrices than there are of scores would repeat them.
  bool grows(ValueId scores, ValueId mask) const {
    auto &s = g_.value(scores).type.dims, &m = g_.value(mask).type.dims;
    if (m.size() > s.size()) return true;
    for (size_t i = 0; i + 2 < m.size(); ++i)
      if (!m[i].is(1) && !(m[i] == s[s.size() - m.size() + i])) return true;
    return false;
  }

  // Add(scores, mask)
  bool added(NodeId id, ValueId scores, ValueId mask) {
    if (grows(scores, mask)) return fail(id, "the mask makes more scores than there are", "give the mask no sizes that the scores do not have");
    auto band = banded(g_, mask);
    if (band && band->in == 0 && band->out * found.scale <= kHidden) {
      if (int64_t kind = causal_kind(*band, mask, std::isinf(band->out)); kind && !found.causal) {
        found.causal = kind;
        return true;
      }
    }
    if (found.mask || (band && band->uniform())) return fail(id, "a second sum stands before the Softmax", "add up the masks before");
    if (found.scale != 1) return fail(id, "the mask is scaled together with the scores", "scale the scores before the mask is added");
    found.mask = mask;
    return true;
  }

  // Where(mask, scores, number), or with `hides` Where(mask, number, scores)
  bool selected(NodeId id, bool hides) {
    auto& n = g_.node(id);
    ValueId scores = n.inputs[hides ? 2 : 1];
    auto number = scalar_constant(g_, n.inputs[hides ? 1 : 2]);
    if (!number) return fail(id, "what stands for hidden scores is not one constant number", "make it one constant number");
    if (g_.value(scores).type.dims != g_.value(n.outputs[0]).type.dims) return fail(id, "the mask makes more scores than there are", "give the mask no sizes that the scores do not have");
    double masked = *number * found.scale;
    if (!(masked < std::numeric_limits<double>::infinity())) return fail(id, format("hidden scores become {:g}", masked));
    auto band = banded(g_, n.inputs[0]);
    if (band && masked <= kHidden) {
      Banded seen = hides ? Banded{double(band->in == 0), double(band->out == 0), band->offset} : *band;
      int64_t kind = seen.in != 0 && seen.out == 0 ? causal_kind(seen, n.inputs[0], std::isinf(masked)) : 0;
      if (kind && !found.causal) {
        found.causal = kind;
        return true;
      }
    }
    if (found.mask) return fail(id, "a second mask stands before the Softmax", "join the masks before");
    found.mask = n.inputs[0];
    found.mask_hides = hides;
    found.masked = masked;
    return true;
  }

  bool leads_to_product(ValueId v) const {
    for (int step = 0; step < 8; ++step) {
      NodeId id = g_.value(v).producer;
      if (!id) return false;
      auto& n = g_.node(id);
      if (n.op == "MatMul") return true;
      if (n.op == "Where") v = scalar_constant(g_, n.inputs[1]) ? n.inputs[2] : n.inputs[1];
      else if (n.op == "Mul" || n.op == "Div" || is_glue(n.op)) v = scalar_constant(g_, n.inputs[0]) ? n.inputs[1] : n.inputs[0];
      else if (n.op == "Add") return leads_to_product(n.inputs[0]) || leads_to_product(n.inputs[1]);
      else return false;
    }
    return false;
  }

  // p, or Where(IsNaN(p), 0, p).
  ValueId guarded(ValueId p) {
    auto& uses = g_.value(p).uses;
    if (g_.is_output(p) || uses.size() != 2) return p;
    for (size_t i = 0; i < 2; ++i) {
      NodeId is_nan = uses[i].node, where = uses[1 - i].node;
      auto &n = g_.node(is_nan), &w = g_.node(where);
      if (n.op != "IsNaN" || w.op != "Where" || w.inputs[0] != n.outputs[0] || w.inputs[2] != p) continue;
      auto zero = scalar_constant(g_, w.inputs[1]);
      if (!zero || *zero != 0 || g_.only_reader(n.outputs[0]) != where) continue;
      found.rows = 2;
      found.nodes.insert(found.nodes.end(), {is_nan, where});
      return w.outputs[0];
    }
    return p;
  }

  bool product() {
    ValueId p = guarded(g_.node(softmax_).outputs[0]);
    auto& uses = g_.value(p).uses;
    if (std::none_of(uses.begin(), uses.end(), [&](auto& u) { return g_.node(u.node).op == "MatMul" || is_glue(g_.node(u.node).op); })) return false;
    if (!private_value(p)) return false;
    NodeId id = g_.only_reader(p);
    auto& n = g_.node(id);
    if (n.op != "MatMul" || n.inputs[0] != p) return fail(id, format("{} reads the Softmax, a product with the values is expected", n.op), is_glue(n.op) ? format("move {} out of the way", n.op) : "");
    found.v = n.inputs[1];
    found.out = n.outputs[0];
    found.nodes.push_back(id);
    miss.matched = 3;
    return true;
  }

  // Some exporters scale q and k before the product: Mul or Div by one number goes into the scale.
  ValueId unscaled(const ValueId whole, std::vector<int64_t>& perm) {
    ValueId v = whole;
    NodeId id = g_.value(v).producer, transpose;
    if (!id) return whole;
    if (g_.node(id).op == "Transpose") {
      transpose = id;
      v = g_.node(id).inputs[0];
      if (!(id = g_.value(v).producer)) return whole;
    }
    auto& n = g_.node(id);
    if (n.op != "Mul" && n.op != "Div") return whole;
    auto right = scalar_constant(g_, n.inputs[1]);
    auto left = n.op == "Mul" ? scalar_constant(g_, n.inputs[0]) : std::nullopt;
    if (!right && !left) return whole;
    if (!private_value(v, transpose) || (transpose && !private_value(whole))) {
      outside.push_back({"attention", n.name, 1, 2, std::exchange(miss.blocker, ""), "the scale stays before the product: " + std::exchange(miss.why, ""), std::exchange(miss.help, "")});
      return whole;
    }
    ValueId x = n.inputs[right ? 0 : 1];
    if (g_.value(x).type.dims != g_.value(v).type.dims) return whole;
    found.scale *= n.op == "Div" ? 1 / *right : right ? *right : *left;
    found.nodes.insert(found.nodes.begin(), id);
    if (transpose) {
      found.nodes.insert(found.nodes.begin() + 1, transpose);
      perm = ir::attr_ints(g_.node(transpose), "perm");
    }
    return x;
  }

  bool shapes() {
    auto &q = g_.value(found.q).type, &kt = g_.value(found.kt).type, &v = g_.value(found.v).type;
    NodeId at = found.nodes[found.nodes.size() - 2];
    if (q.dtype != DType::f32) return fail(at, format("the values are {}, f32 is expected", name(q.dtype)));
    if (!q.ranked || !kt.ranked || !v.ranked || q.rank() < 2 || q.rank() > 4 || q.rank() != kt.rank() || q.rank() != v.rank())
      return fail(at, format("q, k and v have shapes {}, {}, {}; equal ranks from 2 to 4 are expected", ir::text(q), ir::text(kt), ir::text(v)));
    for (size_t i = 0; i + 2 < q.dims.size(); ++i)
      if (!(q.dims[i] == kt.dims[i]) || !(q.dims[i] == v.dims[i])) return fail(at, format("q, k and v have leading sizes {}, {}, {}", q.dims[i].text(), kt.dims[i].text(), v.dims[i].text()));
    if (found.mask) {
      auto& mask = g_.value(found.mask).type;
      if ((mask.dtype != DType::f32 && mask.dtype != DType::boolean) || !mask.ranked || mask.rank() > q.rank()) return fail(at, format("the mask is {}", ir::text(mask)));
      std::vector<Dim> scores = q.dims;
      scores.back() = kt.dims.back();
      for (size_t i = 0; i < mask.dims.size(); ++i) {
        auto& m = mask.dims[mask.dims.size() - 1 - i];
        if (!m.is(1) && !(m == scores[scores.size() - 1 - i])) return fail(at, format("the mask {} does not broadcast to the scores {}", ir::text(mask), ge::text(scores)));
      }
    }
    return true;
  }

  const ir::Graph& g_;
  NodeId softmax_;
};

ir::NodeId replace(ir::Graph& g, const Attention& a, NodeId anchor) {
  Match m;   // for take_over and erase_matched
  m.g = &g;
  m.anchor = anchor;
  for (size_t i = 0; i < a.nodes.size(); ++i) m.nodes[format("n{}", i)] = a.nodes[i];
  // It stands where the last product stood: all operands are known there.
  auto turned = [&](ValueId x, const std::vector<int64_t>& perm) {
    if (perm.empty()) return x;
    auto type = g.value(x).type;
    for (size_t i = 0; i < perm.size(); ++i) type.dims[i] = g.value(x).type.dims[static_cast<size_t>(perm[i])];
    return g.node(g.insert("Transpose", {x}, {type}, {{"perm", perm}}, a.nodes.back())).outputs[0];
  };
  std::vector<ValueId> inputs = {turned(a.q, a.q_perm), turned(a.kt, a.kt_perm), a.v};
  if (a.mask) inputs.push_back(a.mask);
  if (a.mask_hides) inputs[3] = g.node(g.insert("Not", {a.mask}, {g.value(a.mask).type}, {}, a.nodes.back())).outputs[0];
  ir::Attrs attrs = {{"scale", a.scale}, {"rows", a.rows}};
  if (a.causal) attrs["causal"] = a.causal;
  if (std::isfinite(a.masked)) attrs["masked"] = a.masked;
  auto id = g.insert("ge.Attention", std::move(inputs), {g.value(a.out).type}, std::move(attrs), a.nodes.back());
  take_over(g, m, a.out, id);
  erase_matched(g, m);
  return id;
}

Result<bool> search(ir::Graph& g, PassContext& c) {
  Trace& trace = c.trace;
  bool changed = false;
  for (NodeId id : g.order()) {
    if (g.node(id).dead || g.node(id).op != "Softmax") continue;
    Finder finder(g, id);
    if (!finder.find() || !finder.allowed(c.options)) {
      if (!finder.miss.why.empty()) trace.near_miss(finder.miss);
      continue;
    }
    std::string anchor = g.node(id).name;
    trace.fused("attention", g, replace(g, finder.found, id), anchor);
    trace.drop_near_misses_at(anchor, "attention");
    for (auto& m : finder.outside) trace.near_miss(m);
    changed = true;
  }
  return changed;
}

const RegisterFusion r(Fusion{.name = "attention", .doc = "two products with a Softmax between them, tiled", .order = 0, .search = search});

}  // namespace
}  // namespace ge::passes
