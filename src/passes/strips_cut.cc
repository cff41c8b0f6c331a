// The graph of strips: see strips.cc.
//
// Where sizes are open, places of rows are expressions: each strip ends at a multiple of the lowest sink's height over the
// number of strips, and what its windows read follows from that by numbers alone, once strips are as high as the windows reach.
// Which expressions these are is read off the numbers for many sizes; the others are for wholes, which stay beside the strips.
#include "passes/strips.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "ops/fused_tail.h"
#include "ops/shape_util.h"
#include "ops/vector_lowering.h"
#include "passes/conv_cost.h"

namespace ge::passes::cutting {
namespace {

constexpr double kLeastBytes = 256 << 10; // of a node's largest operand; below, caches hold all of it
constexpr double kCache = 8 << 20;        // bytes: half of what is as large comes from memory
constexpr double kMemoryCycles = 0.15;    // a byte that comes from memory or goes there
constexpr double kTouchCycles = 0.005;    // a byte of the arena at all

RowRange hull(const RowRange& a, const RowRange& b) {
  if (a.count() <= 0) return b;
  return b.count() <= 0 ? a : RowRange{std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

}  // namespace

double from_memory(double bytes, double whole) {
  const double beyond = std::pow(whole / kCache, 4);
  return bytes * (kTouchCycles + kMemoryCycles * beyond / (beyond + 1));
}

const Map& Rows::map(ValueId v) const {
  auto found = maps_.find(v.v);
  return found != maps_.end() ? found->second : maps_.emplace(v.v, map_of(v)).first->second;
}

const Step& Rows::step(NodeId id) const {
  auto found = steps_.find(id.v);
  return found != steps_.end() ? found->second : steps_.emplace(id.v, step_of(id)).first->second;
}

double Rows::bytes(NodeId id) const {
  double sum = 0;
  for (auto* list : {&g_.node(id).inputs, &g_.node(id).outputs})
    for (ValueId v : *list) sum += v ? map(v).bytes : 0;
  return sum;
}

std::optional<double> Rows::size(const Dim& d) const {
  if (d.known()) return static_cast<double>(d.value());
  auto n = d.eval([&](std::string_view name) -> std::optional<int64_t> {
    auto it = sizes_.find(name);
    return it == sizes_.end() ? std::nullopt : std::optional(it->second);
  });
  return n.ok() ? std::optional(static_cast<double>(*n)) : std::nullopt;
}

Map Rows::map_of(ValueId v) const {
  auto& x = g_.value(v);
  if (!x.type.ranked || x.type.kind != ir::TypeKind::tensor || x.constant || x.content || x.type.rank() <= kAxis || size_of(x.type.dtype) == 0) return {};
  Map m{.height = 0, .bytes = static_cast<double>(size_of(x.type.dtype))};
  for (auto& d : x.type.dims) {
    auto n = size(d);
    if (!n || *n < 0) return {};
    m.bytes *= *n;
  }
  if (m.bytes > 0) m.height = static_cast<int64_t>(*size(x.type.dims[kAxis]));
  return m;
}

Step Rows::step_of(NodeId id) const {
  auto& n = g_.node(id);
  Step s;
  if (ir::has_attr(n, "strip")) return s;   // of one already
  const Map* out = nullptr;
  double largest = 0;
  for (ValueId v : n.outputs) {
    if (!v || height(v) < 2 || (out && height(v) != out->height)) return {};
    out = &map(v);
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
    auto& in = map(v);
    if (in.height == 0) return {};   // a constant with rows of its own too
    largest = std::max(largest, in.bytes);
    s.alone += from_memory(in.bytes, in.bytes);
    s.inputs.push_back({v, *window});
  }
  if (s.inputs.empty() || (largest < kLeastBytes && !any_size_)) return {};
  auto& dims = g_.value(n.outputs[0]).type.dims;
  const double elements = out->bytes / size_of(g_.value(n.outputs[0]).type.dtype);
  if (auto filtering = winograd_cost(g_, n, [&](const Dim& d) { return std::max(1.0, size(d).value_or(1)); })) {
    s.cycles = *filtering;
    s.tile = ir::attr_int(n, "winograd", 1);
  } else if (ops::find(n.op)->unit == kernels::Unit::cube && weights > 0) {
    // Products of each element: the weights of its channel, or, where inputs lie apart, a part of them.
    const double apart = std::pow(static_cast<double>(s.inputs[0].window.scale), static_cast<double>(dims.size() - 2));
    s.cycles = elements * weights / std::max(1.0, size(dims[1]).value_or(1)) / apart / 32;
  } else {
    double taps = 1;
    for (int64_t k : ir::attr_ints(n, "kernel_shape")) taps *= static_cast<double>(k);
    s.cycles = elements * taps / 16;
  }
  s.fits = true;
  s.alone += s.cycles;
  return s;
}

ValueId Rows::lowest(const Group& group) const {
  ValueId least;
  for (ValueId v : group.sinks)
    if (!least || height(v) < height(least)) least = v;
  return least;
}

int64_t Rows::boundary(const Group& group, int64_t k) const {
  const int64_t least = height(lowest(group)), even = group.even;
  if (k + 1 == group.count) return least;
  return static_cast<int64_t>(__int128(k + 1) * least / (group.count * even)) * even;   // products of heights pass 64 bits
}

// Where strip k of a sink ends. Smaller sinks decide, so that windows with a stride do not overlap there.
int64_t Rows::part_end(const Group& group, ValueId sink, int64_t k) const {
  if (k + 1 == group.count) return height(sink);
  const int64_t least = height(lowest(group));
  // Whether a map is twice as high as another, or a row less, may be a matter of an open size being even.
  if (group.open) return boundary(group, k) * ((height(sink) + least / 2) / least);
  return static_cast<int64_t>(__int128(boundary(group, k)) * height(sink) / least);
}

std::map<int, int64_t> Rows::ends(const Group& group, int64_t k) const {
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
    // Whether the last row is read may be a matter of an open size being even.
    if (group.open && k + 1 == group.count) end = height(g_.node(id).outputs[0]);
    if (end <= 0) continue;
    for (auto& in : step(id).inputs) {
      auto read = ops::rows_read(in.window, {0, end}, height(in.value));   // the last rows may be padding alone
      int64_t& w = wanted[in.value.v];
      w = std::max(w, read.end);
    }
  }
  return out;
}

RowRange Rows::read(const Group& group, NodeId id, const Input& in, const RowRange& made) const {
  auto out = ops::rows_read(in.window, made, height(in.value));
  if (group.open && in.window.end && out.count() > 0 && made.end == height(g_.node(id).outputs[0])) out.end = height(in.value);
  return out;
}

// Strip k, given how far the one before came.
Strip Rows::strip(const Group& group, int64_t k, const std::map<int, int64_t>& before) const {
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
    for (auto& in : step(id).inputs) {
      const RowRange rows = read(group, id, in, made);
      if (rows.count() <= 0) s.possible = false;
      s.read[in.value.v] = hull(s.read[in.value.v], rows);
    }
  }
  return s;
}

std::vector<Strip> Rows::strips(const Group& group) const {
  std::vector<Strip> all;
  for (int64_t k = 0; k < group.count; ++k) all.push_back(strip(group, k, k ? all.back().ends : ends(group, -1)));
  return all;
}

bool Rows::possible(const Group& group, const std::vector<Strip>& all) const {
  bool out = std::all_of(all.begin(), all.end(), [](auto& s) { return s.possible; });
  for (ValueId v : group.sinks) out &= all.back().ends.at(g_.value(v).producer.v) == height(v);
  return out;
}

namespace {

// The same rows at each sample.
using Span = std::vector<RowRange>;

class Cut {
 public:
  Cut(ir::Graph& g, const Group& group, const std::vector<Rows>& samples) : g_(g), group_(group), samples_(samples), last_(group.nodes.back()) {
    for (auto& s : samples) {
      strips_.push_back(s.strips(group));
      possible_ &= s.possible(group, strips_.back()) && s.lowest(group) == samples[0].lowest(group);
    }
    // Of one height alone nothing is seen of others.
    const ValueId lowest = samples[0].lowest(group);
    const bool several = std::any_of(samples.begin(), samples.end(), [&](auto& s) { return s.height(lowest) != samples[0].height(lowest); });
    possible_ &= several || g.value(lowest).type.dims[kAxis].known();
  }
  bool possible() const { return possible_; }
  Dim condition();
  // Makes them; when: the expression for sizes that have a part in it, or empty. False: not possible.
  bool make(std::string when);
  ValueId joined(ValueId sink);

