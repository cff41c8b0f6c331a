#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/text.h"
#include "ir/attribute_fault.h"
#include "kernels/kernel.h"
#include "lower/emit.h"
#include "ops/op.h"
#include "tensor/pages.h"

namespace ge::lower {
namespace {

using ir::NodeId;
using ir::ValueId;
using ops::Arg;
using ops::Strided;

class Lowering {
 public:
  Lowering(const ir::Graph& g, const LowerOptions& o, LowerReport& r, Shared& shared, bool nested)
      : g_(g), options_(o), report_(r), shared_(shared), nested_(nested), placement_(g, {.views = o.reuse && o.aliases}) {}
  // The program's index in the package; those of nested graphs come after it.
  Result<int> run();

 private:
  Status lower_node(NodeId id);
  Result<std::vector<ops::CallSpec>> calls_of(ops::LowerContext& c, NodeId id);
  Result<int> condition(const std::string& text);
  bool of_weights_alone(const ops::CallSpec& spec, const std::vector<ops::CallSpec>& calls) const;
  bool shares(const ops::CallSpec& spec, ops::LowerContext& c, std::vector<int>& temps);
  Status add_task(NodeId id, ops::CallSpec spec, ops::LowerContext& c, const std::vector<int>& temps);
  Operand operand(const Arg& a, ops::LowerContext& c, const std::vector<int>& temps);
  Operand whole(Operand o, NodeId id);
  Status sources(ops::LowerContext& c, const std::vector<int>& temps);
  bool handed_on(ValueId v) const;
  void copy_outputs();
  void copy_states();
  void copy(const Operand& from, const Operand& to, const char* kernel = "move.copy");
  void report_states();
  std::string converter(ValueId v) const;
  Status lower_graphs();
  void keep_needed();
  void lifetimes();
  void in_place();
  int weight_storage(const Tensor& t);
  void count_readers();
  void has_read(NodeId id);

  const ir::Graph& g_;
  const LowerOptions& options_;
  LowerReport& report_;
  Shared& shared_;
  const bool nested_;
  plan::Placement placement_;
  Lowered lowered_;
  std::vector<Task>& tasks_ = lowered_.tasks;
  std::vector<int>&first_ = lowered_.first, &last_ = lowered_.last;
  std::map<StoredWeight, int> storage_of_;       // of weights that lowering made
  std::map<std::string, int> made_of_weights_;   // storage by the call that fills it
  std::map<std::string, int> condition_of_;      // by text
  std::set<std::string> reference_;
  std::vector<int> readers_;             // of each constant: nodes that are not lowered yet
  std::vector<bool> in_memory_;          // of each storage: some task reads it where it lies
};

void Lowering::count_readers() {
  readers_.assign(g_.value_capacity(), 0);
  for (NodeId id : g_.order())
    for (ValueId v : g_.node(id).inputs)
      if (v && g_.is_constant(v)) ++readers_[static_cast<size_t>(v.v)];
  for (ValueId v : g_.outputs) ++readers_[static_cast<size_t>(v.v)];
}

// Constants that were read for the last time: what tasks need of them was packed.
void Lowering::has_read(NodeId id) {
  const bool view = placement_.is_view(id);
  for (ValueId v : g_.node(id).inputs) {
    if (!v || !g_.is_constant(v)) continue;
    rest(*g_.value(v).constant);
    auto s = static_cast<size_t>(placement_.at(v).storage);
    in_memory_.resize(placement_.storages().size());
    if (view) in_memory_[s] = true;
    if (--readers_[static_cast<size_t>(v.v)] == 0 && !in_memory_[s] && options_.read_last) options_.read_last(v);
  }
}

int Lowering::weight_storage(const Tensor& t) {
  const StoredWeight w = shared_.store(t);
  rest(t);
  auto [it, fresh] = storage_of_.emplace(w, -1);
  if (!fresh) return it->second;
  it->second = placement_.add_storage({plan::StorageKind::weight, -1, {}, t.dtype(), t.count()});
  lowered_.packed[it->second] = w;
  return it->second;
}

Result<std::vector<ops::CallSpec>> Lowering::calls_of(ops::LowerContext& c, NodeId id) {
  auto& n = g_.node(id);
  bool known = !n.outputs.empty();
  for (ValueId v : n.outputs) known &= !v || g_.value(v).content.has_value();
  auto* def = ops::find(n.op);
  GE_CHECK(def, "an op without definition reached lowering: " + n.op);
  if (known && !def->reads) {
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i]) c.call("move.elements", {}, {c.out(static_cast<int>(i))}, *g_.value(n.outputs[i]).content);
    return std::move(c.calls);
  }
  if (options_.reference && def->reference) {
    GE_RETURN_IF_ERROR(def->reference(c));
    return std::move(c.calls);
  }
  if (def->lower) GE_RETURN_IF_ERROR(def->lower(c));
  if (!c.calls.empty()) return std::move(c.calls);
  GE_TRY(bool done, ops::lower_as_vector(c, *def));
  if (!done) {
    if (!def->reference) return c.fail("there is no way to run it with these types");
    GE_RETURN_IF_ERROR(def->reference(c));
  }
  return std::move(c.calls);
}

