// The shape of a graph as a graph: every value defined once and before it is read, no cycles.
//
// Knows names and edges, not operators. Nested graphs are checked with the names of the outer ones
// in sight; an inner name hides an outer one.
#pragma once

#include "import/onnx_proto.h"

namespace ge::onnx {

// Checks a main graph and everything in it. Nodes are put into topological order (kept as they are
// when they already have one), and a nested graph that returns an outer value gets an Identity for
// it.
Status check_structure(GraphProto& graph);

// Names that a checked graph reads from outside, in order of first use.
std::vector<std::string> captures(const GraphProto& graph);

}  // namespace ge::onnx
