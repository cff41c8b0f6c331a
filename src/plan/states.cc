// Where states lie: the input is the first part of its memory, and the output is made there where nothing that it
// overwrites is still to be read.
#include <algorithm>

#include "base/text.h"
#include "plan/placement.h"

namespace ge::plan {
namespace {

using ir::ValueId;
using ops::Strided;

// The first part of memory with these dims.
Strided front(const std::vector<Dim>& capacity, const std::vector<Dim>& dims) {
  Strided v = Strided::dense(capacity);
  v.dims = dims;
  return v;
}

// Why `out` cannot be made where the state lies, or "" when it can be. taken: something else is made there.
std::string obstacle(const ir::Graph& g, ValueId out, bool taken) {
  auto& v = g.value(out);
  if (v.constant) return "it is a constant";
  if (!v.producer) return "it is an input";
  if (taken) return "it is the output of another state as well";
  if (!v.layout.empty()) return "its axes lie in another order";
  auto* op = ops::find(g.node(v.producer).op);
  if (!op || op->executor) return format("{} ({}) makes values whole", g.node(v.producer).name, g.node(v.producer).op);
  return g.elements(out) ? "its elements are known" : "";
}

// Whether `out`, which would lie as given, is `in` and more behind it; else why not.
std::string not_appended(const ir::Graph& g, ValueId in, ValueId out, const Strided& view) {
  auto& n = g.node(g.value(out).producer);
  auto* op = ops::find(n.op);
  if (!op->place || n.outputs.size() != 1) return format("{} ({}) makes it, not a Concat that begins with {}", n.name, n.op, g.value(in).name);
  if (n.inputs.empty() || n.inputs[0] != in) return format("{} ({}) does not begin with {}", n.name, n.op, g.value(in).name);
  auto first = ops::placed_in(*op, g, n, 0, view);
  if (!first || !first->offset.is(0) || first->dims != g.value(in).type.dims || first->strides != view.strides) return format("{} ({}) goes along another axis than the state grows", n.name, n.op);
  return "";
}

// Whether all that reads `v`, itself or through views, but for input 0 of `last`, has run before `last` does; else who
// has not.
std::string read_after(const ir::Graph& g, ValueId v, ir::NodeId last, const std::vector<int>& position) {
  if (g.is_output(v)) return format("{} is an output as well", g.value(v).name);
  for (auto& u : g.value(v).uses) {
    if (u.node == last && u.index == 0) continue;
    auto& n = g.node(u.node);
    auto* op = ops::find(n.op);
    if (op && op->view && u.index == 0) {
      for (ValueId out : n.outputs)
        if (std::string who = out ? read_after(g, out, last, position) : ""; !who.empty()) return who;
      continue;
    }
    if (position[static_cast<size_t>(u.node.v)] >= position[static_cast<size_t>(last.v)]) return format("{} ({}) reads what it held before after that", n.name, n.op);
  }
  return "";
}

// Whether `out` is `in` with elements replaced, and nothing reads these afterwards; else why not.
std::string not_updated(const ir::Graph& g, ValueId in, ValueId out, const std::vector<int>& position) {
  ir::NodeId id = g.value(out).producer;
  auto& n = g.node(id);
  if (n.inputs.empty() || n.inputs[0] != in || g.value(out).output_index != 0)
    return format("{} ({}) does not replace elements of {}", n.name, n.op, g.value(in).name);
  return read_after(g, in, id, position);
}

}  // namespace

std::vector<Dim> capacity_of(const ir::Graph& g, const ir::State& s) {
  auto dims = g.value(s.input >= 0 ? g.inputs[static_cast<size_t>(s.input)] : g.outputs[static_cast<size_t>(s.output)]).type.dims;
  if (s.axis >= 0) dims[static_cast<size_t>(s.axis)] = s.capacity;
  return dims;
}

void Placement::place_states(const std::vector<ir::NodeId>& order) {
  std::vector<int> position(g_.states.empty() ? 0 : g_.node_capacity());
  if (!g_.states.empty())
    for (size_t i = 0; i < order.size(); ++i) position[static_cast<size_t>(order[i].v)] = static_cast<int>(i);
  // All inputs first: an output may be another state's input.
  for (size_t i = 0; i < g_.states.size(); ++i) {
    auto& s = g_.states[i];
    StatePlace place;
    place.capacity = capacity_of(g_, s);
    ValueId value = s.input >= 0 ? g_.inputs[static_cast<size_t>(s.input)] : g_.outputs[static_cast<size_t>(s.output)];
    place.storage = add_storage({StorageKind::state, static_cast<int>(i), value, g_.value(value).type.dtype, product(place.capacity)});
    if (s.input >= 0) places_[static_cast<size_t>(value.v)] = {place.storage, front(place.capacity, g_.value(value).type.dims)};
    states_.push_back(std::move(place));
  }
  for (size_t i = 0; i < g_.states.size(); ++i) {
    auto& s = g_.states[i];
    if (s.output < 0) continue;
    ValueId out = g_.outputs[static_cast<size_t>(s.output)], in = s.input >= 0 ? g_.inputs[static_cast<size_t>(s.input)] : ValueId{};
    if (out == in) continue;
    auto& place = states_[i];
    place.why = obstacle(g_, out, places_[static_cast<size_t>(out.v)].storage >= 0);
    if (place.why.empty() && !options_.views) place.why = "sharing of memory is switched off";
    const Strided view = front(place.capacity, g_.value(out).type.dims);
    bool updates = place.why.empty() && in && ops::find(g_.node(g_.value(out).producer).op)->updates;
    if (place.why.empty() && in) place.why = updates ? not_updated(g_, in, out, position) : not_appended(g_, in, out, view);
    if (!place.why.empty()) {
      place.update = StateUpdate::copied;
      continue;
    }
    place.update = updates ? StateUpdate::replaced : in ? StateUpdate::appended : StateUpdate::written;
    places_[static_cast<size_t>(out.v)] = {place.storage, view};
  }
}

}  // namespace ge::plan