Status Lowering::lower_node(NodeId id) {
  auto& n = g_.node(id);
  if (placement_.is_view(id)) return ok();
  ops::LowerContext c(g_, n, [&](ValueId v) { return placement_.at(v).view; });
  for (ValueId v : n.inputs) {
    if (!v || ops::find(n.op)->executor) continue;
    auto& type = g_.value(v).type;
    if (type.kind != ir::TypeKind::tensor) return c.fail(format("input '{}' is {}, no tensor", g_.value(v).name, text(type)));
    if (!type.ranked) return c.fail(format("the number of axes of input '{}' is not known", g_.value(v).name), "Give the inputs' shapes with --input_shape, or make what its shape depends on a constant.");
  }
  auto calls = calls_of(c, id);
  GE_RETURN_IF_ERROR(ir::take_attribute_fault());
  if (!calls.ok()) {
    Error e = std::move(calls).take_error();
    if (e.node.empty()) e.node = n.name;
    return e;
  }
  std::vector<int> temps;
  for (auto& t : c.temps)
    temps.push_back(placement_.add_storage({plan::StorageKind::arena, -1, {}, t.dtype, product(t.dims)}));
  const bool deterministic = ops::find(n.op)->deterministic;
  GE_TRY(int when, condition(ir::attr_string(n, "when", "")));
  for (auto& spec : *calls) {
    const bool same = deterministic && of_weights_alone(spec, *calls);
    if (same && shares(spec, c, temps)) continue;
    // What others share has a part in all runs.
    GE_TRY(int own, condition(spec.when));
    const size_t before = tasks_.size();
    GE_RETURN_IF_ERROR(add_task(id, std::move(spec), c, temps));
    for (size_t t = before; t < tasks_.size(); ++t) tasks_[t].condition = same ? -1 : own >= 0 ? own : when;
  }
  return sources(c, temps);
}

// The number of a condition: an expression, not 0 where it holds; -1: of none.
Result<int> Lowering::condition(const std::string& text) {
  if (text.empty()) return -1;
  auto [it, fresh] = condition_of_.emplace(text, static_cast<int>(lowered_.conditions.size()));
  if (fresh) {
    GE_TRY(Dim d, Dim::parse(text));
    lowered_.conditions.push_back(d);
  }
  return it->second;
}

bool Lowering::of_weights_alone(const ops::CallSpec& spec, const std::vector<ops::CallSpec>& calls) const {
  if (!options_.reuse || spec.in.empty() || spec.out.size() != 1 || spec.out[0].kind != Arg::Kind::temp || spec.out[0].view || !spec.graphs.empty()) return false;
  if (std::any_of(spec.in.begin(), spec.in.end(), [](auto& a) { return a.kind != Arg::Kind::constant || a.view; })) return false;
  int writers = 0;
  for (auto& other : calls)
    for (auto& a : other.out) writers += a.kind == Arg::Kind::temp && a.index == spec.out[0].index;
  return writers == 1;
}

// What a call makes of weights alone is made once for all nodes that want the same: true if another call did.
bool Lowering::shares(const ops::CallSpec& spec, ops::LowerContext& c, std::vector<int>& temps) {
  std::string key = spec.kernel;
  for (auto& a : spec.in) key += format(" {}", weight_storage(c.constants[static_cast<size_t>(a.index)]));
  for (auto& d : spec.ints) key += format(", {}", d.text());
  for (double f : spec.floats) key += format(", {}", f);
  key.append(reinterpret_cast<const char*>(spec.blob.data()), spec.blob.size());
  int& storage = temps[static_cast<size_t>(spec.out[0].index)];
  auto [it, first] = made_of_weights_.emplace(std::move(key), storage);
  storage = it->second;
  return !first;
}

