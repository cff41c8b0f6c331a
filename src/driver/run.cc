#include "driver/run.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "base/random.h"
#include "base/text.h"
#include "om/expressions.h"
#include "tensor/half.h"
#include "tensor/limits.h"

namespace ge {
namespace {

void fill(Tensor& t, SplitMix64& random) {
  for (int64_t i = 0; i < t.count(); ++i) {
    switch (t.dtype()) {
      case DType::f32: t.as<float>()[i] = static_cast<float>(random.normal()); break;
      case DType::f64: t.as<double>()[i] = random.normal(); break;
      case DType::f16: t.as<uint16_t>()[i] = f32_to_f16(static_cast<float>(random.normal())); break;
      case DType::bf16: t.as<uint16_t>()[i] = f32_to_bf16(static_cast<float>(random.normal())); break;
      case DType::boolean: t.as<uint8_t>()[i] = random.next() & 1; break;
      case DType::i64: case DType::u64: t.as<int64_t>()[i] = static_cast<int64_t>(random.next() % 8); break;
      case DType::i32: case DType::u32: t.as<int32_t>()[i] = static_cast<int32_t>(random.next() % 8); break;
      case DType::i16: case DType::u16: t.as<int16_t>()[i] = static_cast<int16_t>(random.next() % 8); break;
      default: std::memset(t.mutable_data() + i * size_of(t.dtype()), static_cast<int>(random.next() % 8), static_cast<size_t>(size_of(t.dtype())));
    }
  }
}

Status make_outputs(const om::ProgramT& program, const runtime::Binding& binding, std::vector<Tensor>& outputs, std::vector<void*>& out) {
  try {
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      outputs.emplace_back(static_cast<DType>(program.outputs[i]->dtype), binding.output_dims[i]);
      out.push_back(outputs.back().mutable_data());
    }
  } catch (const std::bad_alloc&) {
    return error(code::kOutOfMemory, "There is not enough memory for the outputs.");
  }
  return ok();
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<std::vector<Tensor>> run(runtime::Model& model, const std::vector<Tensor>& inputs, runtime::Profile* profile) {
  auto& program = model.program();
  std::vector<runtime::Value> in;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (i < program.inputs.size() && static_cast<DType>(program.inputs[i]->dtype) != inputs[i].dtype())
      return error(code::kInputMismatch, format("Input '{}' is {}, the model takes {}.", program.inputs[i]->name, name(inputs[i].dtype()), name(static_cast<DType>(program.inputs[i]->dtype))),
                   "", "convert the input");
    in.push_back(runtime::Value::tensor(inputs[i].dtype(), inputs[i].dims(), inputs[i].data()));
  }
  GE_TRY(auto values, model.run(in, profile));
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < values.size(); ++i) {
    auto& v = values[i];
    if (v.dtype == DType::string) return error(code::kUnsupportedOp, format("Output '{}' is text.", program.outputs[i]->name), "commands take and give numbers", "run the model from Python");
    if (!v.is_tensor()) return error(code::kUnsupportedOp, format("Output '{}' is no tensor.", program.outputs[i]->name), "commands take and give tensors", "run the model from Python or C++");
    outputs.push_back(Tensor::borrow(v.dtype, v.dims, v.data, v.keep));
  }
  return outputs;
}

