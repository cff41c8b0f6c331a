/* GE's C interface: load an .om file, bind it to shapes, run it into the caller's buffers.
 *
 * Version: GE_API_VERSION counts; functions and fields are only ever added. Objects may be used from any
 * number of threads at the same time. A function that fails returns a code other than GE_OK and leaves the
 * details with ge_last_error() of the calling thread. No function throws, prints or exits.
 */
#ifndef GE_H_
#define GE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GE_API_VERSION 1
#define GE_API __attribute__((visibility("default")))

typedef enum { GE_OK = 0, GE_ERROR = 1 } ge_status;

/* Element types, numbered as in ONNX's TensorProto.DataType; types under 8 bits take one byte each. */
typedef enum {
  GE_F32 = 1, GE_U8 = 2, GE_I8 = 3, GE_U16 = 4, GE_I16 = 5, GE_I32 = 6, GE_I64 = 7, GE_BOOL = 9, GE_F16 = 10,
  GE_F64 = 11, GE_U32 = 12, GE_U64 = 13, GE_C64 = 14, GE_C128 = 15, GE_BF16 = 16
} ge_dtype;

typedef struct ge_model ge_model;
typedef struct ge_binding ge_binding;
typedef struct ge_state ge_state;

/* The last failure of this thread; the texts live until its next call. Empty strings where there is nothing
 * to say. code is ATC's where ATC has the case, e.g. "E10410". */
typedef struct {
  const char* code;
  const char* message;
  const char* node;
  const char* cause;
  const char* fix;
} ge_error;

/* threads: cap of one run, 0 for all that the process may use. check_weights: verify their checksums too.
 * huge_pages: a private copy of the weights in huge pages instead of the shared mapping. */
typedef struct {
  int32_t threads;
  int32_t check_weights;
  int32_t huge_pages;
} ge_load_options;

/* dims[i] is -1 where the size may change; symbol(i) then names it. Texts live as long as the model. */
typedef struct {
  const char* name;
  ge_dtype dtype;
  int32_t rank;
  const int64_t* dims;
} ge_port;

/* Bytes held now; see ge_model_memory. */
typedef struct {
  int64_t weights; /* mapped, shared between processes */
  int64_t arena;   /* of all runs in flight or kept for the next */
  int64_t state;
  int64_t pool;
} ge_memory;

/* The API version of the library that is loaded; GE_API_VERSION is that of this header. */
GE_API int32_t ge_api_version(void);
/* "0.1.0" */
GE_API const char* ge_version(void);
GE_API ge_error ge_last_error(void);

/* options may be NULL. The bytes of ge_load_bytes are copied. Weights in files beside the .om are found by path only. */
GE_API ge_status ge_load(const char* path, const ge_load_options* options, ge_model** model);
GE_API ge_status ge_load_bytes(const void* data, size_t size, const ge_load_options* options, ge_model** model);
/* Bindings keep their model alive. NULL is allowed. */
GE_API void ge_model_free(ge_model* model);

GE_API int32_t ge_num_inputs(const ge_model* model);
GE_API int32_t ge_num_outputs(const ge_model* model);
/* index from 0; dims are the model's, -1 for sizes that may change. */
GE_API ge_status ge_input(const ge_model* model, int32_t index, ge_port* port);
GE_API ge_status ge_output(const ge_model* model, int32_t index, ge_port* port);
GE_API ge_memory ge_model_memory(const ge_model* model);
/* Frees what idle runs keep. */
GE_API void ge_model_trim(ge_model* model);

/* The model for these input shapes: dims[i] has as many sizes as input i has axes. A shape seen before costs
 * a look-up. */
GE_API ge_status ge_bind(ge_model* model, const int64_t* const* dims, ge_binding** binding);
GE_API void ge_binding_free(ge_binding* binding);
/* Sizes of an output under the binding. Any pointer may be NULL. */
GE_API ge_status ge_output_shape(const ge_binding* binding, int32_t index, int32_t* rank, const int64_t** dims, size_t* bytes);
/* Bytes of the arena for one run, scratch of all threads included, and the least that any plan needs. */
GE_API ge_status ge_arena(const ge_binding* binding, int64_t* bytes, int64_t* lower_bound);

/* inputs[i] and outputs[i]: dense row-major buffers of the binding's sizes, aligned to their element type.
 * Inputs are not written. On a binding that ran before, nothing is allocated. */
GE_API ge_status ge_run(const ge_binding* binding, const void* const* inputs, void* const* outputs);

/* States: what a model compiled with --state keeps from run to run (a KV cache). One state is one sequence, or one
 * batch of them; any model with the same states can run on it (prefill and decode). One call at a time may use it.
 * A model with states that is bound without one uses a state of its own, as long as the model lives. */
GE_API int32_t ge_num_states(const ge_model* model);
GE_API ge_status ge_state_new(ge_model* model, ge_state** state);
/* NULL is allowed. Bindings keep their state alive. */
GE_API void ge_state_free(ge_state* state);
/* Empty again; its memory goes back to the system. */
GE_API ge_status ge_state_reset(ge_state* state);
/* Entries (tokens) that it holds. */
GE_API int64_t ge_state_length(const ge_state* state);
/* committed: bytes of memory held; reserved: of address space; per_token: what one more entry takes. Any may be NULL. */
GE_API ge_status ge_state_memory(const ge_state* state, int64_t* committed, int64_t* reserved, int64_t* per_token);
GE_API ge_status ge_state_fork(const ge_state* state, ge_state** copy);
GE_API ge_status ge_state_save(const ge_state* state, const char* path);
GE_API ge_status ge_state_load(ge_state* state, const char* path);
/* As ge_bind, for what the state holds now: ge_run on the binding reads it and appends to it. As that changes what it
 * holds, every run of a state that grows needs a binding of its own. state may be NULL: that of the model. */
GE_API ge_status ge_bind_state(ge_model* model, ge_state* state, const int64_t* const* dims, ge_binding** binding);

#ifdef __cplusplus
}
#endif

#endif /* GE_H_ */