Operand Lowering::operand(const Arg& a, ops::LowerContext& c, const std::vector<int>& temps) {
  Operand o;
  switch (a.kind) {
    case Arg::Kind::none: break;
    case Arg::Kind::value: {
      ValueId v{a.index};
      auto& type = g_.value(v).type;
      o.storage = placement_.at(v).storage;
      in_memory_.resize(placement_.storages().size());
      in_memory_[static_cast<size_t>(o.storage)] = true;
      o.dtype = type.dtype;
      o.view = placement_.at(v).view;
      o.ranked = type.ranked && type.kind == ir::TypeKind::tensor;
      break;
    }
    case Arg::Kind::temp:
      o.storage = temps[static_cast<size_t>(a.index)];
      o.dtype = c.temps[static_cast<size_t>(a.index)].dtype;
      o.view = Strided::dense(c.temps[static_cast<size_t>(a.index)].dims);
      break;
    case Arg::Kind::constant: {
      auto& tensor = c.constants[static_cast<size_t>(a.index)];
      o.storage = weight_storage(tensor);
      o.dtype = tensor.dtype();
      o.view = Strided::dense(std::vector<Dim>(tensor.dims().begin(), tensor.dims().end()));
      break;
    }
  }
  if (a.view) o.view = *a.view;
  if (a.as != DType::none) o.dtype = a.as;
  return o;
}

// What an executor task reads is a whole value, dense: a view of another shape or order is copied first.
Operand Lowering::whole(Operand o, NodeId id) {
  if (o.storage < 0 || !o.ranked) return o;
  auto& storage = placement_.storages()[static_cast<size_t>(o.storage)];
  bool whole_pool = storage.kind != plan::StorageKind::pool && storage.kind != plan::StorageKind::output;
  if (!whole_pool && storage.value) whole_pool = g_.value(storage.value).type.dims == o.view.dims;
  if (whole_pool && o.view.is_dense()) return o;
  Task copy;
  copy.node = id;
  copy.kernel = kernels::find("move.copy");
  copy.spec.kernel = "move.copy";
  int s = placement_.add_storage({plan::StorageKind::arena, -1, {}, o.dtype, product(o.view.dims)});
  copy.in.push_back(o);
  o.storage = s;
  o.view = Strided::dense(o.view.dims);
  copy.out.push_back(o);
  tasks_.push_back(std::move(copy));
  return o;
}

Status Lowering::add_task(NodeId id, ops::CallSpec spec, ops::LowerContext& c, const std::vector<int>& temps) {
  Task t;
  t.node = id;
  t.kernel = kernels::find(spec.kernel);
  GE_CHECK(t.kernel, "unknown kernel " + spec.kernel);
  for (auto& a : spec.in) {
    Operand o = operand(a, c, temps);
    if (!o.ranked && !t.kernel->executor) return c.fail(format("the number of axes of input '{}' is not known", g_.value(ValueId{a.index}).name), "Give the inputs' shapes with --input_shape, or make what its shape depends on a constant.");
    t.in.push_back(t.kernel->executor ? whole(std::move(o), id) : std::move(o));
  }
  for (auto& a : spec.out) {
    t.out.push_back(operand(a, c, temps));
    if (!t.out.back().ranked && !t.kernel->executor) return c.fail("the number of axes of its output is not known", "Give the inputs' shapes with --input_shape, or make what its shape depends on a constant.");
  }
  // A copy onto itself: the part was made in place.
  if (spec.kernel == "move.copy" && t.in[0].storage == t.out[0].storage && same_view(t.in[0].view, t.out[0].view)) return ok();
  if (spec.kernel.starts_with("ref.")) reference_.insert(g_.node(id).op);
  t.spec = std::move(spec);
  tasks_.push_back(std::move(t));
  return ok();
}

// What the node decides: the symbols that it says, and the sizes of what an executor task makes.
Status Lowering::sources(ops::LowerContext& c, const std::vector<int>& temps) {
  for (auto& s : c.sizes) lowered_.sources.emplace(s.symbol, Source{operand(s.from, c, temps).storage, s.element, -1});
  auto* def = ops::find(c.node.op);
  if (!def->executor) return ok();
  for (ValueId v : c.node.outputs) {
    if (!v) continue;
    auto& type = g_.value(v).type;
    if (type.kind != ir::TypeKind::tensor || !type.ranked) continue;
    for (size_t k = 0; k < type.dims.size(); ++k) {
      auto it = g_.symbols.find(type.dims[k].symbol_name());
      if (it != g_.symbols.end() && it->second.data)
        lowered_.sources.emplace(it->first, Source{placement_.at(v).storage, 0, static_cast<int>(k)});
    }
  }
  return ok();
}

