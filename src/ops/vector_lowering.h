// Nodes as vector programs: one node alone (default lowering), or a region of nodes (ge.Vector).
#pragma once

#include <optional>

#include "kernels/vector/program.h"
#include "ops/op.h"

namespace ge::ops {

// Element types that registers hold exactly: they may pass between nodes of one region.
bool vector_dtype(DType t);
kernels::vector::Lane vector_lane(DType t);

// Appends the node's computation; `in` has a register for each input. nullopt: not in this case.
std::optional<std::vector<kernels::vector::Reg>> append_vector(const Graph& g, const Node& n,
                                                               kernels::vector::ProgramBuilder& b,
                                                               std::vector<kernels::vector::Reg> in);
// 0 for elementwise nodes; the number of trailing axes that form the row for row ops; nullopt: neither.
std::optional<int> vector_row_axes(const Graph& g, const Node& n);

// The call of kernel vector.program for a finished program.
void emit_vector_program(LowerContext& c, const kernels::vector::Program& p, int row_axes, std::vector<Arg> in,
                         std::vector<Arg> out);

}  // namespace ge::ops
