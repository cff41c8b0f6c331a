// Segments: the order of tasks where sizes depend on data. A task runs when what it reads has been made and
// when the segments before have given its sizes their values.
#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "lower/emit.h"

namespace ge::lower {
namespace {

void add_symbols(const Dim& d, std::set<std::string>& out) {
  if (d.known()) return;
  std::vector<std::string> names;
  d.symbols(names);
  out.insert(names.begin(), names.end());
}
void add_symbols(const ops::Strided& v, std::set<std::string>& out) {
  add_symbols(v.offset, out);
  for (auto& d : v.dims) add_symbols(d, out);
  for (auto& d : v.strides) add_symbols(d, out);
}

// For each task, earlier ones that must run before it: they touch a storage that one of the two writes.
std::vector<std::vector<size_t>> dependences(const Lowered& l, size_t storages) {
  std::vector<std::vector<size_t>> before(l.tasks.size());
  std::vector<std::vector<size_t>> writers(storages), readers(storages);
  for (size_t i = 0; i < l.tasks.size(); ++i) {
    auto& t = l.tasks[i];
    auto after = [&](const std::vector<size_t>& list) { before[i].insert(before[i].end(), list.begin(), list.end()); };
    for (auto& o : t.in)
      if (o.storage >= 0) after(writers[static_cast<size_t>(o.storage)]);
    for (auto& o : t.out)
      if (o.storage >= 0) after(writers[static_cast<size_t>(o.storage)]), after(readers[static_cast<size_t>(o.storage)]);
    for (auto& o : t.in)
      if (o.storage >= 0) readers[static_cast<size_t>(o.storage)].push_back(i);
    for (auto& o : t.out)
      if (o.storage >= 0) writers[static_cast<size_t>(o.storage)].push_back(i);
  }
  return before;
}

}  // namespace

std::set<std::string> symbols_of(const Task& t, const plan::Placement& placement) {
  std::set<std::string> out;
  auto open = [&](const Operand& o) {
    return o.storage >= 0 && t.kernel->executor && placement.storages()[static_cast<size_t>(o.storage)].kind != plan::StorageKind::arena;
  };
  for (auto& o : t.in)
    if (o.storage >= 0 && o.ranked) {
      add_symbols(o.view, out);
      // None of it may be read, whatever its size: it lies in memory of a known size all the same.
      if (!t.kernel->executor) add_symbols(placement.storages()[static_cast<size_t>(o.storage)].elements, out);
    }
  for (auto& o : t.out)
    if (o.storage >= 0 && o.ranked && !open(o)) {
      add_symbols(o.view, out);
      // A part may be known before the whole, which needs memory then.
      add_symbols(placement.storages()[static_cast<size_t>(o.storage)].elements, out);
    }
  for (auto& d : t.spec.ints) add_symbols(d, out);
  return out;
}

Status cut_segments(const ir::Graph& g, const plan::Placement& placement, Lowered& l) {
  size_t count = l.tasks.size();
  if (l.sources.empty()) {
    l.segments = {static_cast<int>(count)};
    return ok();
  }
  auto before = dependences(l, placement.storages().size());
  std::vector<std::set<std::string>> needs(count);
  for (size_t i = 0; i < count; ++i) {
    for (auto& s : symbols_of(l.tasks[i], placement))
      if (l.sources.count(s)) needs[i].insert(s);
  }
  std::map<int, std::vector<std::string>> decided_in;   // storage -> symbols
  std::vector<size_t> unwritten(placement.storages().size());
  for (auto& [name, source] : l.sources) decided_in[source.storage].push_back(name);
  for (auto& t : l.tasks)
    for (auto& o : t.out)
      if (o.storage >= 0) ++unwritten[static_cast<size_t>(o.storage)];
  std::set<std::string> known, decided;
  std::vector<bool> done(count);
  std::vector<size_t> order;
  while (order.size() < count) {
    size_t begin = order.size();
    for (size_t i = 0; i < count; ++i) {
      if (done[i]) continue;
      bool ready = std::all_of(before[i].begin(), before[i].end(), [&](size_t k) { return done[k]; });
      ready = ready && std::includes(known.begin(), known.end(), needs[i].begin(), needs[i].end());
      if (!ready) continue;
      done[i] = true;
      order.push_back(i);
      for (auto& o : l.tasks[i].out) {
        if (o.storage < 0 || --unwritten[static_cast<size_t>(o.storage)]) continue;
        auto it = decided_in.find(o.storage);
        if (it != decided_in.end()) decided.insert(it->second.begin(), it->second.end());
      }
    }
    if (order.size() == begin) {
      size_t stuck = static_cast<size_t>(std::find(done.begin(), done.end(), false) - done.begin());
      return node_error(code::kUnsupportedOp, l.tasks[stuck].node ? g.node(l.tasks[stuck].node).name : "",
                        "Its sizes depend on data that it makes itself.");
    }
    known.insert(decided.begin(), decided.end());
    l.segments.push_back(static_cast<int>(order.size()));
  }
  if (l.segments.empty()) l.segments.push_back(0);
  std::vector<Task> tasks;
  for (size_t i : order) tasks.push_back(std::move(l.tasks[i]));
  l.tasks = std::move(tasks);
  return ok();
}

}  // namespace ge::lower