// A task is needed when something reads, directly or not, what it writes.
void Lowering::keep_needed() {
  std::vector<bool> wanted(placement_.storages().size());
  for (size_t s = 0; s < wanted.size(); ++s) wanted[s] = placement_.storages()[s].kind == plan::StorageKind::output || placement_.storages()[s].kind == plan::StorageKind::state;
  // A size may be asked for by a task that stands before the one that decides it.
  bool again = true;
  while (again) {
    again = false;
    for (size_t i = tasks_.size(); i-- > 0;) {
      auto& t = tasks_[i];
      if (t.needed) continue;
      for (auto& o : t.out) t.needed |= o.storage >= 0 && wanted[static_cast<size_t>(o.storage)];
      if (!t.needed) continue;
      for (auto& o : t.in)
        if (o.storage >= 0) wanted[static_cast<size_t>(o.storage)] = true;
      if (lowered_.sources.empty()) continue;
      for (auto& s : symbols_of(t, placement_))
        if (auto it = lowered_.sources.find(s); it != lowered_.sources.end()) wanted[static_cast<size_t>(it->second.storage)] = again = true;
    }
  }
  std::erase_if(tasks_, [](auto& t) { return !t.needed; });
}

void Lowering::lifetimes() {
  first_.assign(placement_.storages().size(), -1);
  last_.assign(placement_.storages().size(), -1);
  for (size_t i = 0; i < tasks_.size(); ++i) {
    for (auto* list : {&tasks_[i].in, &tasks_[i].out})
      for (auto& o : *list) {
        if (o.storage < 0) continue;
        auto s = static_cast<size_t>(o.storage);
        if (first_[s] < 0) first_[s] = static_cast<int>(i);
        last_[s] = static_cast<int>(i);
      }
  }
  // What decides a size is read when its segment has run.
  for (auto& [name, source] : lowered_.sources) {
    int& last = last_[static_cast<size_t>(source.storage)];
    if (last < 0) continue;
    last = std::max(last, *std::upper_bound(lowered_.segments.begin(), lowered_.segments.end(), last) - 1);
  }
}

// The first output takes over an input that ends here, where the kernel allows it and both are seen
// alike; no other operand of the task may be in that memory, unless the kernel allows it for that one too.
void Lowering::in_place() {
  auto decides = [&](int s) {
    return std::any_of(lowered_.sources.begin(), lowered_.sources.end(), [&](auto& x) { return x.second.storage == s; });
  };
  // The storage that each one became part of, until all tasks are renamed at once.
  std::vector<int> merged(placement_.storages().size());
  std::iota(merged.begin(), merged.end(), 0);
  auto now = [&](int& s) {
    if (s < 0) return;
    int root = s;
    while (merged[static_cast<size_t>(root)] != root) root = merged[static_cast<size_t>(root)];
    while (merged[static_cast<size_t>(s)] != root) s = std::exchange(merged[static_cast<size_t>(s)], root);
    s = root;
  };
  for (size_t i = 0; i < tasks_.size(); ++i) {
    auto& t = tasks_[i];
    for (auto* list : {&t.in, &t.out})
      for (auto& o : *list) now(o.storage);
    if (t.out.size() != 1 || !t.kernel->in_place || t.out[0].storage < 0) continue;
    int to = t.out[0].storage;
    auto kind = [&](int s) { return placement_.storages()[static_cast<size_t>(s)].kind; };
    if (first_[static_cast<size_t>(to)] != static_cast<int>(i) || (kind(to) != plan::StorageKind::arena && kind(to) != plan::StorageKind::output)) continue;
    for (size_t k = 0; k < t.in.size(); ++k) {
      int from = t.in[k].storage;
      if (from < 0 || from == to || kind(from) != plan::StorageKind::arena || last_[static_cast<size_t>(from)] != static_cast<int>(i) || decides(from)) continue;
      auto bytes = [&](int s) {
        auto& x = placement_.storages()[static_cast<size_t>(s)];
        return x.elements * Dim(size_of(x.dtype));
      };
      if (size_of(t.in[k].dtype) != size_of(t.out[0].dtype) || !(bytes(from) == bytes(to)) || !takes_over(t, k)) continue;
      placement_.merge(from, to);
      merged[static_cast<size_t>(from)] = to;
      first_[static_cast<size_t>(to)] = first_[static_cast<size_t>(from)];
      first_[static_cast<size_t>(from)] = last_[static_cast<size_t>(from)] = -1;
      break;
    }
  }
  for (auto& t : tasks_)
    for (auto* list : {&t.in, &t.out})
      for (auto& o : *list) now(o.storage);
  for (size_t s = 0; s < merged.size(); ++s) {
    int root = static_cast<int>(s);
    now(root);
    merged[s] = root;
  }
  placement_.rename(merged);
}

