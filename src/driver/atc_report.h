// The files and blocks that atc writes beside the model: check_result.json, fusion_result.json, the JSON of
// a model, the information block of an .om file.
#pragma once

#include <string>

#include "base/result.h"
#include "driver/compile.h"

namespace ge {

// {result, total, pass, fail, op: [{name, type, result, cause: [{code, message}]}]}. True: all pass.
Result<bool> write_check_report(const std::string& model, const std::string& path);
// {"session_and_graph_id_0_0": {"graph_fusion": {RULE: {effect_times, match_times}}, "ub_fusion": {}}}.
Status write_compile_stat(const om::Package& p, const std::string& path);
// A model's nodes, or an .om file's programs, as JSON text.
Result<std::string> onnx_json(const std::string& path, bool shapes);
std::string om_json(const om::Package& p);
// The block of mode 6.
std::string display_model_info(const om::Package& p, int64_t file_bytes);

}  // namespace ge
