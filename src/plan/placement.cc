#include "plan/placement.h"

#include <algorithm>
#include <map>

#include "ops/physical.h"

namespace ge::plan {

using ir::NodeId;
using ir::ValueId;
using ops::Strided;
using ops::storage_view;

namespace {

bool decided_by_data(const ir::Graph& g, const ir::Type& t) {
  return std::any_of(t.dims.begin(), t.dims.end(), [&](auto& d) { return g.decided_by_data(d); });
}

// The executor task that makes it tells its size: a size that other tasks decide is known before.
bool is_open(const ir::Graph& g, ValueId v) {
  auto& x = g.value(v);
  if (!x.producer) return false;
  auto* op = ops::find(g.node(x.producer).op);
  if (!op || !op->executor) return false;
  if (x.type.kind != ir::TypeKind::tensor || !x.type.ranked) return true;
  std::vector<std::string> names;
  for (auto& d : x.type.dims)
    if (g.decided_by_data(d)) d.symbols(names);
  std::string own = ops::own_symbol(g, g.node(x.producer), "");
  return std::any_of(names.begin(), names.end(), [&](auto& s) { return s.starts_with(own); });
}

Dim element_count(const ir::Type& t) {
  return t.kind == ir::TypeKind::tensor && t.ranked ? product(t.dims) : Dim(0);
}

}  // namespace

Placement::Placement(const ir::Graph& g, const PlacementOptions& options) : g_(g), options_(options) {
  places_.resize(g.value_capacity());
  view_nodes_.resize(g.node_capacity());
  output_of_.assign(g.value_capacity(), -1);
  auto order = g.order();
  place_states(order);
  place_inputs();
  place_outputs();
  if (options_.views) place_parts(order);
  place_rest(order);
}

int Placement::add_storage(Storage s) {
  storages_.push_back(std::move(s));
  return static_cast<int>(storages_.size()) - 1;
}

void Placement::place_inputs() {
  for (size_t i = 0; i < g_.inputs.size(); ++i) {
    auto& place = places_[static_cast<size_t>(g_.inputs[i].v)];
    if (place.storage >= 0) continue;
    auto& v = g_.value(g_.inputs[i]);
    place = {add_storage({StorageKind::input, static_cast<int>(i), g_.inputs[i], v.type.dtype, element_count(v.type)}), Strided::dense(v.type.dims)};
  }
}

void Placement::merge(int from, int to) {
  if (storages_[static_cast<size_t>(from)].kind == StorageKind::output) {
    storages_[static_cast<size_t>(to)].kind = StorageKind::output;
    storages_[static_cast<size_t>(to)].index = storages_[static_cast<size_t>(from)].index;
  }
  ++counts.in_place;
}

void Placement::rename(const std::vector<int>& merged) {
  for (auto& p : places_)
    if (p.storage >= 0) p.storage = merged[static_cast<size_t>(p.storage)];
}

// A graph output is made in the caller's buffer where its producer can write there: it, or the value
// that it is a dense view of, has a producer and row-major layout, and serves no other output.
void Placement::place_outputs() {
  std::vector<bool> of_state(g_.outputs.size());
  for (auto& s : g_.states)
    if (s.output >= 0) of_state[static_cast<size_t>(s.output)] = true;
  for (size_t i = 0; i < g_.outputs.size(); ++i) {
    if (of_state[i]) continue;
    ValueId v = g_.outputs[i];
    ValueId root = v;
    while (options_.views && g_.value(root).producer) {
      auto& n = g_.node(g_.value(root).producer);
      auto* op = ops::find(n.op);
      if (!op || !op->view || n.inputs.empty() || !n.inputs[0]) break;
      auto& in = g_.value(n.inputs[0]);
      if (in.constant || g_.elements(n.inputs[0])) break;
      auto seen = ops::seen_through(*op, g_, n, g_.value(root).output_index, storage_view(in));
      if (!seen || !seen->is_dense() || !seen->offset.is(0) || !in.layout.empty() ||
          !(product(seen->dims) == product(in.type.dims)) || size_of(in.type.dtype) != size_of(g_.value(v).type.dtype))
        break;
      root = n.inputs[0];
    }
    if (root != v && is_open(g_, root)) root = v;
    auto& value = g_.value(root);
    auto free = [&](ValueId x) { return output_of_[static_cast<size_t>(x.v)] < 0 && places_[static_cast<size_t>(x.v)].storage < 0; };
    bool usable = value.producer && !value.constant && value.layout.empty() && free(root);
    if (!usable && root != v) {
      root = v;
      auto& same = g_.value(v);
      usable = same.producer && !same.constant && same.layout.empty() && free(v);
    }
    // What is no plain tensor is moved whole, from where it was made.
    auto& type = g_.value(v).type;
    usable &= (type.kind == ir::TypeKind::tensor && type.ranked) || is_open(g_, v);
    if (!usable) {
      copies_.push_back({static_cast<int>(i), v});
      continue;
    }
    output_of_[static_cast<size_t>(root.v)] = static_cast<int>(i);
    if (root != v) ++counts.outputs;
  }
}

void Placement::own(ValueId id) {
  auto& v = g_.value(id);
  auto& place = places_[static_cast<size_t>(id.v)];
  if (place.storage >= 0) return;
  int output = output_of_[static_cast<size_t>(id.v)];
  place.view = storage_view(v);
  place.storage = add_storage({output >= 0 ? StorageKind::output : v.constant ? StorageKind::weight : is_open(g_, id) ? StorageKind::pool : StorageKind::arena,
                               output, id, v.type.dtype, element_count(v.type)});
}

// Not a view: a Pad is one where it only crops.
bool Placement::takes_parts(const ops::OpDef& op, const ir::Node& n) const {
  if (!op.view) return true;
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (n.inputs[i] && ops::placed_in(op, g_, n, static_cast<int>(i), storage_view(g_.value(n.outputs[0])))) return true;
  return false;
}

void Placement::place_parts(const std::vector<NodeId>& order) {
  for (size_t k = order.size(); k-- > 0;) {
    auto& n = g_.node(order[k]);
    auto* op = ops::find(n.op);
    if (!op || !op->place || n.outputs.size() != 1 || !n.outputs[0] || g_.elements(n.outputs[0])) continue;
    ValueId out = n.outputs[0];
    // Its parts may be made before its size is known.
    if (decided_by_data(g_, g_.value(out).type) || !takes_parts(*op, n)) continue;
    own(out);
    std::map<ValueId, int> count;
    for (ValueId in : n.inputs) ++count[in];
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      ValueId in = n.inputs[i];
      if (!in) continue;
      auto& v = g_.value(in);
      auto& place = places_[static_cast<size_t>(in.v)];
      bool twice = count[in] > 1;
      if (!v.producer || v.constant || place.storage >= 0 || twice || output_of_[static_cast<size_t>(in.v)] >= 0 || g_.elements(in)) continue;
      auto* maker = ops::find(g_.node(v.producer).op);
      if (maker && (!takes_parts(*maker, g_.node(v.producer)) || maker->executor)) continue;  // it would have to be copied: the view stays, Concat copies
      auto part = ops::placed_in(*op, g_, n, static_cast<int>(i), places_[static_cast<size_t>(out.v)].view);
      if (!part) continue;
      place = {places_[static_cast<size_t>(out.v)].storage, *part};
      ++counts.parts;
    }
  }
}

