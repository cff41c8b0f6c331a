// --precision_mode and what refines it, with ATC's values, and what they come to on a CPU: bf16 operands of
// products, convolutions and attention, or f32. Sums and everything else are computed in the model's types.
#pragma once

#include <string>

#include "base/result.h"
#include "driver/options.h"
#include "ir/graph.h"
#include "passes/pass.h"

namespace ge {

// --precision_mode (v2 false) or --precision_mode_v2: a value of ATC's. They exclude one another.
Status set_precision_mode(Options& o, const std::string& name, const std::string& value, bool v2);
// The text of --op_precision_mode's file: [ByOpType] and [ByNodeName] with NAME=high_precision and others.
Status read_op_precision(Options& o, const std::string& text);
// The text of --modify_mixlist's file: {"black-list": {"to-add": [...], "to-remove": [...]}, "white-list", "gray-list"}.
Status read_mixlist(Options& o, const std::string& text);
// The text of --keep_dtype's file: lines of NAME or OpType::TYPE.
Status read_keep_dtype(Options& o, const std::string& text);

// --input_fp16_nodes: these inputs of the model are fed as f16.
Status set_fp16_inputs(ir::Graph& g, const std::vector<std::string>& names);
// What the passes need to know of it, for this model as it was imported. Warns of names that it does not have.
passes::Precision precision_of(const ir::Graph& g, const Options& o);

}  // namespace ge
