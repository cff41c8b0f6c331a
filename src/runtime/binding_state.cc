// States in a Binding: their sizes, and the proof that a run stays in the rows that it holds or writes.
#include <algorithm>

#include "base/text.h"
#include "om/expressions.h"
#include "runtime/binding.h"
#include "runtime/value.h"
#include "tensor/limits.h"

namespace ge::runtime {
namespace {


Error damaged(std::string what) {
  return error(code::kParse, std::move(what), "the .om file is damaged", "compile the model again");
}

}  // namespace

// A size that only a state gives and that is not known yet is that of an empty state: no entries of one sequence.
Status bind_state_symbols(const om::ProgramT& program, const StateDims& states, std::vector<int64_t>& symbols) {
  for (size_t i = 0; i < program.states.size(); ++i) {
    auto& port = *program.states[i];
    auto held = i < states.size() ? std::span<const int64_t>(states[i]) : std::span<const int64_t>();
    if (!held.empty() && !port.in.empty() && held.size() != port.in.size()) return damaged("A state has another rank than its port.");
    for (size_t k = 0; k < port.in.size(); ++k) {
      int32_t e = port.in[k];
      if (e < 0 || static_cast<size_t>(e) >= program.exprs.size()) return damaged("A state's size is missing.");
      const om::Expr& x = program.exprs[static_cast<size_t>(e)];
      bool symbol = x.op() == om::ExprOp::symbol;
      if (symbol && (x.imm() < 0 || static_cast<size_t>(x.imm()) >= symbols.size())) return damaged("A state's size names no symbol.");
      if (!symbol && x.op() != om::ExprOp::constant) continue;   // it follows from other sizes; StateLease::prepare compares
      int64_t value = held.empty() ? om::kUnknown : held[k];
      int64_t expected = symbol ? symbols[static_cast<size_t>(x.imm())] : x.imm();
      if (symbol && expected == om::kUnknown) {
        auto& s = *program.symbols[static_cast<size_t>(x.imm())];
        if (s.state < 0) continue;   // an input's, which was not given
        int64_t& now = symbols[static_cast<size_t>(x.imm())];
        now = held.empty() ? (k == 0 ? 1 : 0) : value;
        if (now < s.min || now > s.max)
          return error(code::kInputMismatch, format("State '{}' holds {} along axis {} ({}), allowed are {} to {}.", port.name, now, k, s.name, s.min, s.max), "the model was compiled for these sizes");
        continue;
      }
      if (value != om::kUnknown && value != expected)
        return error(code::kInputMismatch, format("State '{}' holds {}: axis {} is {} for inputs of these sizes.", port.name, shape_text(held), k, expected),
                     "states and inputs of one run go together", "feed sizes that fit, or reset() the state");
    }
  }
  return ok();
}

Status Binding::bind_states(const om::Package& package) {
  for (auto& port : program->states) {
    if (port->state < 0 || static_cast<size_t>(port->state) >= package.model.states.size()) return damaged("A program names no state.");
    GE_RETURN_IF_ERROR(bind_state(*port, *package.model.states[static_cast<size_t>(port->state)]));
  }
  return ok();
}

Status Binding::bind_state(const om::StatePortT& port, const om::StateT& state) {
  BoundState s;
  auto values = [&](const std::vector<int32_t>& list, std::vector<int64_t>& out) {
    bool known = true;
    for (int32_t e : list) {
      out.push_back(e >= 0 && static_cast<size_t>(e) < exprs.size() ? exprs[static_cast<size_t>(e)] : om::kUnknown);
      known &= out.back() != om::kUnknown;
    }
    return known;
  };
  const bool grows = state.axis >= 0;
  const auto axis = static_cast<size_t>(std::max(state.axis, 0));
  if (!values(port.capacity, s.capacity) || s.capacity.size() != state.dims.size() || (grows && axis >= state.dims.size()))
    return damaged(format("State '{}' has no size.", state.name));
  s.bytes = size_of(static_cast<DType>(state.dtype));
  s.row = s.bytes;
  if (s.bytes <= 0) return damaged(format("State '{}' has an element type that cannot be run.", state.name));
  for (size_t k = 0; k < s.capacity.size(); ++k) {
    if (s.capacity[k] < 0 || (s.capacity[k] != state.dims[k] && (k > 0 || state.dims[k] >= 0))) return damaged(format("State '{}' is of another size.", state.name));
    if (__builtin_mul_overflow(s.bytes, s.capacity[k], &s.bytes) || s.bytes > kMaxTensorBytes)
      return error(code::kTooLarge, format("State '{}' would be too large: {}.", state.name, shape_text(s.capacity)), "", "compile the model with a smaller capacity (--state=in:out:axis:capacity)");
    if (grows && k > axis) s.row *= s.capacity[k];
  }
  auto fits = [&](const std::vector<int64_t>& dims) {
    bool same = dims.size() == s.capacity.size();
    for (size_t k = 0; k < dims.size() && same; ++k) same = grows && k == axis ? dims[k] >= 0 : dims[k] == s.capacity[k];
    return same;
  };
  if (!values(port.in, s.in) || (!port.in.empty() && !fits(s.in))) return damaged(format("State '{}' holds another size.", state.name));
  const bool known = values(port.out, s.out);
  if (known && !port.out.empty() && !fits(s.out))
    return error(code::kInputMismatch, format("State '{}' would hold {}, it is made for {}.", state.name, shape_text(s.out), shape_text(s.capacity)), "the inputs' sizes do not go with it");
  if (grows) {
    s.block = s.row * s.capacity[axis];
    for (auto* dims : {&s.in, &s.out})
      if (known && !dims->empty()) s.rows = std::max(s.rows, (*dims)[axis]);
    if (!known) s.rows = s.capacity[axis];
    if (s.rows > s.capacity[axis])
      return error(code::kInputMismatch, format("State '{}' would hold {} entries along axis {}, allowed are {}.", state.name, s.rows, axis, s.capacity[axis]), "its capacity was given when the model was compiled",
                   "reset() the state, or compile the model with a larger capacity (--state=in:out:axis:capacity)");
  }
  if (!known) s.out.clear();
  states.push_back(std::move(s));
  return ok();
}

// Pieces of `block` bytes follow one another, and rows lie at the front of each: strides that are no multiple of a
// piece must stay in these.
bool Binding::within_rows(const BoundState& s, int64_t offset, std::span<const int64_t> dims, std::span<const int64_t> strides, int64_t element) const {
  if (s.block <= 0) return true;
  int64_t low = offset % s.block, high = low + element;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t step, reach;
    if (dims[i] <= 1) continue;
    if (__builtin_mul_overflow(strides[i], element, &step)) return false;
    if (step % s.block == 0) continue;
    if (__builtin_mul_overflow(step, dims[i] - 1, &reach)) return false;
    int64_t& side = reach < 0 ? low : high;
    if (__builtin_add_overflow(side, reach, &side)) return false;
  }
  return low >= 0 && high <= s.rows * s.row;
}

}  // namespace ge::runtime
