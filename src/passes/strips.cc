// Strips: chains of convolutions, pools and elementwise nodes on large maps run a strip of rows at a time, all nodes
// on one strip before the next, so that what passes between them stays in the caches and takes a strip's memory (fused-layer
// evaluation: Alwani et al., MICRO 2016; patch-based inference: Lin et al., NeurIPS 2021). Rows that windows of two strips
// share are kept: they are copied in front of the next ones. By a static cost model: cycles of the nodes, bytes that do
// not fit a cache.
//
// Which nodes run together is a shortest path over the order of nodes: each step is one node as it is, or some that follow
// one another as strips.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/text.h"
#include "ops/fused_tail.h"
#include "ops/vector_lowering.h"
#include "passes/conv_cost.h"
#include "passes/order.h"
#include "passes/pass.h"

namespace ge::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

constexpr int kAxis = 2;                  // that is cut: the first behind the channels
constexpr size_t kMostNodes = 24;         // of a group
constexpr double kLeastBytes = 256 << 10; // of a node's largest operand; below, caches hold all of it
constexpr double kCache = 8 << 20;        // bytes: half of what is as large comes from memory
constexpr double kMemoryCycles = 0.15;    // a byte that comes from memory or goes there
constexpr double kTouchCycles = 0.005;    // a byte of the arena at all
constexpr double kTaskCycles = 8000;      // of one more task
constexpr double kHeldCycles = 1;         // a byte of memory beyond what the nodes take as they are
constexpr double kSavedCycles = 0.1;      // less of it, where that lowers the peak
constexpr double kMostMemory = 1.2;       // of the peak as it is
constexpr double kCopyCycles = 0.1;       // a byte of the rows that are kept
constexpr int64_t kEven = 4;              // strips of so many rows, or of a multiple, leave no part of a tile
constexpr double kWorth = 0.96;           // of the cycles: more do not pay
constexpr std::array<int64_t, 11> kCounts = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};
constexpr int64_t kLeastRows = 4;         // of a strip

using ops::RowRange;