 private:
  struct Held {
    ValueId value;
    Span rows;
  };
  void strip(int64_t k);
  void piece(int64_t k, NodeId id);
  Span made(int64_t k, NodeId id) const;
  Span read(NodeId id, const Input& in, const Span& made) const;
  Span whole(ValueId v) const;
  bool some(const Span& rows);
  Dim place(ValueId v, const std::vector<int64_t>& at, int64_t k);
  Dim begin_of(ValueId v, const Span& rows, int64_t k);
  Dim end_of(ValueId v, const Span& rows, int64_t k);
  Dim count_of(ValueId v, const Span& rows, int64_t k) { return end_of(v, rows, k) - begin_of(v, rows, k); }
  std::optional<std::vector<int64_t>> wanted_from(int64_t k, ValueId v) const;
  Dim boundary(int64_t k) const;
  NodeId insert(std::string op, std::vector<ValueId> inputs, std::vector<ir::Type> types, ir::Attrs attrs, NodeId like);
  NodeId concat(std::vector<ValueId> inputs, ir::Type type, const std::vector<int>& layout, bool copied);
  ir::Type type_of(ValueId v, const Dim& rows) const;
  ValueId rows_of(ValueId whole, ValueId v, const Span& have, const Span& want, int64_t k);
  ValueId copy_of(ValueId v);

