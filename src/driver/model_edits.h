// What options change in an imported model before the passes see it.
#pragma once

#include "driver/options.h"
#include "ir/graph.h"

namespace ge {

// --out_nodes: the graph ends at these values ("node:0", or a value's name).
Status cut_outputs(ir::Graph& g, const std::vector<std::string>& out_nodes);
// --output_type: a Cast at the outputs ("FP16" for all, or "node:0:FP16"). After inference.
Status set_output_types(ir::Graph& g, const std::vector<std::string>& output_type);
// --input_format=NHWC: inputs of rank 4 are fed channels-last.
void set_input_format(ir::Graph& g, const std::string& format);
// --topo_sorting_mode: ranks of nodes, hence the order of tasks wherever edges leave it open.
void set_order(ir::Graph& g, int mode);

}  // namespace ge
