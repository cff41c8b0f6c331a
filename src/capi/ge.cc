// The C interface: nothing but conversions; what it does stands in include/ge.h.
#include "ge.h"

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/text.h"
#include "om/program.h"
#include "runtime/model.h"
#include "tensor/dtype.h"

struct ge_model {
  std::shared_ptr<ge::runtime::Model> model;
  std::vector<std::vector<int64_t>> input_dims, output_dims;
};

struct ge_binding {
  std::shared_ptr<ge::runtime::Model> model;
  std::shared_ptr<const ge::runtime::Binding> binding;
  std::shared_ptr<ge::runtime::State> state;
};

struct ge_state {
  std::shared_ptr<ge::runtime::State> state;
};

namespace {

thread_local ge::Error last;

ge_status failed(ge::Error e) {
  last = std::move(e);
  return GE_ERROR;
}

ge_status invalid(const char* what) { return failed(ge::error(ge::code::kInvalidValue, what)); }

// Runs f; whatever is thrown inside becomes an error.
template <class F>
ge_status guarded(F f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return failed(ge::error(ge::code::kOutOfMemory, "There is not enough memory."));
  } catch (const std::exception& e) {
    return failed(ge::error(ge::code::kInternal, e.what()));
  }
}

ge_status done(ge::Status s) { return s.ok() ? GE_OK : failed(std::move(s).take()); }

ge_status given(ge::Result<std::shared_ptr<ge::runtime::State>> s, ge_state** state) {
  if (!s.ok()) return failed(std::move(s).take_error());
  *state = new ge_state{*std::move(s)};
  return GE_OK;
}

std::vector<int64_t> dims_of(const ge::om::ProgramT& p, const ge::om::PortT& port) {
  std::vector<int64_t> out;
  for (int32_t e : port.dims) {
    bool number = e >= 0 && static_cast<size_t>(e) < p.exprs.size() && p.exprs[static_cast<size_t>(e)].op() == ge::om::ExprOp::constant;
    out.push_back(number ? p.exprs[static_cast<size_t>(e)].imm() : -1);
  }
  return out;
}

ge_status opened(ge::Result<std::shared_ptr<ge::runtime::Model>> m, ge_model** model) {
  if (!m.ok()) return failed(std::move(m).take_error());
  auto out = std::make_unique<ge_model>();
  out->model = *std::move(m);
  auto& p = out->model->program();
  for (auto& port : p.inputs) out->input_dims.push_back(dims_of(p, *port));
  for (auto& port : p.outputs) out->output_dims.push_back(dims_of(p, *port));
  *model = out.release();
  return GE_OK;
}

ge::runtime::LoadOptions options_of(const ge_load_options* o) {
  if (!o) return {};
  return {o->threads, o->check_weights != 0, o->huge_pages != 0};
}

ge_status port_of(const ge_model* m, const std::vector<std::unique_ptr<ge::om::PortT>>& ports, const std::vector<std::vector<int64_t>>& dims, int32_t i, ge_port* port) {
  if (!m || !port || i < 0 || static_cast<size_t>(i) >= ports.size()) return invalid("There is no such input or output.");
  auto at = static_cast<size_t>(i);
  *port = {ports[at]->name.c_str(), static_cast<ge_dtype>(ports[at]->dtype), static_cast<int32_t>(dims[at].size()), dims[at].data()};
  return GE_OK;
}

}  // namespace