  ir::Graph& g_;
  const Group& group_;
  const std::vector<Rows>& samples_;
  const NodeId last_;
  std::vector<std::vector<Strip>> strips_;     // of each sample
  bool possible_ = true;
  std::string when_;                           // the condition's text
  std::map<int, Held> kept_, held_;            // of each value: for later strips, for this one
  std::map<int, std::vector<ValueId>> parts_;  // of each sink
};

Span Cut::made(int64_t k, NodeId id) const {
  Span out;
  for (auto& s : strips_) out.push_back(s[static_cast<size_t>(k)].made.at(id.v));
  return out;
}

Span Cut::read(NodeId id, const Input& in, const Span& made) const {
  Span out;
  for (size_t s = 0; s < samples_.size(); ++s) out.push_back(samples_[s].read(group_, id, in, made[s]));
  return out;
}

Span Cut::whole(ValueId v) const {
  Span out;
  for (auto& s : samples_) out.push_back({0, s.height(v)});
  return out;
}

// There are any; not possible where that depends on sizes.
bool Cut::some(const Span& rows) {
  const bool first = rows[0].count() > 0;
  for (auto& r : rows) possible_ &= (r.count() > 0) == first;
  return first;
}

Dim Cut::boundary(int64_t k) const {
  const Dim height = g_.value(samples_[0].lowest(group_)).type.dims[kAxis];
  return Dim(group_.even) * floordiv(Dim(k + 1) * height, Dim(group_.count * group_.even));
}

// Rows of v that are numbers, its last, or a multiple of where a strip near k ends and a number more.
Dim Cut::place(ValueId v, const std::vector<int64_t>& at, int64_t k) {
  if (std::adjacent_find(at.begin(), at.end(), std::not_equal_to<>()) == at.end()) return Dim(at[0]);
  bool end = true;
  for (size_t s = 0; s < at.size(); ++s) end &= at[s] == samples_[s].height(v);
  if (end) return g_.value(v).type.dims[kAxis];
  for (int64_t near = 0; near < 3; ++near) {
    const int64_t j = k - near;
    if (j < 0 || j + 1 >= group_.count) continue;
    auto boundary = [&](size_t s) { return samples_[s].boundary(group_, j); };
    size_t other = 1;
    while (other < at.size() && boundary(other) == boundary(0)) ++other;
    if (other == at.size() || (at[other] - at[0]) % (boundary(other) - boundary(0))) continue;
    const int64_t times = (at[other] - at[0]) / (boundary(other) - boundary(0)), more = at[0] - times * boundary(0);
    bool same = true;
    for (size_t s = 0; s < at.size(); ++s) same &= at[s] == times * boundary(s) + more;
    if (same) return Dim(times) * this->boundary(j) + Dim(more);
  }
  possible_ = false;
  return Dim(0);
}

Dim Cut::begin_of(ValueId v, const Span& rows, int64_t k) {
  std::vector<int64_t> at;
  for (auto& r : rows) at.push_back(r.begin);
  return place(v, at, k);
}

Dim Cut::end_of(ValueId v, const Span& rows, int64_t k) {
  std::vector<int64_t> at;
  for (auto& r : rows) at.push_back(r.end);
  return place(v, at, k);
}

// Where strips are: enough rows and bytes, and all that the strips but the last read lies inside of their maps.
Dim Cut::condition() {
  auto holds = [](const Dim& a, const Dim& b) { return Dim::call(DimCall::less, {a - Dim(1), b}); };   // a <= b
  Dim all = holds(Dim(group_.count * group_.least_rows), g_.value(samples_[0].lowest(group_)).type.dims[kAxis]);   // known where its height is
  ValueId largest;
  std::map<std::string, Dim> others;
  for (NodeId id : group_.nodes) {
    for (ValueId v : g_.node(id).outputs)
      if (!largest || samples_.back().map(v).bytes > samples_.back().map(largest).bytes) largest = v;
    const int64_t k = group_.count - 2;
    const Span rows = made(k, id);
    if (!some(rows)) continue;
    for (auto& in : samples_[0].step(id).inputs) {
      const Dim fits = holds(end_of(in.value, read(id, in, rows), k), g_.value(in.value).type.dims[kAxis]);
      if (!fits.known()) others.emplace(fits.text(), fits);
    }
  }
  for (auto& [text, fits] : others) all = all * fits;
  if (group_.least_bytes > 0) {
    auto& type = g_.value(largest).type;
    all = all * holds(Dim(static_cast<int64_t>(group_.least_bytes)), product(type.dims) * Dim(static_cast<int64_t>(size_of(type.dtype))));
  }
  return all;
}

NodeId Cut::insert(std::string op, std::vector<ValueId> inputs, std::vector<ir::Type> types, ir::Attrs attrs, NodeId like) {
  if (!when_.empty()) attrs["when"] = when_;
  attrs["strip"] = int64_t{1};
  NodeId id = g_.insert(std::move(op), std::move(inputs), std::move(types), std::move(attrs), like);
  g_.node(id).rank = g_.node(last_).rank;
  return id;
}

// copied: the first input is not made inside the output.
NodeId Cut::concat(std::vector<ValueId> inputs, ir::Type type, const std::vector<int>& layout, bool copied) {
  ir::Attrs attrs{{"axis", int64_t{kAxis}}};
  if (copied) attrs["copied"] = std::vector<int64_t>{0};
  NodeId id = insert("Concat", std::move(inputs), {std::move(type)}, std::move(attrs), last_);
  g_.node(id).origin.clear();
  g_.value(g_.node(id).outputs[0]).layout = layout;
  return id;
}

ir::Type Cut::type_of(ValueId v, const Dim& rows) const {
  auto type = g_.value(v).type;
  type.dims[kAxis] = rows;
  return type;
}

// Rows `want` of a value that holds rows `have` of the map `whole`.
ValueId Cut::rows_of(ValueId whole, ValueId v, const Span& have, const Span& want, int64_t k) {
  if (have == want) return v;
  const Dim begin = begin_of(whole, want, k) - begin_of(whole, have, k), count = count_of(whole, want, k);
  ir::Attrs attrs{{"axis", int64_t{kAxis}}, {"begin", begin.text()}, {"count", count.text()}};
  ValueId out = g_.node(insert("ge.Rows", {v}, {type_of(whole, count)}, std::move(attrs), last_)).outputs[0];
  g_.value(out).layout = g_.value(v).layout;
  return out;
}

// The rows that a value lends to later strips, as memory of their own: where they were made need not stay for them.
ValueId Cut::copy_of(ValueId v) {
  auto type = g_.value(v).type;
  if (!ops::vector_dtype(type.dtype)) return v;
  ir::Attrs attrs{{"program", kernels::vector::print(ops::identity_program(ops::vector_lane(type.dtype)))}, {"row_axes", int64_t{0}}, {"dtypes", std::vector{static_cast<int64_t>(type.dtype)}}, {"reduced", std::vector<int64_t>{0}}};
  auto layout = g_.value(v).layout;
  ValueId out = g_.node(insert("ge.Vector", {v}, {type}, std::move(attrs), last_)).outputs[0];
  g_.value(out).layout = layout;
  return out;
}

// Where what strips k and later read of a value begins.
std::optional<std::vector<int64_t>> Cut::wanted_from(int64_t k, ValueId v) const {
  std::vector<int64_t> out;
  for (auto& all : strips_)
    for (int64_t later = k; later < group_.count; ++later)
      if (auto read = all[static_cast<size_t>(later)].read.find(v.v); read != all[static_cast<size_t>(later)].read.end() && read->second.count() > 0) {
        out.push_back(read->second.begin);
        break;
      }
  return out.size() == strips_.size() ? std::optional(out) : std::nullopt;
}

// What node `id` makes in strip k, and what of it is kept for later ones.
void Cut::piece(int64_t k, NodeId id) {
  const ir::Node n = g_.node(id);
  const Span made = this->made(k, id);
  std::vector<ValueId> fresh(n.outputs.size());
  if (some(made)) {   // else earlier strips needed the last rows
    auto inputs = n.inputs;
    RowRange first;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      const Input in{inputs[i], *ops::row_window(g_, n, static_cast<int>(i), kAxis)};
      if (in.window.whole) continue;
      const Span read = this->read(id, in, made);
      if (i == 0) {
        first = read[0];
        // The padding that the whole has there, whether or not a window reaches it.
        if (group_.open && k + 1 == group_.count && in.window.end) first.end = (made[0].end - 1) * in.window.stride - in.window.begin + in.window.extent - *in.window.end;
      }
      auto here = held_.find(inputs[i].v);
      inputs[i] = here == held_.end() ? rows_of(in.value, in.value, whole(in.value), read, k) : rows_of(in.value, here->second.value, here->second.rows, read, k);
    }
    std::vector<ir::Type> types;
    for (ValueId v : n.outputs) types.push_back(type_of(v, count_of(v, made, k)));
    NodeId piece = insert(n.op, std::move(inputs), std::move(types), n.attrs, id);
    if (auto* def = ops::find(n.op); def->cut_rows) def->cut_rows(g_, n, g_.node(piece), kAxis, made[0], first);
    fresh = g_.node(piece).outputs;
  }
  for (size_t i = 0; i < n.outputs.size(); ++i) {
    ValueId whole = n.outputs[i];
    const auto layout = g_.value(whole).layout;
    if (fresh[i]) g_.value(fresh[i]).layout = layout;
    if (fresh[i] && group_.is_sink(whole)) parts_[whole.v].push_back(fresh[i]);
    Held now{fresh[i], made};
    auto old = kept_.find(whole.v);
    if (old != kept_.end() && !fresh[i]) now = old->second;
    else if (old != kept_.end()) {
      for (size_t s = 0; s < now.rows.size(); ++s) now.rows[s].begin = old->second.rows[s].begin;
      now.value = g_.node(concat({old->second.value, fresh[i]}, type_of(whole, count_of(whole, now.rows, k)), layout, true)).outputs[0];
    }
    if (old != kept_.end()) kept_.erase(old);
    if (!now.value) continue;
    held_[whole.v] = now;
    auto from = wanted_from(k + 1, whole);
    if (!from) continue;
    Span later = now.rows;
    for (size_t s = 0; s < later.size(); ++s) later[s].begin = std::max(later[s].begin, (*from)[s]);
    if (!some(later)) continue;
    ValueId lent = rows_of(whole, now.value, now.rows, later, k);
    kept_[whole.v] = {fresh[i] ? copy_of(lent) : lent, later};
  }
}

void Cut::strip(int64_t k) {
  held_.clear();
  for (NodeId id : group_.nodes)
    if (possible_) piece(k, id);
}

bool Cut::make(std::string when) {
  when_ = std::move(when);
  for (int64_t k = 0; k < group_.count && possible_; ++k) strip(k);
  for (ValueId sink : group_.sinks) {
    Dim rows(0);
    for (ValueId part : parts_[sink.v]) rows = rows + g_.value(part).type.dims[kAxis];
    possible_ &= rows == g_.value(sink).type.dims[kAxis];
  }
  return possible_;
}

// A sink, of all its strips.
ValueId Cut::joined(ValueId sink) {
  const auto layout = g_.value(sink).layout;
  return g_.node(concat(parts_[sink.v], g_.value(sink).type, layout, false)).outputs[0];
}

// The value that a node makes of a sink from now on, which its group reads in its place.
ValueId as_whole(ir::Graph& g, const Group& group, ValueId sink) {
  const NodeId maker = g.value(sink).producer;
  const int output = g.value(sink).output_index;
  const ValueId whole = g.add_value(g.value(sink).name + ".whole", g.value(sink).type);
  g.value(whole).layout = g.value(sink).layout;
  g.set_output(maker, output, whole);
  for (NodeId id : group.nodes)
    for (size_t i = 0; i < g.node(id).inputs.size(); ++i)
      if (g.node(id).inputs[i] == sink) g.set_input(id, static_cast<int>(i), whole);
  return whole;
}

// How many strips, and from which sizes on.
std::string words(const std::vector<Group>& ways) {
  std::string out;
  for (auto& way : ways) {
    out += format("{}{} strips", out.empty() ? "" : "; ", way.count);
    if (way.open) out += format(" of {} rows or more", way.least_rows);
    if (way.least_bytes > 0) out += format(" where the largest map has {} or more", bytes_text(way.least_bytes));
  }
  return out;
}

}  // namespace

