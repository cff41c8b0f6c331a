// Running a model from C++ with owned tensors: for `ge run`, `ge bench` and tests. The C API and Python
// run into buffers of their own.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/model.h"
#include "tensor/tensor.h"

namespace ge {

// Inputs in the model's order. Types and shapes are checked; outputs are fresh.
Result<std::vector<Tensor>> run(runtime::Model& model, const std::vector<Tensor>& inputs, runtime::Profile* profile = nullptr);

// Seeded inputs: standard normal floats, small integers, bools. sizes: values of symbols by name; others
// get `otherwise` (at least the symbol's minimum).
Result<std::vector<Tensor>> seeded_inputs(const runtime::Model& model, const std::map<std::string, int64_t>& sizes,
                                          int64_t otherwise = 4, uint64_t seed = 1);

// The Binding for these inputs' sizes, and what the model's own State holds.
Result<std::shared_ptr<const runtime::Binding>> bind_for(runtime::Model& model, const std::vector<Tensor>& inputs);

struct BenchResult {
  double first_ms = 0, mean_ms = 0, min_ms = 0, p50_ms = 0, p90_ms = 0, p99_ms = 0, max_ms = 0;
  int runs = 0;
};
// state: what the model's states hold when a run begins, a file; empty: nothing.
Result<BenchResult> bench(runtime::Model& model, const std::vector<Tensor>& inputs, int warmup, int iterations, double seconds, const std::string& state = {});
// Gives the model's states what they held at first: the content of the file, or nothing where none is named.
Status rewind(runtime::Model& model, const std::string& state_file);

}  // namespace ge
