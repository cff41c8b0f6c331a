#include "lower/emit.h"

#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "base/hash.h"
#include "base/text.h"
#include "lower/expressions.h"

namespace ge::lower {
namespace {

using ir::ValueId;
using plan::StorageKind;

class Emitter {
 public:
  Emitter(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered, om::Package& package)
      : g_(g), placement_(placement), lowered_(lowered), package_(package), exprs_(p_), buffer_of_(placement.storages().size(), -1) {}

  Status run(bool reuse) {
    symbols();
    ports();
    weights_.reserve(most_weights());
    for (auto& t : lowered_.tasks) task(t);
    auto segment = std::make_unique<om::SegmentT>();
    segment->first = 0;
    segment->end = static_cast<int>(p_.tasks.size());
    p_.segments.push_back(std::move(segment));
    p_.reuse = reuse;
    for (auto& s : p_.symbols)
      if (!sourced_.count(s->name))
        return error(code::kUnsupportedOp, format("Size '{}' depends on data.", s->name), "an operator whose output size is known only after it ran", "not supported yet");
    finish();
    return ok();
  }

  // The name of each buffer's value; of an operator's workspace, the operator.
  std::vector<std::string> tensors() const {
    std::vector<std::string> out(package_.model.programs[0]->buffers.size());
    for (size_t s = 0; s < buffer_of_.size(); ++s) {
      if (buffer_of_[s] < 0) continue;
      auto& storage = placement_.storages()[s];
      auto& name = out[static_cast<size_t>(buffer_of_[s])];
      if (storage.value) name = g_.value(storage.value).name;
      else if (lowered_.first[s] >= 0) name = "workspace of " + g_.node(lowered_.tasks[static_cast<size_t>(lowered_.first[s])].node).name;
    }
    return out;
  }

 private:
  // Symbols in the order of the inputs' axes, each with the first axis that gives its value.
  void symbols() {
    for (size_t i = 0; i < g_.inputs.size(); ++i) {
      auto& dims = g_.value(g_.inputs[i]).type.dims;
      for (size_t k = 0; k < dims.size(); ++k) {
        if (dims[k].known()) continue;
        auto name = dims[k].symbol_name();
        GE_CHECK(!name.empty(), "a size of an input is an expression");
        if (!sourced_.insert(std::string(name)).second) continue;
        auto& symbol = *p_.symbols[static_cast<size_t>(exprs_.symbol(name))];
        symbol.input = static_cast<int>(i);
        symbol.axis = static_cast<int>(k);
        auto it = g_.symbols.find(name);
        if (it != g_.symbols.end()) symbol.min = it->second.min, symbol.max = it->second.max;
      }
    }
  }

  std::unique_ptr<om::PortT> port(const std::string& name, const ir::Type& type, int buffer) {
    auto x = std::make_unique<om::PortT>();
    x->name = name;
    x->dtype = static_cast<uint8_t>(type.dtype);
    for (auto& d : type.dims) x->dims.push_back(exprs_.add(d));
    x->buffer = buffer;
    return x;
  }

  void ports() {
    std::vector<int> output_buffer(g_.outputs.size(), -1);
    for (size_t s = 0; s < buffer_of_.size(); ++s) {
      auto& x = placement_.storages()[s];
      if (x.kind != StorageKind::input && x.kind != StorageKind::output) continue;
      buffer(s);
      if (x.kind == StorageKind::output) output_buffer[static_cast<size_t>(x.index)] = buffer_of_[s];
    }
    for (ValueId v : g_.inputs)
      p_.inputs.push_back(port(g_.value(v).name, g_.value(v).type, buffer_of_[static_cast<size_t>(placement_.at(v).storage)]));
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      p_.outputs.push_back(port(g_.output_names[i], g_.value(g_.outputs[i]).type, output_buffer[i]));
  }

  // The buffer of a storage, made when it is first met; equal weights share one.
  void buffer(size_t s) {
    if (buffer_of_[s] >= 0) return;
    auto& storage = placement_.storages()[s];
    if (storage.kind == StorageKind::weight) return weight(s);
    auto b = std::make_unique<om::BufferT>();
    if (storage.kind == StorageKind::arena) {
      b->kind = om::BufferKind::arena;
      b->bytes = exprs_.add(storage.elements * Dim(size_of(storage.dtype)));
      b->first = lowered_.first[s];
      b->last = lowered_.last[s];
    } else {
      b->kind = storage.kind == StorageKind::input ? om::BufferKind::input : om::BufferKind::output;
      b->index = storage.index;
    }
    buffer_of_[s] = static_cast<int>(p_.buffers.size());
    p_.buffers.push_back(std::move(b));
  }

  const Tensor& tensor_of(size_t s) const {
    auto packed = lowered_.packed_of.find(static_cast<int>(s));
    return packed != lowered_.packed_of.end() ? lowered_.packed[packed->second] : *g_.value(placement_.storages()[s].value).constant;
  }

