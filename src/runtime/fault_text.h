// Whom and what an error of a run names: the node that makes a buffer, the operands that a kernel refused.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernels/kernel.h"
#include "om/program.h"

namespace ge::runtime {

class Binding;

// The task that writes a buffer first; null for none.
const om::TaskT* maker_of(const om::ProgramT& program, size_t buffer);

// "f32[2,4], i64[1] to f32[2,3]; parameters -1, 1": what a kernel was called with.
std::string call_text(const kernels::Call& call);

// A kernel's refusal as the caller's: under the node's name and operator, with the operands.
// open: sizes come from inputs or data, so that they are at fault and not the model; segment: they come from data.
Error refused_call(Error why, const om::TaskT& task, std::string_view kernel, const kernels::Call& call, bool open, bool data);

// A buffer of the arena would be of `bytes`: below 0 or beyond what any may have.
Error wrong_size(const om::ProgramT& program, size_t buffer, int64_t bytes);

// There is no memory for the arena: names the largest value in it.
Error no_arena(const Binding& binding, size_t bytes);

// There is none for an output: names the node that makes it.
Error no_output(const om::ProgramT& program, size_t output, DType type, std::span<const int64_t> dims, int64_t bytes);

}  // namespace ge::runtime
