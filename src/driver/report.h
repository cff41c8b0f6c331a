// Reports as people read them: what was fused and what was not, memory, signature.
#pragma once

#include <string>

#include "om/program.h"
#include "runtime/model.h"

namespace ge {

// `ge explain`: fused groups, near misses, switched-off rules, regions no rule may enter.
std::string explain_text(const om::Package& p);
// Operators of the model that ended up in fused groups.
int64_t fused_operators(const om::Package& p);
// "[GE] WARN: Fusion pattern MatMul+Add not matched", how often, and of the first place which node stood in the way; a line
// break after each.
std::string fusion_warnings(const om::Package& p);
// `ge inspect`: header, signature, memory, tasks.
std::string inspect_text(const om::Package& p, bool tasks);
// "f32[batch,3,224,224]".
std::string port_text(const om::ProgramT& p, const om::PortT& port);
// The shape of a port as text parts: numbers, or symbols and expressions.
std::vector<std::string> port_dims(const om::ProgramT& p, const om::PortT& port);

}  // namespace ge
