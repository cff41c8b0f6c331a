// A Pad (%p of a match, of %x) that the operator after it (%y) could do itself.
#pragma once

#include "passes/fusion.h"

namespace ge::passes {

// Only spatial axes are padded, by known numbers of elements that are not negative, with the constant `value`.
Verdict pads_spatial_axes(const Match& m, double value);
// Attribute pads of `n` with those of the Pad added: begins, then ends.
std::vector<int64_t> joint_pads(const Match& m, const ir::Node& n);

}  // namespace ge::passes
