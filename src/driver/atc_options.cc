#include "driver/atc_options.h"

#include <algorithm>

#include "base/text.h"

namespace ge {

const std::vector<AtcOption>& atc_options() {
  constexpr auto own = AtcKind::own, compiler = AtcKind::compiler, nothing = AtcKind::nothing, refused = AtcKind::refused;
  static const std::vector<AtcOption> table = {
      {"help", own, "this text"},
      {"mode", own, "0 compile (default), 1 model or .om to JSON, 3 check the operators only, 6 show an .om file's information"},
      {"model", own, "the ONNX model"},
      {"framework", own, "5 (ONNX)"},
      {"output", own, "path of the result; .om is appended"},
      {"soc_version", own, "any name: the result runs on this CPU and others"},
      {"om", own, "an .om file, for modes 1 and 6"},
      {"json", own, "the JSON file that mode 1 writes"},
      {"dump_mode", own, "1: with shapes (mode 1)"},
      {"log", own, "the least that is reported: debug, info, warning (default), error or null"},
      {"check_report", own, "path of check_result.json"},
      {"display_model_info", own, "1: show the result's information after compiling"},
      {"input_shape", compiler, "\"name:1,3,224,224;name2:2~10,-1\": fixed sizes, ranges, -1 for any, names (batch, batch=1~64)"},
      {"input_shape_range", compiler, "the older spelling of --input_shape: \"name:[1~8,3];name2:[-1]\""},
      {"dynamic_batch_size", compiler, "\"1,2,4\": the only batches, where --input_shape has -1 first"},
      {"dynamic_image_size", compiler, "\"416,416;832,832\": the only heights and widths, where --input_shape has two -1"},
      {"dynamic_dims", compiler, "\"1,224;8,448\": the only sizes, one for each -1 of --input_shape"},
      {"input_hint_shape", compiler, "\"0:[1,3,224,224]\": sizes, by the input's number, whose memory is planned while compiling; others are planned when they come"},
      {"state", compiler, "auto, auto:4096 or \"in:out:axis:capacity;...\": inputs and outputs (a KV cache) that the runtime keeps from run to run (not in real ATC)"},
      {"state_dtype", compiler, "f32 (default), f16, bf16 or int8: how states of f32 are stored (not in real ATC)"},
      {"input_format", compiler, "NCHW (default), NHWC: inputs of rank 4 are fed channels-last, NCDHW, ND"},
      {"external_weight", compiler, "0: weights in the .om (default), 1: each in a file weight/weight_<hash> beside it, 2: all in <output>_weight_combined"},
      {"out_nodes", compiler, "\"node:0;node2:1\" or names of values: where the model ends"},
      {"output_type", compiler, "FP32, FP16, UINT8, ... for all outputs, or \"node:0:FP16\""},
      {"fusion_switch_file", compiler, "which fusion rules are on: INI, JSON or lines NAME:off"},
      {"optimization_switch", compiler, "\"PassA:on;PassB:off\", beats the file"},
      {"disable_fusion", compiler, "rules to switch off, separated by commas; all. `ge rules` lists the names"},
      {"enable_op_scope_list", compiler, "operator types that may take part in fusions (not in real ATC)"},
      {"verify", compiler, "1: check every fusion by running the model on seeded inputs"},
      {"oo_level", compiler, "O3 (default) or O1: no fusions"},
      {"oo_constant_folding", compiler, "true (default) or false"},
      {"oo_dead_code_elimination", compiler, "true (default) or false"},
      {"topo_sorting_mode", compiler, "order of operators: 0 breadth first, 1 depth first, 2 reverse depth first, 3 as the model has them, unless another order needs less memory (default)"},
      {"disable_reuse_memory", compiler, "1: every tensor has memory of its own"},
      {"enable_mem_reuse", compiler, "0: as disable_reuse_memory=1"},
      {"mem_allocator_strategy", compiler, "0 none, 1 greedy, 2 search (default)"},
      {"mem_workspace_size", compiler, "limit of the arena in bytes; 0: none"},
      {"memory_optimization_policy", compiler, "weights that grow for speed: MemoryPriority none, BalanceMode at most 25 % of all (default), Speed without limit"},
      {"graph_name", compiler, "the model's name in the file"},
      {"enable_single_stream", compiler, "true: all tasks in one lane"},
      {"multi_stream_parallel_mode", compiler, "lanes of tasks in reports: cv (default), LoadBalance:N, MainStream:N; every thread helps with every task"},
      {"op_backend", compiler, "recorded; there is one backend"},
      {"graph_options", compiler, "a file with a block ge graph_options { key: value }"},
      {"raw_ge_options", compiler, "JSON {\"compile options\": {...}} with real GE's keys, or a file of it"},
      {"deterministic", compiler, "results are the same bits in any case"},
      {"deterministic_level", compiler, "0 to 3; results are the same bits in any case"},
      {"export_compile_stat", compiler, "0: no fusion_result.json; 1, 2: written after compiling"},
      {"split", compiler, "compile in parts, in parallel and each cached: a number, or name=node,... where parts end"},
      {"debug_dir", compiler, "folder for the graph after each pass that changed it, as text"},
      {"op_compiler_cache_mode", compiler, "enable, force or disable (default): finished models by content"},
      {"op_compiler_cache_dir", compiler, "the cache's folder"},
      {"precision_mode", compiler, "force_fp32 or must_keep_origin_dtype: as the model (default); allow_mix_precision_bf16 or allow_fp32_to_bf16: products on bf16 where that is faster; the fp16 ones keep f32"},
      {"precision_mode_v2", compiler, "origin: as the model (default); mixed_bfloat16: products on bf16 where that is faster; the fp16 ones keep f32"},
      {"op_precision_mode", compiler, "an INI file, [ByOpType] and [ByNodeName]: NAME=high_precision (f32) or high_performance (bf16)"},
      {"modify_mixlist", compiler, "a JSON file: operator types that leave or join the lists of mixed precision"},
      {"keep_dtype", compiler, "a file with a node's name or OpType::TYPE a line: these keep f32"},
      {"input_fp16_nodes", compiler, "\"a;b\": these inputs are fed as FP16"},
      {"precision_check", compiler, "1: run f32 and bf16 on seeded inputs and report how far the outputs move (not in real ATC)"},
      {"insert_op_conf", refused, "GE does no pre-processing (AIPP)", "put it into the model, or feed what the model takes"},
      {"weight", nothing, "belongs to Caffe; an ONNX model has its weights in it or beside it"},
      {"customize_dtypes", nothing, "types are the model's own; --keep_dtype and --op_precision_mode choose between f32 and bf16"},
      {"op_select_implmode", nothing, "each operator has one implementation, the precise one"},
      {"optypelist_for_implmode", nothing, "each operator has one implementation, the precise one"},
      {"is_input_adjust_hw_layout", nothing, "inputs are fed as the model has them"},
      {"is_output_adjust_hw_layout", nothing, "outputs come as the model has them"},
      {"is_weight_clip", nothing, "weights keep their values"},
      {"atomic_clean_policy", nothing, "no kernel needs memory that was cleared"},
      {"jit_compile", nothing, "everything is compiled ahead of time"},
      {"static_model_ops_lower_limit", nothing, "sizes that change do not split the model"},
      {"host_env_os", nothing, "one file runs on every CPU"},
      {"host_env_cpu", nothing, "one file runs on every CPU"},
      {"save_original_model", nothing, "keep the ONNX file"},
      {"compression_optimize_conf", nothing, "weights keep their types; quantize the model before it is compiled"},
      {"cal_conf", nothing, "weights keep their types; quantize the model before it is compiled"},
      {"enable_compress_weight", nothing, "weights keep their types; quantize the model before it is compiled"},
      {"compress_weight_conf", nothing, "weights keep their types; quantize the model before it is compiled"},
      {"mdl_bank_path", nothing, "there are no results of tuning to be stored"},
      {"op_bank_path", nothing, "there are no results of tuning to be stored"},
      {"enable_scope_fusion_passes", nothing, "belongs to TensorFlow's parser"},
      {"raw_ge_options_ignore_unsupported", nothing, "unknown keys are errors"},
  };
  static const std::vector<AtcOption> all = [] {
    std::vector<AtcOption> t = table;
    for (auto name : {"core_type", "aicore_num", "virtual_type", "device_id", "cluster_config", "hccl_parallel_config", "sparsity", "enable_small_channel",
                      "tiling_schedule_optimize", "shape_generalized_build_mode", "op_debug_level", "op_debug_config", "quant_dumpable",
                      "h2d_overlapped_with_compute", "build_config", "auto_tune_mode", "allow_hf32", "op_name_map", "target", "singleop",
                      "enable_attr_compression", "ac_parallel_enable", "buffer_optimize", "status_check"})
      t.push_back({name, AtcKind::nothing, "means nothing on a CPU and is ignored"});
    return t;
  }();
  return all;
}

const AtcOption* find_atc_option(std::string_view name) {
  auto& all = atc_options();
  // Of the communication library's options ATC has a whole family.
  if (name.starts_with("hccl_")) name = "hccl_parallel_config";
  auto it = std::find_if(all.begin(), all.end(), [&](auto& o) { return o.name == name; });
  return it == all.end() ? nullptr : &*it;
}

Error refusal(const AtcOption& option) {
  return error(code::kInvalidValue, format("Option {} cannot be followed: {}.", option.name, option.answer), "", std::string(option.fix));
}

}  // namespace ge