bool Placement::place_view(NodeId id) {
  auto& n = g_.node(id);
  auto* op = ops::find(n.op);
  if (!options_.views || !op || !op->view || n.inputs.empty() || !n.inputs[0]) return false;
  auto& from = places_[static_cast<size_t>(n.inputs[0].v)];
  if (from.storage < 0) return false;
  std::vector<Strided> seen(n.outputs.size());
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (!n.outputs[i]) continue;
    bool fixed = places_[static_cast<size_t>(n.outputs[i].v)].storage >= 0 || output_of_[static_cast<size_t>(n.outputs[i].v)] >= 0;
    auto v = fixed ? std::nullopt : ops::seen_through(*op, g_, n, static_cast<int>(i), from.view);
    if (!v) return false;
    seen[i] = *std::move(v);
  }
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    if (!n.outputs[i]) continue;
    places_[static_cast<size_t>(n.outputs[i].v)] = {from.storage, std::move(seen[i])};
    ++counts.views;
  }
  return true;
}

void Placement::place_rest(const std::vector<NodeId>& order) {
  for (NodeId id : order) {
    auto& n = g_.node(id);
    for (ValueId v : n.inputs)
      if (v && g_.value(v).constant) own(v);
    view_nodes_[static_cast<size_t>(id.v)] = place_view(id);
    for (ValueId v : n.outputs)
      if (v) own(v);
  }
  for (ValueId v : g_.outputs) own(v);
}

}  // namespace ge::plan
