#include <algorithm>

#include "lower/emit.h"

namespace ge::lower {
namespace {

Dim bytes(const plan::Storage& s) { return s.elements * Dim(size_of(s.dtype)); }

// All of the input or output that lies in the storage, as it lies.
bool is_whole(const ir::Graph& g, const plan::Storage& s, const Operand& o) {
  auto& v = g.value(s.kind == plan::StorageKind::input ? g.inputs[static_cast<size_t>(s.index)] : g.outputs[static_cast<size_t>(s.index)]);
  return v.type.ranked && o.view.dims == v.type.dims && o.view.is_dense() && o.view.offset.is(0);
}

// The input that the task may overwrite with its result, as nothing else reads it from there on; -1: none. Where both are
// seen whole their sizes may turn out to be equal: whoever runs the graph compares them.
int overwritten(const ir::Graph& g, const plan::Placement& placement, const Lowered& lowered, size_t task, const plan::Storage& to) {
  auto& t = lowered.tasks[task];
  for (size_t k = 0; k < t.in.size(); ++k) {
    auto& in = t.in[k];
    if (in.storage < 0 || !(t.kernel->in_place >> k & 1)) continue;
    auto& from = placement.storages()[static_cast<size_t>(in.storage)];
    if (from.kind != plan::StorageKind::input || lowered.last[static_cast<size_t>(in.storage)] != static_cast<int>(task)) continue;
    const bool alone = std::count_if(t.in.begin(), t.in.end(), [&](auto& o) { return o.storage == in.storage; }) == 1;
    const bool whole = alone && is_whole(g, from, in) && is_whole(g, to, t.out[0]);
    bool alike = from.dtype == to.dtype && (whole || (bytes(from) == bytes(to) && takes_over(t, k)));
    alike &= std::none_of(lowered.passed.begin(), lowered.passed.end(), [&](auto& p) { return p.second == in.storage; });
    if (alike) return from.index;
  }
  return -1;
}

}  // namespace

bool takes_over(const Task& t, size_t k) {
  for (size_t j = 0; j < t.in.size(); ++j)
    if (t.in[j].storage == t.in[k].storage && (j >= 32 || !(t.kernel->in_place >> j & 1) || !same_view(t.in[j].view, t.out[0].view))) return false;
  return true;
}

void find_updates(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered) {
  for (size_t i = 0; i < lowered.tasks.size(); ++i) {
    auto& t = lowered.tasks[i];
    if (t.out.size() != 1 || !t.kernel->in_place || t.out[0].storage < 0 || lowered.first[static_cast<size_t>(t.out[0].storage)] != static_cast<int>(i)) continue;
    auto& to = placement.storages()[static_cast<size_t>(t.out[0].storage)];
    if (to.kind != plan::StorageKind::output) continue;
    int input = overwritten(g, placement, lowered, i, to);
    bool taken = std::any_of(lowered.updates.begin(), lowered.updates.end(), [&](auto& u) { return u.second == input; });
    if (input >= 0 && !taken) lowered.updates[to.index] = input;
  }
}

}  // namespace ge::lower
