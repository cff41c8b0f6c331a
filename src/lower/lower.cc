#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "kernels/kernel.h"
#include "lower/emit.h"
#include "ops/op.h"

namespace ge::lower {
namespace {

using ir::NodeId;
using ir::ValueId;
using ops::Arg;
using ops::Strided;

bool same_view(const Strided& a, const Strided& b) {
  return a.offset == b.offset && a.dims == b.dims && a.strides == b.strides;
}

class Lowering {
 public:
  Lowering(const ir::Graph& g, const LowerOptions& o, LowerReport& r)
      : g_(g), options_(o), report_(r), placement_(g, {.views = o.reuse}) {}
  Result<om::Package> run();

 private:
  Status lower_node(NodeId id);
  Result<std::vector<ops::CallSpec>> calls_of(ops::LowerContext& c, NodeId id);
  Status add_task(NodeId id, ops::CallSpec spec, ops::LowerContext& c, const std::vector<int>& temps);
  void keep_needed();
  void lifetimes();
  void in_place();
  int weight_storage(const Tensor& t);

  const ir::Graph& g_;
  const LowerOptions& options_;
  LowerReport& report_;
  plan::Placement placement_;
  Lowered lowered_;
  std::vector<Task>& tasks_ = lowered_.tasks;
  std::vector<int>&first_ = lowered_.first, &last_ = lowered_.last;
  std::multimap<uint64_t, int> weight_by_hash_;
  std::set<std::string> reference_;
};

int Lowering::weight_storage(const Tensor& t) {
  uint64_t h = hash64(t.raw(), static_cast<uint64_t>(t.dtype()));
  auto [a, b] = weight_by_hash_.equal_range(h);
  for (auto it = a; it != b; ++it)
    if (lowered_.packed[lowered_.packed_of[it->second]].same_bytes(t)) return it->second;
  int s = placement_.add_storage({plan::StorageKind::weight, -1, {}, t.dtype(), t.count()});
  lowered_.packed_of[s] = lowered_.packed.size();
  lowered_.packed.push_back(t);
  weight_by_hash_.emplace(h, s);
  return s;
}

Result<std::vector<ops::CallSpec>> Lowering::calls_of(ops::LowerContext& c, NodeId id) {
  auto& n = g_.node(id);
  bool known = !n.outputs.empty();
  for (ValueId v : n.outputs) known &= !v || g_.value(v).content.has_value();
  if (known) {
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i]) c.call("move.elements", {}, {c.out(static_cast<int>(i))}, *g_.value(n.outputs[i]).content);
    return std::move(c.calls);
  }
  auto* def = ops::find(n.op);
  GE_CHECK(def, "an op without definition reached lowering: " + n.op);
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
  auto calls = calls_of(c, id);
  if (!calls.ok()) {
    Error e = std::move(calls).take_error();
    if (e.node.empty()) e.node = n.name;
    return e;
  }
  std::vector<int> temps;
  for (auto& t : c.temps)
    temps.push_back(placement_.add_storage({plan::StorageKind::arena, -1, {}, t.dtype, product(t.dims)}));
  for (auto& spec : *calls) GE_RETURN_IF_ERROR(add_task(id, std::move(spec), c, temps));
  return ok();
}