  // Address space for all weights, were none equal: growing would hold them twice.
  size_t most_weights() const {
    size_t sum = 0;
    for (size_t s = 0; s < placement_.storages().size(); ++s)
      if (placement_.storages()[s].kind == StorageKind::weight && lowered_.first[s] >= 0) sum += tensor_of(s).bytes() + om::kWeightAlign;
    return sum;
  }

  void weight(size_t s) {
    const Tensor t = tensor_of(s);   // a reference to its memory, that of a packed one the last
    if (auto packed = lowered_.packed_of.find(static_cast<int>(s)); packed != lowered_.packed_of.end()) lowered_.packed[packed->second] = Tensor();
    uint64_t h = hash64(t.raw(), static_cast<uint64_t>(t.dtype()));
    auto [low, high] = by_hash_.equal_range(h);
    for (auto it = low; it != high; ++it) {
      auto& old = *p_.buffers[static_cast<size_t>(it->second)];
      if (old.weight_bytes == t.bytes() && std::memcmp(weights_.data() + old.weight_offset, t.data(), t.bytes()) == 0) {
        buffer_of_[s] = it->second;
        return;
      }
    }
    auto b = std::make_unique<om::BufferT>();
    b->kind = om::BufferKind::weight;
    b->weight_offset = (weights_.size() + om::kWeightAlign - 1) / om::kWeightAlign * om::kWeightAlign;
    b->weight_bytes = t.bytes();
    weights_.resize(b->weight_offset);
    weights_.insert(weights_.end(), t.raw().begin(), t.raw().end());
    buffer_of_[s] = static_cast<int>(p_.buffers.size());
    by_hash_.emplace(h, buffer_of_[s]);
    p_.buffers.push_back(std::move(b));
  }

  std::unique_ptr<om::ViewT> view(const Operand& o) {
    auto v = std::make_unique<om::ViewT>();
    if (o.storage < 0) return v;
    buffer(static_cast<size_t>(o.storage));
    v->buffer = buffer_of_[static_cast<size_t>(o.storage)];
    v->dtype = static_cast<uint8_t>(o.dtype);
    if (!o.view.offset.is(0)) v->offset = exprs_.add(o.view.offset);
    for (auto& d : o.view.dims) v->dims.push_back(exprs_.add(d));
    if (!o.view.is_dense())
      for (auto& d : o.view.strides) v->strides.push_back(exprs_.add(d));
    return v;
  }

  void task(const Task& t) {
    auto task = std::make_unique<om::TaskT>();
    task->name = t.node ? g_.node(t.node).name : "output";
    if (t.node) {
      task->op = g_.node(t.node).op;
      task->origins = g_.node(t.node).origin;
    }
    task->unit = static_cast<uint8_t>(t.kernel->unit);
    auto [it, fresh] = kernel_index_.emplace(t.spec.kernel, static_cast<int>(package_.model.kernels.size()));
    if (fresh) package_.model.kernels.push_back(t.spec.kernel);
    auto call = std::make_unique<om::CallT>();
    call->kernel = it->second;
    for (auto& o : t.in) call->ins.push_back(view(o));
    for (auto& o : t.out) call->outs.push_back(view(o));
    for (auto& d : t.spec.ints) call->ints.push_back(exprs_.add(d));
    call->floats = t.spec.floats;
    auto* bytes = reinterpret_cast<const uint8_t*>(t.spec.blob.data());
    call->blob.assign(bytes, bytes + t.spec.blob.size());
    task->alternatives.push_back(std::move(call));
    p_.tasks.push_back(std::move(task));
  }

  void finish() {
    auto held = std::make_shared<std::vector<std::byte>>(std::move(weights_));
    package_.weights = *held;
    package_.keep = held;
    auto entry = std::make_unique<om::EntryT>();
    entry->name = "main";
    entry->program = static_cast<int>(package_.model.programs.size());
    package_.model.entries.push_back(std::move(entry));
    package_.model.programs.push_back(std::make_unique<om::ProgramT>(std::move(p_)));
    package_.model.name = g_.name;
  }

  const ir::Graph& g_;
  const plan::Placement& placement_;
  Lowered& lowered_;
  om::Package& package_;
  om::ProgramT p_;
  ExpressionList exprs_;
  std::vector<int> buffer_of_;               // storage -> buffer
  std::vector<std::byte> weights_;
  std::multimap<uint64_t, int> by_hash_;     // weights by content
  std::map<std::string, int> kernel_index_;
  std::set<std::string> sourced_;            // symbols that an input gives
};

}  // namespace

Status emit(const ir::Graph& g, const plan::Placement& placement, Lowered& lowered, bool reuse, om::Package& package,
            std::vector<std::string>& tensors) {
  Emitter e(g, placement, lowered, package);
  GE_RETURN_IF_ERROR(e.run(reuse));
  tensors = e.tensors();
  return ok();
}

}  // namespace ge::lower