// A nested graph's output that is one of its inputs as it lies: whoever runs the graph takes over the value.
bool Lowering::handed_on(ValueId v) const {
  if (!nested_) return false;
  auto& place = placement_.at(v);
  auto& storage = placement_.storages()[static_cast<size_t>(place.storage)];
  if (storage.kind != plan::StorageKind::input || !place.view.is_dense() || !place.view.offset.is(0)) return false;
  auto &from = g_.value(g_.inputs[static_cast<size_t>(storage.index)]).type, &to = g_.value(v).type;
  return from.ranked && from.kind == to.kind && from.dtype == to.dtype && from.dims == to.dims;
}

// Outputs that could not be made where the caller wants them.
void Lowering::copy_outputs() {
  for (auto& [index, v] : placement_.copies()) {
    auto& type = g_.value(v).type;
    bool plain = type.kind == ir::TypeKind::tensor && type.ranked;
    if (plain && handed_on(v)) {
      lowered_.passed[index] = placement_.at(v).storage;
      continue;
    }
    int s = placement_.add_storage({plan::StorageKind::output, index, v, type.dtype, plain ? product(type.dims) : Dim(0)});
    copy({placement_.at(v).storage, type.dtype, placement_.at(v).view, plain}, {s, type.dtype, plain ? Strided::dense(type.dims) : Strided{}, plain},
         plain ? "move.copy" : "value.copy");
  }
}

void Lowering::copy(const Operand& from, const Operand& to, const char* kernel) {
  Task t;
  t.spec.kernel = kernel;
  t.kernel = kernels::find(t.spec.kernel);
  GE_CHECK(t.kernel, "no kernel for copies");
  t.in.push_back(from);
  t.out.push_back(to);
  tasks_.push_back(std::move(t));
}

// States whose output was made elsewhere. All that reads states has run by then; what lies in one itself goes by
// way of the arena, as another copy may overwrite it.
void Lowering::copy_states() {
  std::vector<std::pair<Operand, Operand>> last;
  for (size_t i = 0; i < g_.states.size(); ++i) {
    auto& place = placement_.states()[i];
    if (place.update != plan::StateUpdate::copied) continue;
    ValueId v = g_.outputs[static_cast<size_t>(g_.states[i].output)];
    auto& type = g_.value(v).type;
    Operand from{placement_.at(v).storage, type.dtype, placement_.at(v).view}, to{place.storage, type.dtype, Strided::dense(place.capacity)};
    to.view.dims = type.dims;
    if (placement_.storages()[static_cast<size_t>(from.storage)].kind == plan::StorageKind::state) {
      Operand between{placement_.add_storage({plan::StorageKind::arena, -1, {}, type.dtype, product(type.dims)}), type.dtype, Strided::dense(type.dims)};
      copy(from, between);
      from = between;
    }
    last.push_back({from, to});
  }
  for (auto& [from, to] : last) copy(from, to);
}

Status Lowering::lower_graphs() {
  LowerOptions inside = options_;
  inside.read_last = nullptr;   // their values are not the graph's
  for (auto& t : tasks_)
    for (auto& graph : t.spec.graphs) {
      size_t here = report_.bodies.size();
      for (auto& [key, attr] : g_.node(t.node).attrs)
        if (auto* p = std::get_if<std::shared_ptr<ir::Graph>>(&attr); p && *p == graph) report_.bodies.push_back({format("{} of {}", key, g_.node(t.node).name), -1});
      auto index = Lowering(*graph, inside, report_, shared_, true).run();
      if (!index.ok()) return Status(std::move(index).take_error()).context(format("{} in {}", graph->name, g_.node(t.node).name));
      t.programs.push_back(*index);
      report_.bodies[here].program = *index;
    }
  return ok();
}