bool cut(ir::Graph& g, const std::vector<Group>& ways, const std::vector<std::vector<Rows>>& samples, Trace& trace) {
  const Group& group = ways[0];
  const NodeId last = group.nodes.back();
  // Where rows begin and end follows from open sizes by quotients alone, not by products that f32 rounds.
  for (NodeId id : group.nodes)
    for (ValueId v : g.node(id).outputs)
      if (v && text(g.value(v).type.dims).find(format("{}(", name(DimCall::scaled))) != std::string::npos) return false;
  std::vector<Cut> cuts;
  std::vector<Dim> conditions;
  for (size_t i = 0; i < ways.size(); ++i) {
    auto& c = cuts.emplace_back(g, ways[i], samples[i]);
    if (!c.possible()) return false;
    conditions.push_back(ways[i].open ? c.condition() : Dim(1));
  }
  // Whether no way behind the i-th is taken.
  auto none_behind = [&](size_t i) {
    Dim none(1);
    for (size_t j = i; j < ways.size(); ++j) none = none * ops::equal(conditions[j], Dim(0));
    return none;
  };
  auto when = [](const Dim& d) { return d.is(1) ? std::string() : d.text(); };
  const size_t nodes = g.node_capacity();
  for (size_t i = 0; i < ways.size(); ++i) {
    if (cuts[i].make(when(conditions[i] * none_behind(i + 1)))) continue;
    // Nobody reads what was made so far.
    for (size_t k = g.node_capacity(); k-- > nodes;) g.erase(NodeId{static_cast<int32_t>(k)});
    return false;
  }
  std::vector<std::string> origins;
  for (NodeId id : group.nodes) {
    auto names = origins_of(g.node(id));
    origins.insert(origins.end(), names.begin(), names.end());
  }
  const bool wholes = !conditions[0].is(1);
  NodeId made;
  for (ValueId sink : group.sinks) {
    ValueId v = wholes ? as_whole(g, group, sink) : cuts[0].joined(sink);
    for (size_t i = wholes ? 0 : 1; i < ways.size(); ++i) {
      ir::Attrs attrs{{"second", conditions[i].text()}};
      if (std::string text = when(none_behind(i + 1)); !text.empty()) attrs["when"] = text;
      const ValueId strips = cuts[i].joined(sink);
      NodeId either = g.insert("ge.Either", {v, strips}, {g.value(sink).type}, std::move(attrs), last);
      g.node(either).rank = g.node(last).rank;
      g.node(either).origin.clear();
      v = g.node(either).outputs[0];
      g.value(v).layout = g.value(sink).layout;
    }
    made = g.value(v).producer;
    g.set_output(made, 0, sink);
  }
  g.node(made).origin = std::move(origins);
  trace.fused("strips", g, made, "", words(ways));
  if (wholes)
    for (NodeId id : group.nodes) g.node(id).attrs["when"] = when(none_behind(0));
  else
    for (size_t i = group.nodes.size(); i-- > 0;) g.erase(group.nodes[i]);
  return true;
}

}  // namespace ge::passes::cutting
