// --state: which inputs and outputs of the model are states.
#pragma once

#include <string>

#include "base/result.h"
#include "ir/graph.h"

namespace ge {

// Where neither the model's sizes nor the option say how long a state may become. Only address space: memory is
// committed as the state grows.
inline constexpr int64_t kStateCapacity = 32768;

// text: parts separated by ';'. "auto" or "auto:capacity": pairs that exporters name (past_key_values.0.key and
// present.0.key). "in:out[:axis[:capacity]]": one pair; without `in` the program only fills the state, without `out`
// it only reads it. Types of the graph's values must be known; `refined` says that an input's size became a number,
// so that they should be inferred again.
Result<bool> mark_states(ir::Graph& g, const std::string& text);

// --state_dtype: states of f32 are stored in this type; what they hold is rounded when it is appended. i8: those of 16
// bits, too; each row of the last axis has a scale, which a second state holds, "name.scale". Other states, and those
// without such rows, stay as they are, and ir::State::unfit says why.
void store_states(ir::Graph& g, DType type);

// The name that a pair has in every model: "past_key_values.3.decoder.key" and "present.3.decoder.key" are
// "3.decoder.key". Empty: not the name of a state.
struct StateName {
  std::string name;
  bool past = false, present = false;
};
StateName state_name(const std::string& value);

}  // namespace ge