// The node that makes another type of all that a value holds, itself or seen through views.
std::string Lowering::converter(ValueId v) const {
  for (auto& u : g_.value(v).uses) {
    auto& n = g_.node(u.node);
    if (n.op == "Cast" || n.op == "ge.Vector" || n.op == "ge.DequantizeRows") return n.name;
    auto* op = ops::find(n.op);
    if (!op || !op->view || u.index != 0) continue;
    for (ValueId out : n.outputs)
      if (std::string name = out ? converter(out) : ""; !name.empty()) return name;
  }
  return "";
}

void Lowering::report_states() {
  static constexpr const char* kUpdates[] = {"kept", "appended", "replaced", "written", "copied"};
  for (size_t i = 0; i < g_.states.size(); ++i) {
    auto& s = g_.states[i];
    auto& place = placement_.states()[i];
    LowerReport::State r;
    r.name = s.name;
    if (s.input >= 0) r.input = g_.value(g_.inputs[static_cast<size_t>(s.input)]).name;
    if (s.output >= 0) r.output = g_.output_names[static_cast<size_t>(s.output)];
    r.update = kUpdates[static_cast<int>(place.update)];
    r.why = place.why, r.unfit = s.unfit;
    for (ValueId v : {s.input >= 0 ? g_.inputs[static_cast<size_t>(s.input)] : ValueId{}, s.output >= 0 ? g_.outputs[static_cast<size_t>(s.output)] : ValueId{}})
      if (v && r.converted.empty() && (size_of(g_.value(v).type.dtype) == 2 || g_.value(v).type.dtype == DType::i8)) r.converted = converter(v);
    // Of one sequence where their number is open.
    r.capacity = size_of(placement_.storages()[static_cast<size_t>(place.storage)].dtype);
    for (auto& d : place.capacity)
      if (d.known()) r.capacity *= d.value();
    r.row = s.axis >= 0 ? r.capacity / s.capacity : 0;
    report_.states.push_back(std::move(r));
  }
}

Result<int> Lowering::run() {
  std::vector<std::string> failures;
  Error first_failure;
  count_readers();
  for (NodeId id : g_.order()) {
    auto s = lower_node(id);
    has_read(id);
    if (s.ok()) continue;
    if (failures.empty()) first_failure = s.error();
    failures.push_back(format("{} ({}): {}", g_.node(id).name, g_.node(id).op, s.error().message));
  }
  if (failures.size() > 1) first_failure.message += "\nall of them:\n  " + join(failures, "\n  ");
  if (!failures.empty()) return first_failure;
  copy_outputs();
  copy_states();
  keep_needed();
  GE_RETURN_IF_ERROR(cut_segments(g_, placement_, lowered_));
  lifetimes();
  if (options_.reuse && options_.aliases) in_place();
  if (options_.reuse && options_.aliases && nested_) find_updates(g_, placement_, lowered_);
  auto& programs = shared_.package.model.programs;
  size_t program = programs.size();
  programs.push_back(nullptr);
  GE_RETURN_IF_ERROR(lower_graphs());
  std::vector<std::string> tensors;
  GE_RETURN_IF_ERROR(emit(g_, placement_, lowered_, {options_.reuse, options_.read_last}, shared_, program, tensors));
  if (program == 0) report_.tensors = std::move(tensors);
  report_states();
  report_.tasks += static_cast<int>(tasks_.size());
  report_.aliases.views += placement_.counts.views;
  report_.aliases.parts += placement_.counts.parts;
  report_.aliases.in_place += placement_.counts.in_place;
  report_.aliases.outputs += placement_.counts.outputs;
  report_.reference_ops.insert(report_.reference_ops.end(), reference_.begin(), reference_.end());
  return static_cast<int>(program);
}

}  // namespace

Result<om::Package> lower(const ir::Graph& g, const LowerOptions& options, LowerReport& report) {
  report = {};
  Shared shared(options.file);
  GE_TRY(int program, Lowering(g, options, report, shared, false).run());
  std::sort(report.reference_ops.begin(), report.reference_ops.end());
  report.reference_ops.erase(std::unique(report.reference_ops.begin(), report.reference_ops.end()), report.reference_ops.end());
  const size_t weights = shared.weights.size();
  shared.package.file = shared.weights.file();
  auto held = shared.weights.take();
  shared.package.weights = {held.get(), weights};
  shared.package.keep = held;
  auto entry = std::make_unique<om::EntryT>();
  entry->name = "main";
  entry->program = program;
  shared.package.model.entries.push_back(std::move(entry));
  shared.package.model.name = g.name;
  report.weights = static_cast<int64_t>(weights);
  return std::move(shared.package);
}

}  // namespace ge::lower