extern "C" {

int32_t ge_api_version(void) { return GE_API_VERSION; }
const char* ge_version(void) { return GE_VERSION; }

ge_error ge_last_error(void) { return {last.code.c_str(), last.message.c_str(), last.node.c_str(), last.cause.c_str(), last.fix.c_str()}; }

ge_status ge_load(const char* path, const ge_load_options* options, ge_model** model) {
  if (!path || !model) return invalid("ge_load needs a path and a place for the model.");
  return guarded([&] { return opened(ge::runtime::Model::open(std::string(path), options_of(options)), model); });
}

ge_status ge_load_bytes(const void* data, size_t size, const ge_load_options* options, ge_model** model) {
  if ((!data && size) || !model) return invalid("ge_load_bytes needs data and a place for the model.");
  std::span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
  return guarded([&] { return opened(ge::runtime::Model::open(bytes, options_of(options)), model); });
}

void ge_model_free(ge_model* model) { delete model; }

int32_t ge_num_inputs(const ge_model* m) { return m ? static_cast<int32_t>(m->input_dims.size()) : 0; }
int32_t ge_num_outputs(const ge_model* m) { return m ? static_cast<int32_t>(m->output_dims.size()) : 0; }
ge_status ge_input(const ge_model* m, int32_t index, ge_port* port) {
  return m ? port_of(m, m->model->program().inputs, m->input_dims, index, port) : invalid("There is no model.");
}
ge_status ge_output(const ge_model* m, int32_t index, ge_port* port) {
  return m ? port_of(m, m->model->program().outputs, m->output_dims, index, port) : invalid("There is no model.");
}

ge_memory ge_model_memory(const ge_model* m) {
  if (!m) return {};
  auto x = m->model->memory();
  return {x.weights, x.arena, x.state, x.pool};
}
void ge_model_trim(ge_model* m) {
  if (m) m->model->trim();
}

ge_status ge_bind(ge_model* m, const int64_t* const* dims, ge_binding** binding) { return ge_bind_state(m, nullptr, dims, binding); }

ge_status ge_bind_state(ge_model* m, ge_state* state, const int64_t* const* dims, ge_binding** binding) {
  if (!m || (!dims && !m->input_dims.empty()) || !binding) return invalid("ge_bind needs a model, sizes and a place for the binding.");
  return guarded([&]() -> ge_status {
    std::vector<std::vector<int64_t>> shapes;
    for (size_t i = 0; i < m->input_dims.size(); ++i) {
      if (!dims[i] && !m->input_dims[i].empty()) return invalid("ge_bind needs the sizes of every input.");
      shapes.emplace_back(dims[i], dims[i] + m->input_dims[i].size());
    }
    ge::Result<ge::runtime::StateDims> held = ge::runtime::StateDims();
    if (m->model->has_states() || state) held = m->model->state_dims(state ? state->state.get() : nullptr);
    if (!held.ok()) return failed(std::move(held).take_error());
    auto b = m->model->bind(shapes, *held);
    if (!b.ok()) return failed(std::move(b).take_error());
    *binding = new ge_binding{m->model, *b, state ? state->state : nullptr};
    return GE_OK;
  });
}

int32_t ge_num_states(const ge_model* m) { return m ? static_cast<int32_t>(m->model->program().states.size()) : 0; }

ge_status ge_state_new(ge_model* m, ge_state** state) {
  if (!m || !state) return invalid("ge_state_new needs a model and a place for the state.");
  return guarded([&] { return given(m->model->new_state(), state); });
}

void ge_state_free(ge_state* state) { delete state; }

ge_status ge_state_reset(ge_state* s) {
  return s ? guarded([&] { return done(s->state->reset()); }) : invalid("There is no state.");
}

int64_t ge_state_length(const ge_state* s) { return s ? s->state->length() : 0; }

ge_status ge_state_memory(const ge_state* s, int64_t* committed, int64_t* reserved, int64_t* per_token) {
  if (!s) return invalid("There is no state.");
  return guarded([&] {
    if (committed) *committed = s->state->committed();
    if (reserved) *reserved = s->state->reserved();
    if (per_token) *per_token = s->state->row_bytes();
    return GE_OK;
  });
}

ge_status ge_state_fork(const ge_state* s, ge_state** copy) {
  if (!s || !copy) return invalid("ge_state_fork needs a state and a place for the copy.");
  return guarded([&] { return given(s->state->fork(), copy); });
}

ge_status ge_state_save(const ge_state* s, const char* path) {
  if (!s || !path) return invalid("ge_state_save needs a state and a path.");
  return guarded([&] { return done(s->state->save(path)); });
}

ge_status ge_state_load(ge_state* s, const char* path) {
  if (!s || !path) return invalid("ge_state_load needs a state and a path.");
  return guarded([&] { return done(s->state->load(path)); });
}

void ge_binding_free(ge_binding* binding) { delete binding; }

ge_status ge_output_shape(const ge_binding* b, int32_t index, int32_t* rank, const int64_t** dims, size_t* bytes) {
  if (!b || index < 0 || static_cast<size_t>(index) >= b->binding->output_dims.size()) return invalid("There is no such output.");
  if (b->binding->open_outputs) return failed(ge::error(ge::code::kUnsupportedOp, "The sizes of the model's outputs depend on data.", "no buffer can be given before the run", "run the model from C++ or Python"));
  auto& d = b->binding->output_dims[static_cast<size_t>(index)];
  if (rank) *rank = static_cast<int32_t>(d.size());
  if (dims) *dims = d.data();
  if (bytes) {
    auto type = static_cast<ge::DType>(b->binding->program->outputs[static_cast<size_t>(index)]->dtype);
    *bytes = static_cast<size_t>(ge::size_of(type));
    for (int64_t n : d) *bytes *= static_cast<size_t>(n);
  }
  return GE_OK;
}

ge_status ge_arena(const ge_binding* b, int64_t* bytes, int64_t* lower_bound) {
  if (!b) return invalid("There is no binding.");
  if (bytes) *bytes = b->binding->arena;
  if (lower_bound) *lower_bound = b->binding->lower_bound;
  return GE_OK;
}

ge_status ge_run(const ge_binding* b, const void* const* inputs, void* const* outputs) {
  if (!b) return invalid("There is no binding.");
  auto& p = *b->binding->program;
  for (size_t i = 0; i < p.inputs.size(); ++i)
    if (!inputs || !inputs[i]) return invalid("An input's buffer is missing.");
  for (size_t i = 0; i < p.outputs.size(); ++i)
    if (!outputs || !outputs[i]) return invalid("An output's buffer is missing.");
  return guarded([&]() -> ge_status {
    ge::Status s = b->model->run(b->binding, std::span(inputs, p.inputs.size()), std::span(outputs, p.outputs.size()), nullptr, b->state.get());
    return s.ok() ? GE_OK : failed(std::move(s).take());
  });
}

}  // extern "C"