Result<std::vector<Tensor>> seeded_inputs(const runtime::Model& model, const std::map<std::string, int64_t>& sizes, int64_t otherwise, uint64_t seed) {
  auto& p = model.program();
  std::vector<Tensor> out;
  SplitMix64 random{seed};
  std::vector<int64_t> symbols, values;
  for (auto& s : p.symbols) {
    auto it = sizes.find(s->name);
    if (s->input < 0) symbols.push_back(om::kUnknown);
    else symbols.push_back(it != sizes.end() ? it->second : std::clamp(otherwise, s->min, s->max));
  }
  GE_RETURN_IF_ERROR(om::evaluate(p, symbols, values));
  for (auto& port : p.inputs) {
    if (port->kind != om::ValueKind::tensor) return error(code::kUnsupportedOp, format("Input '{}' is no tensor.", port->name), "commands take and give tensors", "run the model from Python or C++");
    std::vector<int64_t> dims;
    for (int32_t e : port->dims) dims.push_back(values[static_cast<size_t>(e)]);
    const int64_t bytes = dense_bytes(std::max<int64_t>(1, size_of(static_cast<DType>(port->dtype))), dims, int64_t(1) << 34);
    if (bytes < 0) return error(code::kTooLarge, format("Input '{}' is too large for seeded numbers.", port->name), "", "give it with --input");
    const auto type = static_cast<DType>(port->dtype);
    if (type == DType::string) return error(code::kUnsupportedOp, format("Input '{}' is text.", port->name), "commands take and give numbers", "run the model from Python");
    try {
      out.emplace_back(type, dims);
    } catch (const std::bad_alloc&) {
      return error(code::kOutOfMemory, format("{} bytes for input '{}' cannot be had.", bytes, port->name));
    }
    fill(out.back(), random);
  }
  return out;
}

Result<std::shared_ptr<const runtime::Binding>> bind_for(runtime::Model& model, const std::vector<Tensor>& inputs) {
  std::vector<std::vector<int64_t>> dims;
  for (auto& t : inputs) dims.push_back(t.dims());
  runtime::StateDims held;
  if (model.has_states()) {
    GE_TRY(held, model.state_dims(nullptr));
  }
  return model.bind(dims, held);
}

Status rewind(runtime::Model& model, const std::string& state_file) {
  if (!model.has_states()) return state_file.empty() ? ok() : Status(error(code::kInvalidValue, "The model has no states to load.", "", "compile it with --state"));
  GE_TRY(auto state, model.default_state());
  return state_file.empty() ? state->reset() : state->load(state_file);
}

Result<BenchResult> bench(runtime::Model& model, const std::vector<Tensor>& inputs, int warmup, int iterations, double seconds, const std::string& state) {
  BenchResult r;
  auto& program = model.program();
  std::vector<const void*> in;
  for (auto& t : inputs) in.push_back(t.data());
  GE_RETURN_IF_ERROR(rewind(model, state));
  auto start = std::chrono::steady_clock::now();
  GE_TRY(auto binding, bind_for(model, inputs));
  std::vector<Tensor> outputs;
  std::vector<void*> out;
  if (!binding->open_outputs) GE_RETURN_IF_ERROR(make_outputs(program, *binding, outputs, out));
  auto once = [&]() -> Status {
    if (!binding->open_outputs) return model.run(binding, in, out);
    auto made = run(model, inputs);
    return made.ok() ? ok() : Status(std::move(made).take_error());
  };
  GE_RETURN_IF_ERROR(once());
  r.first_ms = ms_since(start);
  for (int i = 0; i < warmup; ++i) {
    GE_RETURN_IF_ERROR(rewind(model, state));
    GE_RETURN_IF_ERROR(once());
  }
  std::vector<double> times;
  auto begin = std::chrono::steady_clock::now();
  while (static_cast<int>(times.size()) < iterations || ms_since(begin) < seconds * 1000) {
    GE_RETURN_IF_ERROR(rewind(model, state));
    auto t = std::chrono::steady_clock::now();
    GE_RETURN_IF_ERROR(once());
    times.push_back(ms_since(t));
  }
  std::sort(times.begin(), times.end());
  auto at = [&](double q) { return times[std::min(times.size() - 1, static_cast<size_t>(q * static_cast<double>(times.size())))]; };
  for (double t : times) r.mean_ms += t / static_cast<double>(times.size());
  r.min_ms = times.front(), r.max_ms = times.back();
  r.p50_ms = at(0.5), r.p90_ms = at(0.9), r.p99_ms = at(0.99);
  r.runs = static_cast<int>(times.size());
  return r;
}

}  // namespace ge