Status Lowering::add_task(NodeId id, ops::CallSpec spec, ops::LowerContext& c, const std::vector<int>& temps) {
  Task t;
  t.node = id;
  t.kernel = kernels::find(spec.kernel);
  GE_CHECK(t.kernel, "unknown kernel " + spec.kernel);
  auto resolve = [&](const Arg& a) {
    Operand o;
    switch (a.kind) {
      case Arg::Kind::none: break;
      case Arg::Kind::value: {
        ValueId v{a.index};
        o.storage = placement_.at(v).storage;
        o.dtype = g_.value(v).type.dtype;
        o.view = placement_.at(v).view;
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
    return o;
  };
  for (auto& a : spec.in) t.in.push_back(resolve(a));
  for (auto& a : spec.out) t.out.push_back(resolve(a));
  // A copy onto itself: the part was made in place.
  if (spec.kernel == "move.copy" && t.in[0].storage == t.out[0].storage && same_view(t.in[0].view, t.out[0].view)) return ok();
  if (spec.kernel.starts_with("ref.")) reference_.insert(g_.node(id).op);
  t.spec = std::move(spec);
  tasks_.push_back(std::move(t));
  return ok();
}

// A task is needed when something reads, directly or not, what it writes.
void Lowering::keep_needed() {
  std::vector<bool> wanted(placement_.storages().size());
  for (size_t s = 0; s < wanted.size(); ++s) wanted[s] = placement_.storages()[s].kind == plan::StorageKind::output;
  for (size_t i = tasks_.size(); i-- > 0;) {
    auto& t = tasks_[i];
    for (auto& o : t.out) t.needed |= o.storage >= 0 && wanted[static_cast<size_t>(o.storage)];
    if (!t.needed) continue;
    for (auto& o : t.in)
      if (o.storage >= 0) wanted[static_cast<size_t>(o.storage)] = true;
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
}

// The first output takes over an input that ends here, where the kernel allows it and both are seen
// alike; no other operand of the task may be in that memory, unless the kernel allows it for that one too.
void Lowering::in_place() {
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
    for (size_t k = 0; k < t.in.size() && k < 32; ++k) {
      int from = t.in[k].storage;
      if (!(t.kernel->in_place >> k & 1) || from < 0 || from == to || kind(from) != plan::StorageKind::arena || last_[static_cast<size_t>(from)] != static_cast<int>(i)) continue;
      auto bytes = [&](int s) {
        auto& x = placement_.storages()[static_cast<size_t>(s)];
        return x.elements * Dim(size_of(x.dtype));
      };
      bool alike = size_of(t.in[k].dtype) == size_of(t.out[0].dtype) && bytes(from) == bytes(to);
      // Other operands in the same memory must be ones that the kernel reads element by element too.
      for (size_t j = 0; j < t.in.size(); ++j)
        alike &= t.in[j].storage != from || (j < 32 && (t.kernel->in_place >> j & 1) && same_view(t.in[j].view, t.out[0].view));
      if (!alike) continue;
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

Result<om::Package> Lowering::run() {
  std::vector<std::string> failures;
  Error first_failure;
  for (NodeId id : g_.order()) {
    auto s = lower_node(id);
    if (s.ok()) continue;
    if (failures.empty()) first_failure = s.error();
    failures.push_back(format("{} ({}): {}", g_.node(id).name, g_.node(id).op, s.error().message));
  }
  if (failures.size() > 1) first_failure.message += "\nall of them:\n  " + join(failures, "\n  ");
  if (!failures.empty()) return first_failure;
  for (auto& [index, v] : placement_.copies()) {
    Task t;
    t.kernel = kernels::find("move.copy");
    GE_CHECK(t.kernel, "no move.copy");
    t.spec.kernel = "move.copy";
    auto& type = g_.value(v).type;
    int s = placement_.add_storage({plan::StorageKind::output, index, v, type.dtype, product(type.dims)});
    t.in.push_back({placement_.at(v).storage, type.dtype, placement_.at(v).view});
    t.out.push_back({s, type.dtype, Strided::dense(type.dims)});
    tasks_.push_back(std::move(t));
  }
  keep_needed();
  lifetimes();
  if (options_.reuse) in_place();
  om::Package package;
  GE_RETURN_IF_ERROR(emit(g_, placement_, lowered_, options_.reuse, package, report_.tensors));
  report_.weights = static_cast<int64_t>(package.weights.size());
  report_.tasks = static_cast<int>(tasks_.size());
  report_.aliases = placement_.counts;
  report_.reference_ops.assign(reference_.begin(), reference_.end());
  return package;
}

}  // namespace

Result<om::Package> lower(const ir::Graph& g, const LowerOptions& options, LowerReport& report) {
  return Lowering(g, options, report).run();
}

}  // namespace ge::lower