RowRange hull(const RowRange& a, const RowRange& b) {
  if (a.count() <= 0) return b;
  return b.count() <= 0 ? a : RowRange{std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

// Cycles that reading or writing `bytes` of a tensor of `whole` bytes takes beyond the work on them.
double from_memory(double bytes, double whole) {
  const double beyond = std::pow(whole / kCache, 4);
  return bytes * (kTouchCycles + kMemoryCycles * beyond / (beyond + 1));
}

// What is known of a value that can be cut.
struct Map {
  int64_t height = 0;                     // 0: it cannot
  double bytes = 0;                       // of one image where their number is open
};

struct Input {
  ValueId value;
  ops::RowWindow window;
};

struct Step {
  bool fits = false;                      // may be cut
  double cycles = 0, alone = 0;           // of its work; with its operands' traffic
  int64_t tile = 1;                       // rows that are computed together
  std::vector<Input> inputs;              // of which rows are taken
};

// Nodes that run in strips, and the values that are read beyond them.
struct Group {
  std::vector<NodeId> nodes;
  std::vector<ValueId> sinks;
  int64_t count = 0;
  bool holds(NodeId n) const { return n && std::find(nodes.begin(), nodes.end(), n) != nodes.end(); }
  bool is_sink(ValueId v) const { return std::find(sinks.begin(), sinks.end(), v) != sinks.end(); }
};

struct Cost {
  double cycles = 0;
  double memory = 0;                      // what more or less of it counts, in cycles
};

// One strip of a group.
struct Strip {
  bool possible = true;                   // none of its rows is made of padding alone
  std::map<int, int64_t> ends;            // how far each node has come then
  std::map<int, RowRange> made;           // by each node
  std::map<int, RowRange> read;           // of each value
};

class Cutter {
 public:
  Cutter(ir::Graph& g, int64_t rows) : g_(g), rows_(rows), order_(g.order()), maps_(g.value_capacity()), steps_(g.node_capacity()) {
    for (size_t i = 0; i < maps_.size(); ++i) maps_[i] = map_of(ValueId{static_cast<int32_t>(i)});
    for (NodeId id : order_) {
      steps_[at(id)] = step_of(id);
      double bytes = 0;
      for (auto* list : {&g.node(id).inputs, &g.node(id).outputs})
        for (ValueId v : *list) bytes += v ? maps_[at(v)].bytes : 0;
      largest_ = std::max(largest_, bytes);
    }
  }
  std::vector<Group> choose() const;
  void cut(const Group& group, Trace& trace);

 private:
  static size_t at(NodeId n) { return static_cast<size_t>(n.v); }
  static size_t at(ValueId v) { return static_cast<size_t>(v.v); }
  Map map_of(ValueId v) const;
  Step step_of(NodeId id) const;
  bool extend(Group& group, size_t first, size_t last) const;
  void find_sinks(Group& group) const;
  Cost cost(const Group& group) const;
  int64_t least_height(const Group& group) const;
  int64_t part_end(const Group& group, ValueId sink, int64_t k) const;
  std::map<int, int64_t> ends(const Group& group, int64_t k) const;
  Strip strip(const Group& group, int64_t k, const std::map<int, int64_t>& before) const;
  std::vector<Strip> strips_of(const Group& group) const;
  ValueId copy_of(ValueId v, NodeId like);
  ValueId rows_of(ValueId v, const RowRange& have, const RowRange& want, NodeId like);

  ir::Graph& g_;
  const int64_t rows_;                    // PassOptions::strip_rows
  std::vector<NodeId> order_;
  std::vector<Map> maps_;
  std::vector<Step> steps_;
  double largest_ = 0;                    // bytes of one node's maps, the most
};

Map Cutter::map_of(ValueId v) const {
  auto& x = g_.value(v);
  if (!x.type.ranked || x.type.kind != ir::TypeKind::tensor || x.constant || x.content || x.type.rank() <= kAxis || size_of(x.type.dtype) == 0) return {};
  Map m{.height = 0, .bytes = static_cast<double>(size_of(x.type.dtype))};
  for (size_t a = 0; a < x.type.dims.size(); ++a) {
    auto& d = x.type.dims[a];
    if (d.known()) m.bytes *= static_cast<double>(d.value());
    else if (a > 0) return {};
  }
  if (m.bytes > 0) m.height = x.type.dims[kAxis].value();
  return m;
}

Step Cutter::step_of(NodeId id) const {
  auto& n = g_.node(id);
  Step s;
  const Map* out = nullptr;
  double largest = 0;
  for (ValueId v : n.outputs) {
    if (!v || maps_[at(v)].height < 2 || (out && maps_[at(v)].height != out->height)) return {};
    out = &maps_[at(v)];
    largest = std::max(largest, out->bytes);
    s.alone += from_memory(out->bytes, out->bytes);
  }
  if (!out) return {};
  double weights = 0;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    ValueId v = n.inputs[i];
    if (!v) continue;
    auto window = ops::row_window(g_, n, static_cast<int>(i), kAxis);
    if (!window) return {};
    if (g_.is_constant(v)) weights = std::max(weights, static_cast<double>(g_.value(v).constant->count()));
    if (window->whole) continue;
    auto& in = maps_[at(v)];
    if (in.height == 0) return {};   // a constant with rows of its own too
    largest = std::max(largest, in.bytes);
    s.alone += from_memory(in.bytes, in.bytes);
    s.inputs.push_back({v, *window});
  }
  if (s.inputs.empty() || (largest < kLeastBytes && rows_ == 0)) return {};
  s.fits = true;
  const double elements = out->bytes / size_of(g_.value(n.outputs[0]).type.dtype);
  if (auto filtering = winograd_cost(g_, n)) {
    s.cycles = *filtering;
    s.tile = ir::attr_int(n, "winograd", 1);
  } else if (ops::find(n.op)->unit == kernels::Unit::cube && weights > 0) {
    // Products of each element: the weights of its channel, or, where inputs lie apart, a part of them.
    auto& dims = g_.value(n.outputs[0]).type.dims;
    const double apart = std::pow(static_cast<double>(s.inputs[0].window.scale), static_cast<double>(dims.size() - 2));
    s.cycles = elements * weights / static_cast<double>(dims[1].value()) / apart / 32;
  } else {
    double taps = 1;
    for (int64_t k : ir::attr_ints(n, "kernel_shape")) taps *= static_cast<double>(k);
    s.cycles = elements * taps / 16;
  }
  s.alone += s.cycles;
  return s;
}

// The node at place `last` joins a group that begins at `first`; false: neither it nor one behind it can.
bool Cutter::extend(Group& group, size_t first, size_t last) const {
  NodeId id = order_[last];
  if (steps_[at(id)].fits) {
    group.nodes.push_back(id);
    return group.nodes.size() <= kMostNodes;
  }
  // What reads of the group from outside must run behind it.
  for (ValueId v : g_.node(id).inputs)
    if (v && group.holds(g_.value(v).producer)) return false;
  return last - first < 4 * kMostNodes;
}

void Cutter::find_sinks(Group& group) const {
  group.sinks.clear();
  for (NodeId id : group.nodes)
    for (ValueId v : g_.node(id).outputs) {
      auto& uses = g_.value(v).uses;
      if (g_.is_output(v) || std::any_of(uses.begin(), uses.end(), [&](auto& u) { return !group.holds(u.node); })) group.sinks.push_back(v);
    }
}

int64_t Cutter::least_height(const Group& group) const {
  int64_t least = INT64_MAX;
  for (ValueId v : group.sinks) least = std::min(least, maps_[at(v)].height);
  return least;
}

// Where strip k of a sink ends. Smaller sinks decide, so that windows with a stride do not overlap there.
int64_t Cutter::part_end(const Group& group, ValueId sink, int64_t k) const {
  const int64_t least = least_height(group);
  const int64_t height = maps_[at(sink)].height, even = least / group.count >= 2 * kEven ? kEven : 1;
  if (k + 1 == group.count) return height;
  const auto rows = static_cast<int64_t>(__int128(k + 1) * least / group.count) / even * even;   // products of heights pass 64 bits
  return static_cast<int64_t>(__int128(rows) * height / least);
}

// How far each node of the group has come when strips 0 to k have run; k = -1: nowhere.
std::map<int, int64_t> Cutter::ends(const Group& group, int64_t k) const {
  std::map<int, int64_t> wanted, out;   // of values, of nodes
  if (k < 0) {
    for (NodeId id : group.nodes) out[id.v] = 0;
    return out;
  }
  for (ValueId v : group.sinks) wanted[v.v] = part_end(group, v, k);
  for (size_t i = group.nodes.size(); i-- > 0;) {
    NodeId id = group.nodes[i];
    int64_t& end = out[id.v];
    for (ValueId v : g_.node(id).outputs) end = std::max(end, wanted[v.v]);
    if (end <= 0) continue;
    for (auto& in : steps_[at(id)].inputs) {
      auto read = ops::rows_read(in.window, {0, end}, maps_[at(in.value)].height);   // the last rows may be padding alone
      int64_t& w = wanted[in.value.v];
      w = std::max(w, read.end);
    }
  }
  return out;
}

// Strip k, given how far the one before came.
Strip Cutter::strip(const Group& group, int64_t k, const std::map<int, int64_t>& before) const {
  Strip s;
  s.ends = ends(group, k);
  for (size_t i = group.nodes.size(); i-- > 0;) {
    NodeId id = group.nodes[i];
    const int64_t done = before.at(id.v), end = s.ends.at(id.v);
    // What others read of it begins behind what is made, if a stride leaves rows out.
    RowRange& made = s.made[id.v];
    made = {done, end};
    for (ValueId v : g_.node(id).outputs)
      if (auto it = s.read.find(v.v); it != s.read.end() && it->second.begin > done && !group.is_sink(v)) made.begin = std::min(end, it->second.begin);
    if (g_.node(id).outputs.size() > 1) made.begin = done;
    if (made.count() <= 0) continue;
    for (auto& in : steps_[at(id)].inputs) {
      auto read = ops::rows_read(in.window, made, maps_[at(in.value)].height);
      if (read.count() <= 0) s.possible = false;
      s.read[in.value.v] = hull(s.read[in.value.v], read);
    }
  }
  return s;
}

std::vector<Strip> Cutter::strips_of(const Group& group) const {
  std::vector<Strip> all;
  for (int64_t k = 0; k < group.count; ++k) all.push_back(strip(group, k, k ? all.back().ends : ends(group, -1)));
  return all;
}

// Of all strips, which are taken to be equal; infinite where one in the middle is not possible.
Cost Cutter::cost(const Group& group) const {
  const int64_t middle = group.count / 2;
  const Strip s = strip(group, middle, ends(group, middle - 1));
  if (!s.possible) return {HUGE_VAL, 0};
  const double count = static_cast<double>(group.count);
  double sum = 0, kept = 0, passing = 0, whole = 0;   // cycles; bytes from strip to strip, of one node, of one node that is not cut
  for (NodeId id : group.nodes) {
    auto& step = steps_[at(id)];
    auto& out = g_.node(id).outputs;
    const RowRange made = s.made.at(id.v);
    const double height = static_cast<double>(maps_[at(out[0])].height), tile = static_cast<double>(step.tile);
    // Larger strips end where tiles do.
    const double waste = height / count >= 2 * kEven ? 1 : std::ceil(height / count / tile) * tile / (height / count);
    sum += count * kTaskCycles + step.cycles * waste;
    double here = 0, uncut = 0;
    for (ValueId v : out) {
      const double bytes = maps_[at(v)].bytes;
      const bool sink = group.is_sink(v);
      sum += from_memory(bytes, sink ? bytes : bytes / count);
      uncut += bytes, here += sink ? bytes : bytes / count;
      auto read = s.read.find(v.v);
      if (read == s.read.end() || read->second.begin >= made.begin) continue;
      const double old = bytes * static_cast<double>(made.begin - read->second.begin) / height;
      sum += count * (2 * kTaskCycles + kCopyCycles * (2 * old + (sink ? bytes / count : 0)));
      kept += old;
    }
    for (auto& in : step.inputs) {
      const double bytes = maps_[at(in.value)].bytes;
      const bool inside = group.holds(g_.value(in.value).producer);
      sum += from_memory(bytes, inside ? bytes / count : bytes);
      uncut += bytes, here += inside ? bytes / count : bytes;
    }
    passing = std::max(passing, here), whole = std::max(whole, uncut);
  }
  const double more = kept + passing - whole;
  return {sum, more > 0 ? kHeldCycles * more : whole > largest_ / 2 ? kSavedCycles * more : 0};
}

std::vector<Group> Cutter::choose() const {
  const size_t n = order_.size();
  std::vector<double> best(n + 1, HUGE_VAL);
  std::vector<std::pair<size_t, int64_t>> from(n + 1);   // where the last step began, its strips (0: as it is)
  best[0] = 0;
  for (size_t i = 0; i < n; ++i) {
    auto& step = steps_[at(order_[i])];
    if (best[i] + step.alone < best[i + 1]) best[i + 1] = best[i] + step.alone, from[i + 1] = {i, 0};
    if (!step.fits) continue;
    Group group;
    double alone = 0, traffic = 0;
    for (size_t j = i; j < n && extend(group, i, j); ++j) {
      alone += steps_[at(order_[j])].alone;
      traffic += steps_[at(order_[j])].alone - steps_[at(order_[j])].cycles;
      if (!steps_[at(order_[j])].fits || group.nodes.size() < 2) continue;
      find_sinks(group);
      const int64_t least = least_height(group);
      if (group.sinks.empty() || (traffic <= (1 - kWorth) * alone && rows_ == 0)) continue;   // strips save traffic alone
      if (rows_ > 0 && least > rows_) {
        group.count = (least + rows_ - 1) / rows_;
        if (best[i] < best[j + 1]) best[j + 1] = best[i], from[j + 1] = {i, group.count};
        continue;
      }
      for (int64_t count : kCounts) {
        if (rows_ > 0 || count * kLeastRows > least) break;
        group.count = count;
        const Cost c = cost(group);
        if (c.cycles < kWorth * alone && best[i] + c.cycles + c.memory < best[j + 1]) best[j + 1] = best[i] + c.cycles + c.memory, from[j + 1] = {i, count};
      }
    }
  }
  std::vector<Group> out;
  for (size_t j = n; j > 0; j = from[j].first) {
    auto [first, count] = from[j];
    if (count == 0) continue;
    Group group;
    for (size_t i = first; i < j; ++i)
      if (steps_[at(order_[i])].fits) group.nodes.push_back(order_[i]);
    find_sinks(group);
    group.count = count;
    const auto all = strips_of(group);
    bool possible = std::all_of(all.begin(), all.end(), [](auto& s) { return s.possible; });   // at the ends too
    for (ValueId v : group.sinks) possible &= all.back().ends.at(g_.value(v).producer.v) == maps_[at(v)].height;
    if (possible) out.push_back(std::move(group));
  }
  return out;
}

// Rows `want` of a value that holds rows `have` of the map.
ValueId Cutter::rows_of(ValueId v, const RowRange& have, const RowRange& want, NodeId like) {
  if (have == want) return v;
  auto one = [&](int64_t n) {
    Tensor t(DType::i64, {1});
    t.as<int64_t>()[0] = n;
    return g_.add_constant(std::move(t), "rows");
  };
  auto type = g_.value(v).type;
  type.dims[kAxis] = want.count();
  NodeId slice = g_.insert("Slice", {v, one(want.begin - have.begin), one(want.end - have.begin), one(kAxis), one(1)}, {type}, {}, like);
  ValueId out = g_.node(slice).outputs[0];
  g_.value(out).layout = g_.value(v).layout;
  return out;
}

// The rows that a value lends to later strips, as memory of their own: where they were made need not stay for them.
ValueId Cutter::copy_of(ValueId v, NodeId like) {
  auto type = g_.value(v).type;
  if (!ops::vector_dtype(type.dtype)) return v;
  ir::Attrs attrs{{"program", kernels::vector::print(ops::identity_program(ops::vector_lane(type.dtype)))}, {"row_axes", int64_t{0}}, {"dtypes", std::vector{static_cast<int64_t>(type.dtype)}}, {"reduced", std::vector<int64_t>{0}}};
  auto layout = g_.value(v).layout;
  ValueId out = g_.node(g_.insert("ge.Vector", {v}, {type}, std::move(attrs), like)).outputs[0];
  g_.value(out).layout = layout;
  return out;
}

void Cutter::cut(const Group& group, Trace& trace) {
  const NodeId last = group.nodes.back();
  struct Held {
    ValueId value;
    RowRange rows;
  };
  auto insert = [&](std::string op, std::vector<ValueId> inputs, std::vector<ir::Type> types, ir::Attrs attrs, NodeId like) {
    NodeId id = g_.insert(std::move(op), std::move(inputs), std::move(types), std::move(attrs), like);
    g_.node(id).rank = g_.node(last).rank;
    return id;
  };
  // copied: the first input is not made inside the output.
  auto concat = [&](std::vector<ValueId> inputs, ir::Type type, const std::vector<int>& layout, bool copied) {
    ir::Attrs attrs{{"axis", int64_t{kAxis}}};
    if (copied) attrs["copied"] = std::vector<int64_t>{0};
    NodeId id = insert("Concat", std::move(inputs), {std::move(type)}, std::move(attrs), last);
    g_.node(id).origin.clear();
    g_.value(g_.node(id).outputs[0]).layout = layout;
    return id;
  };
  auto type_of = [&](ValueId v, int64_t rows) {
    auto type = g_.value(v).type;
    type.dims[kAxis] = rows;
    return type;
  };
  const auto all = strips_of(group);
  // Where what strips k and later read of a value begins.
  auto wanted_from = [&](int64_t k, ValueId v) {
    for (; k < group.count; ++k)
      if (auto read = all[static_cast<size_t>(k)].read.find(v.v); read != all[static_cast<size_t>(k)].read.end() && read->second.count() > 0) return read->second.begin;
    return INT64_MAX;
  };
  std::map<int, Held> kept;                    // of each value, for later strips
  std::map<int, std::vector<ValueId>> parts;   // of each sink
  for (int64_t k = 0; k < group.count; ++k) {
    const Strip& s = all[static_cast<size_t>(k)];
    std::map<int, Held> held;
    for (NodeId id : group.nodes) {
      const ir::Node n = g_.node(id);
      const RowRange made = s.made.at(id.v);
      std::vector<ValueId> fresh(n.outputs.size());
      if (made.count() > 0) {   // else earlier strips needed the last rows
        auto inputs = n.inputs;
        RowRange in;
        for (size_t i = 0; i < inputs.size(); ++i) {
          if (!inputs[i]) continue;
          auto w = *ops::row_window(g_, n, static_cast<int>(i), kAxis);
          if (w.whole) continue;
          const int64_t height = maps_[at(inputs[i])].height;
          const RowRange read = ops::rows_read(w, made, height);
          if (i == 0) in = read;
          auto here = held.find(inputs[i].v);
          inputs[i] = here == held.end() ? rows_of(inputs[i], {0, height}, read, last) : rows_of(here->second.value, here->second.rows, read, last);
        }
        std::vector<ir::Type> types;
        for (ValueId v : n.outputs) types.push_back(type_of(v, made.count()));
        NodeId piece = insert(n.op, std::move(inputs), std::move(types), n.attrs, id);
        if (auto* def = ops::find(n.op); def->cut_rows) def->cut_rows(g_, n, g_.node(piece), kAxis, made, in);
        fresh = g_.node(piece).outputs;
      }
      for (size_t i = 0; i < n.outputs.size(); ++i) {
        ValueId whole = n.outputs[i];
        const auto layout = g_.value(whole).layout;
        if (fresh[i]) g_.value(fresh[i]).layout = layout;
        if (fresh[i] && group.is_sink(whole)) parts[whole.v].push_back(fresh[i]);
        Held now{fresh[i], made};
        auto old = kept.find(whole.v);
        if (old != kept.end() && !fresh[i]) now = old->second;
        else if (old != kept.end()) {
          now.rows.begin = old->second.rows.begin;
          now.value = g_.node(concat({old->second.value, fresh[i]}, type_of(whole, now.rows.count()), layout, true)).outputs[0];
        }
        if (old != kept.end()) kept.erase(old);
        if (!now.value) continue;
        held[whole.v] = now;
        const RowRange later{std::max(now.rows.begin, wanted_from(k + 1, whole)), now.rows.end};
        if (later.count() <= 0) continue;
        ValueId some = rows_of(now.value, now.rows, later, last);
        kept[whole.v] = {fresh[i] ? copy_of(some, last) : some, later};
      }
    }
  }
  std::vector<std::string> origins;
  for (NodeId id : group.nodes) {
    auto names = origins_of(g_.node(id));
    origins.insert(origins.end(), names.begin(), names.end());
  }
  NodeId whole;
  for (ValueId v : group.sinks) {
    auto layout = g_.value(v).layout;
    whole = concat(parts[v.v], g_.value(v).type, layout, false);
    g_.set_output(whole, 0, v);
  }
  g_.node(whole).origin = std::move(origins);
  trace.fused("strips", g_, whole);
  for (size_t i = group.nodes.size(); i-- > 0;) g_.erase(group.nodes[i]);
}

}  // namespace

Result<bool> strips(ir::Graph& g, PassContext& c) {
  Cutter cutter(g, c.options.strip_rows);
  auto groups = cutter.choose();
  if (groups.empty()) return false;
  ir::Graph before = g;
  Trace trace = c.trace;
  for (auto& group : groups) cutter.cut(group, trace);
  // A whole input and a whole output beside the strips may be more than two maps were; much more is no gain.
  auto peak = [](const ir::Graph& graph) { return static_cast<double>(memory_peak(graph, graph.order())); };
  if (c.options.strip_rows == 0 && peak(g) > kMostMemory * peak(before)) {
    g = std::move(before);
    return false;
  }
  c.trace = std::move(trace);
  return true;
}

}  // namespace ge::passes
