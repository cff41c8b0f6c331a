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
  if (g.elements(out)) return "its elements are known";
  for (auto& d : v.type.dims)
    if (g.decided_by_data(d)) return "its size depends on data";
  return "";
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

}  // namespace

std::vector<Dim> capacity_of(const ir::Graph& g, const ir::State& s) {
  auto dims = g.value(s.input >= 0 ? g.inputs[static_cast<size_t>(s.input)] : g.outputs[static_cast<size_t>(s.output)]).type.dims;
  if (s.axis >= 0) dims[static_cast<size_t>(s.axis)] = s.capacity;
  return dims;
}

void Placement::place_states() {
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
    if (place.why.empty() && in) place.why = not_appended(g_, in, out, front(place.capacity, g_.value(out).type.dims));
    if (!place.why.empty()) {
      place.update = StateUpdate::copied;
      continue;
    }
    place.update = in ? StateUpdate::appended : StateUpdate::written;
    places_[static_cast<size_t>(out.v)] = {place.storage, front(place.capacity, g_.value(out).type.dims)};
  }
}

}  // namespace ge::plan
