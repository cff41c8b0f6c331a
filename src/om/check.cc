#include "om/check.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "base/utf8.h"
#include "kernels/kernel.h"
#include "tensor/dtype.h"

namespace ge::om {
namespace {

Error damaged(std::string what) {
  return error(code::kParse, format("The .om file cannot be run: {}.", what), "the file is damaged or hostile",
               "compile the model again");
}

template <class T>
bool any_null(const std::vector<std::unique_ptr<T>>& v) {
  for (auto& p : v)
    if (!p) return true;
  return false;
}

Status check_exprs(const ProgramT& p) {
  for (size_t i = 0; i < p.exprs.size(); ++i) {
    const Expr& e = p.exprs[i];
    if (e.op() > ExprOp::MAX) return damaged(format("expression {} is unknown", i));
    if (e.op() == ExprOp::constant) continue;
    if (e.op() == ExprOp::symbol) {
      if (e.imm() < 0 || static_cast<size_t>(e.imm()) >= p.symbols.size()) return damaged(format("expression {} names no symbol", i));
      continue;
    }
    auto earlier = [&](int32_t k) { return k >= 0 && static_cast<size_t>(k) < i; };
    if (!earlier(e.a()) || !earlier(e.b()) || (e.op() == ExprOp::select && !earlier(e.c())))
      return damaged(format("expression {} reads a later one", i));
  }
  return ok();
}

Status check_indices(const std::vector<int32_t>& list, const ProgramT& p, const char* what) {
  for (int32_t e : list)
    if (e < 0 || static_cast<size_t>(e) >= p.exprs.size()) return damaged(format("{} has no value", what));
  return ok();
}

Status check_view(const ViewT& v, const ProgramT& p) {
  if (v.buffer < -1 || v.buffer >= static_cast<int32_t>(p.buffers.size())) return damaged("an operand names no buffer");
  if (v.offset < -1 || v.offset >= static_cast<int32_t>(p.exprs.size())) return damaged("an operand's place has no value");
  if (v.dtype >= kDTypeCount) return damaged("an operand's type is unknown");
  GE_RETURN_IF_ERROR(check_indices(v.dims, p, "an operand's size"));
  return check_indices(v.strides, p, "an operand's stride");
}

Status check_port(const PortT& port, const ProgramT& p) {
  const bool none = port.kind == ValueKind::tensor && port.dtype == static_cast<uint8_t>(DType::none);
  if (port.dtype >= kDTypeCount || none) return damaged(format("'{}' has an unknown type", port.name));
  if (port.kind > ValueKind::MAX) return damaged(format("'{}' is of an unknown kind", port.name));
  if (port.updates < -1 || port.updates >= static_cast<int32_t>(p.inputs.size())) return damaged(format("'{}' is made in no input", port.name));
  if ((port.unranked || port.kind != ValueKind::tensor) && !port.dims.empty()) return damaged(format("'{}' has a shape, and any shape", port.name));
  return check_indices(port.dims, p, "an input's or output's size");
}

Status check_buffer(const BufferT& b, const ProgramT& p) {
  if (b.kind > BufferKind::MAX || b.value > ValueKind::MAX) return damaged("a buffer is of an unknown kind");
  if (b.bytes < -1 || b.bytes >= static_cast<int32_t>(p.exprs.size())) return damaged("a buffer's size has no value");
  return ok();
}

// A size that data decide names the task that decides it.
Status check_symbol(const SymbolT& s, const ProgramT& p) {
  if (s.buffer < -1 || s.buffer >= static_cast<int32_t>(p.buffers.size()) || s.element < 0 || s.axis < -1) return damaged(format("size '{}' comes from nowhere", s.name));
  if (s.buffer >= 0 && (s.task < 0 || s.task >= static_cast<int32_t>(p.tasks.size()))) return damaged(format("no task decides size '{}'", s.name));
  return ok();
}

Status check_state(const StatePortT& s, const ProgramT& p, const ModelT& model) {
  if (s.state < 0 || static_cast<size_t>(s.state) >= model.states.size()) return damaged("a program names no state");
  for (auto* sizes : {&s.capacity, &s.in, &s.out}) GE_RETURN_IF_ERROR(check_indices(*sizes, p, "a state's size"));
  auto rank = model.states[static_cast<size_t>(s.state)]->dims.size();
  if (s.capacity.size() != rank || (!s.in.empty() && s.in.size() != rank) || (!s.out.empty() && s.out.size() != rank)) return damaged("a state has another rank");
  return ok();
}

Status check_states(const ModelT& model) {
  std::set<std::string_view> names;
  for (auto& s : model.states) {
    if (!is_utf8(s->name) || !names.insert(s->name).second) return damaged("two states have one name");
    if (s->dtype >= kDTypeCount || size_of(static_cast<DType>(s->dtype)) <= 0) return damaged(format("state '{}' has an unknown type", s->name));
    if (s->axis < -1 || s->axis >= static_cast<int32_t>(s->dims.size())) return damaged(format("state '{}' grows along no axis", s->name));
    for (size_t i = 0; i < s->dims.size(); ++i)
      if (s->dims[i] < (i == 0 && s->axis != 0 ? -1 : 0)) return damaged(format("state '{}' has a negative size", s->name));
  }
  return ok();
}

Status check_task(const TaskT& t, const ProgramT& p, const Package& package) {
  if (any_null(t.alternatives) || t.alternatives.empty()) return damaged(format("task {} has nothing to run", t.name));
  for (auto& a : t.alternatives) {
    if (a->kernel < 0 || static_cast<size_t>(a->kernel) >= package.model.kernels.size()) return damaged(format("task {} names no kernel", t.name));
    if (a->condition < -1 || a->condition >= static_cast<int32_t>(p.exprs.size())) return damaged(format("task {} has no condition", t.name));
    if (any_null(a->ins) || any_null(a->outs)) return damaged(format("task {} lacks an operand", t.name));
    for (auto& v : a->ins) GE_RETURN_IF_ERROR(check_view(*v, p));
    for (auto& v : a->outs) GE_RETURN_IF_ERROR(check_view(*v, p));
    GE_RETURN_IF_ERROR(check_indices(a->ints, p, "a parameter"));
  }
  for (int32_t s : t.programs)
    if (s < 0 || static_cast<size_t>(s) >= package.model.programs.size()) return damaged(format("task {} names no program", t.name));
  return ok();
}

// Names go into messages, JSON and Python's strings.
bool readable(const ProgramT& p) {
  auto named = [](auto& list) { return std::all_of(list.begin(), list.end(), [](auto& x) { return is_utf8(x->name); }); };
  if (!named(p.symbols) || !named(p.inputs) || !named(p.outputs) || !named(p.states)) return false;
  if (!std::all_of(p.demands.begin(), p.demands.end(), [](auto& d) { return is_utf8(d->who); })) return false;
  return std::all_of(p.tasks.begin(), p.tasks.end(), [](auto& t) {
    return is_utf8(t->name) && is_utf8(t->op) && std::all_of(t->origins.begin(), t->origins.end(), [](auto& o) { return is_utf8(o); });
  });
}

bool readable(const ModelT& m) {
  for (auto* text : {&m.name, &m.producer, &m.command, &m.source_hash})
    if (!is_utf8(*text)) return false;
  return std::all_of(m.kernels.begin(), m.kernels.end(), [](auto& k) { return is_utf8(k); }) &&
         std::all_of(m.entries.begin(), m.entries.end(), [](auto& e) { return is_utf8(e->name); });
}

Status check_program(const ProgramT& p, const Package& package) {
  if (any_null(p.symbols) || any_null(p.inputs) || any_null(p.outputs) || any_null(p.buffers) || any_null(p.tasks) ||
      any_null(p.segments) || any_null(p.plans) || any_null(p.states) || any_null(p.demands))
    return damaged("a table is empty");
  if (!readable(p)) return damaged("a name is not UTF-8");
  GE_RETURN_IF_ERROR(check_exprs(p));
  for (auto* ports : {&p.inputs, &p.outputs})
    for (auto& port : *ports) GE_RETURN_IF_ERROR(check_port(*port, p));
  for (auto& b : p.buffers) GE_RETURN_IF_ERROR(check_buffer(*b, p));
  for (auto& s : p.symbols) GE_RETURN_IF_ERROR(check_symbol(*s, p));
  for (auto& s : p.states) GE_RETURN_IF_ERROR(check_state(*s, p, package.model));
  for (auto& d : p.demands) GE_RETURN_IF_ERROR(check_indices({d->a, d->b}, p, "a demanded size"));
  for (auto& t : p.tasks) GE_RETURN_IF_ERROR(check_task(*t, p, package));
  int32_t at = 0;
  for (auto& s : p.segments) {
    if (s->first != at || s->end < s->first) return damaged("the segments do not follow one another");
    at = s->end;
  }
  if (at != static_cast<int32_t>(p.tasks.size())) return damaged("the segments do not cover the tasks");
  return ok();
}

// Sub-programs stand after the programs that run them, so none runs itself; and how deep they nest is bounded, as
// the stack of a run is.
Status check_nesting(const Package& package) {
  constexpr int kMaxDepth = 100;
  auto& programs = package.model.programs;
  std::vector<int> depth(programs.size(), 1);
  for (size_t i = programs.size(); i-- > 0;)
    for (auto& t : programs[i]->tasks)
      for (int32_t s : t->programs) {
        if (static_cast<size_t>(s) <= i) return damaged(format("task {} runs its own program", t->name));
        depth[i] = std::max(depth[i], depth[static_cast<size_t>(s)] + 1);
        if (depth[i] > kMaxDepth) return damaged("its programs nest too deep");
      }
  return ok();
}

}  // namespace

Status check(const Package& p) {
  if (any_null(p.model.programs) || any_null(p.model.entries) || any_null(p.model.states)) return damaged("a table is empty");
  if (!readable(p.model)) return damaged("a name is not UTF-8");
  for (auto& k : p.model.kernels)
    if (!kernels::find(k))
      return error(code::kUnsupportedOp, format("The .om file needs kernel '{}', which this version lacks.", k),
                   "it was made by another version of GE", "compile the model again with this version");
  for (auto& e : p.model.entries)
    if (e->program < 0 || static_cast<size_t>(e->program) >= p.model.programs.size()) return damaged("an entry names no program");
  GE_RETURN_IF_ERROR(check_states(p.model));
  for (auto& program : p.model.programs) GE_RETURN_IF_ERROR(check_program(*program, p));
  return check_nesting(p);
}

}  // namespace ge::om
