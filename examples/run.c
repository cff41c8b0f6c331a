/* Runs an .om file on zeros and prints what comes out: `run model.om [SIZE]`, SIZE for sizes that may change. */
#include <ge.h>
#include <stdio.h>
#include <stdlib.h>

static int fail(void) {
  ge_error e = ge_last_error();
  fprintf(stderr, "%s: %s\n%s\n", e.code, e.message, e.fix);
  return 1;
}

static size_t element_size(ge_dtype t) {
  switch (t) {
    case GE_F64: case GE_I64: case GE_U64: case GE_C64: return 8;
    case GE_C128: return 16;
    case GE_F32: case GE_I32: case GE_U32: return 4;
    case GE_F16: case GE_BF16: case GE_I16: case GE_U16: return 2;
    default: return 1;
  }
}

int main(int argc, char** argv) {
  ge_model* model = NULL;
  ge_binding* binding = NULL;
  ge_port port;
  int64_t size = argc > 2 ? atoll(argv[2]) : 1;
  if (argc < 2 || ge_api_version() < GE_API_VERSION) return 2;
  if (ge_load(argv[1], NULL, &model) != GE_OK) return fail();

  int32_t n = ge_num_inputs(model), m = ge_num_outputs(model);
  int64_t** dims = calloc((size_t)n + 1, sizeof *dims);
  void** inputs = calloc((size_t)n + 1, sizeof *inputs);
  void** outputs = calloc((size_t)m + 1, sizeof *outputs);
  for (int32_t i = 0; i < n; ++i) {
    if (ge_input(model, i, &port) != GE_OK) return fail();
    size_t bytes = element_size(port.dtype);
    dims[i] = calloc((size_t)port.rank + 1, sizeof **dims);
    for (int32_t k = 0; k < port.rank; ++k) {
      dims[i][k] = port.dims[k] < 0 ? size : port.dims[k];
      bytes *= (size_t)dims[i][k];
    }
    inputs[i] = calloc(bytes + 1, 1);
  }
  if (ge_bind(model, (const int64_t* const*)dims, &binding) != GE_OK) return fail();
  for (int32_t i = 0; i < m; ++i) {
    size_t bytes;
    if (ge_output_shape(binding, i, NULL, NULL, &bytes) != GE_OK) return fail();
    outputs[i] = calloc(bytes + 1, 1);
  }
  if (ge_run(binding, (const void* const*)inputs, outputs) != GE_OK) return fail();
  for (int32_t i = 0; i < m; ++i) {
    int32_t rank;
    const int64_t* shape;
    if (ge_output(model, i, &port) != GE_OK || ge_output_shape(binding, i, &rank, &shape, NULL) != GE_OK) return fail();
    printf("%s [", port.name);
    for (int32_t k = 0; k < rank; ++k) printf(k ? ",%lld" : "%lld", (long long)shape[k]);
    printf("]");
    if (port.dtype == GE_F32) printf(" %g", (double)*(float*)outputs[i]);
    printf("\n");
  }
  for (int32_t i = 0; i < n; ++i) free(dims[i]), free(inputs[i]);
  for (int32_t i = 0; i < m; ++i) free(outputs[i]);
  free(dims), free(inputs), free(outputs);
  ge_binding_free(binding);
  ge_model_free(model);
  return 0;
}
