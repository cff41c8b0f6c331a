// The C interface through its header alone: errors, shapes, running, memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "driver/compare.h"
#include "ge.h"
#include "ir/parse.h"

namespace ge {
namespace {

std::vector<std::byte> model_bytes() {
  auto c = compile_graph(*ir::parse(R"(graph main(%x: f32[n,4]) -> (%y) {
  %w: f32[4,2] = [1, 0, 0, 1, 1, 0, 0, 1]
  %y = MatMul(%x, %w)
})"), {});
  return om::to_bytes(c->package);
}

TEST(CApi, WeightsOutsideAreFoundByPathOnly) {
  namespace fs = std::filesystem;
  fs::path folder = fs::path(testing::TempDir()) / format("ge_capi_external{}", ::getpid());
  fs::create_directories(folder);
  Options o;
  for (int mode : {1, 2}) {
    o.external_weight = mode;
    auto c = compile_graph(*ir::parse("graph main(%x: f32[4]) -> (%y) {\n  %w: f32[4] = [1, 2, 3, 4]\n  %y = Mul(%x, %w)\n}"), o);
    ASSERT_TRUE(c.ok());
    std::string path = (folder / format("m{}.om", mode)).string();
    ASSERT_TRUE(om::write(c->package, path).ok());
    ge_load_options options = {1, 1, 0};
    ge_model* m = nullptr;
    ASSERT_EQ(ge_load(path.c_str(), &options, &m), GE_OK) << ge_last_error().message;
    EXPECT_EQ(ge_model_memory(m).weights, 16);
    ge_binding* b = nullptr;
    int64_t shape[] = {4};
    const int64_t* dims[] = {shape};
    ASSERT_EQ(ge_bind(m, dims, &b), GE_OK);
    float x[] = {1, 1, 1, 2}, y[4];
    const void* in[] = {x};
    void* out[] = {y};
    ASSERT_EQ(ge_run(b, in, out), GE_OK);
    EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{1, 2, 3, 8}));
    ge_binding_free(b);
    ge_model_free(m);
    auto bytes = *MappedFile::open(path);
    EXPECT_EQ(ge_load_bytes(bytes->bytes().data(), bytes->bytes().size(), &options, &m), GE_ERROR);
    EXPECT_NE(std::string(ge_last_error().message).find("outside of it"), std::string::npos);
    EXPECT_STREQ(ge_last_error().fix, "load the model from its path");
    fs::remove(folder / "m2_weight_combined");
    fs::remove_all(folder / "weight");
    EXPECT_EQ(ge_load(path.c_str(), &options, &m), GE_ERROR);
    EXPECT_STREQ(ge_last_error().code, "E10410");
  }
  fs::remove_all(folder);
}

TEST(CApi, LoadBindRun) {
  auto bytes = model_bytes();
  ge_load_options options = {1, 1, 0};
  ge_model* m = nullptr;
  ASSERT_EQ(ge_load_bytes(bytes.data(), bytes.size(), &options, &m), GE_OK) << ge_last_error().message;
  EXPECT_EQ(ge_num_inputs(m), 1);
  EXPECT_EQ(ge_num_outputs(m), 1);
  ge_port p;
  ASSERT_EQ(ge_input(m, 0, &p), GE_OK);
  EXPECT_STREQ(p.name, "x");
  EXPECT_EQ(p.dtype, GE_F32);
  ASSERT_EQ(p.rank, 2);
  EXPECT_EQ(p.dims[0], -1);
  EXPECT_EQ(p.dims[1], 4);
  int64_t shape[] = {3, 4};
  const int64_t* dims[] = {shape};
  ge_binding* b = nullptr;
  ASSERT_EQ(ge_bind(m, dims, &b), GE_OK) << ge_last_error().message;
  ge_model_free(m);  // the binding keeps it alive
  int32_t rank;
  const int64_t* out;
  size_t size;
  ASSERT_EQ(ge_output_shape(b, 0, &rank, &out, &size), GE_OK);
  EXPECT_EQ(rank, 2);
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[1], 2);
  EXPECT_EQ(size, 24u);
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, y(6);
  const void* in[] = {x.data()};
  void* results[] = {y.data()};
  ASSERT_EQ(ge_run(b, in, results), GE_OK);
  EXPECT_EQ(y, (std::vector<float>{4, 6, 12, 14, 20, 22}));
  int64_t arena = -1, bound = -1;
  ASSERT_EQ(ge_arena(b, &arena, &bound), GE_OK);
  EXPECT_GE(arena, bound);
  ge_binding_free(b);
}

TEST(CApi, ErrorsSayWhatIsWrong) {
  ge_model* m = nullptr;
  EXPECT_EQ(ge_load("no such file.om", nullptr, &m), GE_ERROR);
  EXPECT_STREQ(ge_last_error().code, "E10410");
  EXPECT_EQ(m, nullptr);
  EXPECT_EQ(ge_load(nullptr, nullptr, &m), GE_ERROR);
  EXPECT_EQ(ge_load_bytes("nonsense", 8, nullptr, &m), GE_ERROR);
  EXPECT_STREQ(ge_last_error().code, "E13005");
  auto bytes = model_bytes();
  ASSERT_EQ(ge_load_bytes(bytes.data(), bytes.size(), nullptr, &m), GE_OK);
  int64_t shape[] = {3, 5};
  const int64_t* dims[] = {shape};
  ge_binding* b = nullptr;
  EXPECT_EQ(ge_bind(m, dims, &b), GE_ERROR);
  EXPECT_NE(std::string(ge_last_error().message).find("axis 1 is 5 instead of 4"), std::string::npos) << ge_last_error().message;
  ge_port p;
  EXPECT_EQ(ge_input(m, 1, &p), GE_ERROR);
  EXPECT_EQ(ge_output(m, -1, &p), GE_ERROR);
  shape[1] = 4;
  ASSERT_EQ(ge_bind(m, dims, &b), GE_OK);
  EXPECT_EQ(ge_run(b, nullptr, nullptr), GE_ERROR);
  ge_binding_free(b);
  ge_model_free(m);
  ge_model_free(nullptr);
  EXPECT_EQ(ge_api_version(), GE_API_VERSION);
  EXPECT_STRNE(ge_version(), "");
}

TEST(CApi, StatesLiveFromRunToRun) {
  Options o;
  o.state = "past:present:0:4";
  auto c = compile_graph(*ir::parse("graph main(%x: f32[n,2], %past: f32[p,2]) -> (%y, %present) {\n  %axes: i64[1] = [0]\n  %present = Concat(%past, %x) {axis=0}\n  %y = ReduceSum(%present, %axes) {keepdims=0}\n}"), o);
  ASSERT_TRUE(c.ok()) << c.error().text();
  auto bytes = om::to_bytes(c->package);
  ge_model* m = nullptr;
  ASSERT_EQ(ge_load_bytes(bytes.data(), bytes.size(), nullptr, &m), GE_OK) << ge_last_error().message;
  EXPECT_EQ(ge_num_inputs(m), 1);
  EXPECT_EQ(ge_num_outputs(m), 1);
  EXPECT_EQ(ge_num_states(m), 1);
  ge_state *a = nullptr, *b = nullptr;
  ASSERT_EQ(ge_state_new(m, &a), GE_OK);
  auto sum = [&](ge_state* state, std::vector<float> x, float* y) {
    int64_t shape[] = {static_cast<int64_t>(x.size() / 2), 2};
    const int64_t* dims[] = {shape};
    ge_binding* binding = nullptr;
    if (ge_bind_state(m, state, dims, &binding) != GE_OK) return GE_ERROR;
    const void* in[] = {x.data()};
    void* out[] = {y};
    ge_status s = ge_run(binding, in, out);
    ge_binding_free(binding);
    return s;
  };
  float y[2];
  ASSERT_EQ(sum(a, {1, 2, 3, 4}, y), GE_OK) << ge_last_error().message;
  EXPECT_EQ(y[0], 4);
  ASSERT_EQ(ge_state_fork(a, &b), GE_OK);
  ASSERT_EQ(sum(b, {10, 10}, y), GE_OK);
  EXPECT_EQ(y[1], 16);
  ASSERT_EQ(sum(a, {0, 1}, y), GE_OK);
  EXPECT_EQ(y[1], 7);
  EXPECT_EQ(ge_state_length(a), 3);
  EXPECT_EQ(sum(a, {0, 1, 2, 3}, y), GE_ERROR);
  EXPECT_NE(std::string(ge_last_error().message).find("allowed are 4"), std::string::npos);
  EXPECT_EQ(ge_state_length(a), 3);
  // A binding is for what the state held.
  int64_t shape[] = {1, 2};
  const int64_t* dims[] = {shape};
  ge_binding* stale = nullptr;
  ASSERT_EQ(ge_bind_state(m, a, dims, &stale), GE_OK);
  float x[] = {1, 1};
  const void* in[] = {x};
  void* out[] = {y};
  ASSERT_EQ(ge_run(stale, in, out), GE_OK);
  EXPECT_EQ(ge_run(stale, in, out), GE_ERROR);
  EXPECT_NE(std::string(ge_last_error().fix).find("bind again"), std::string::npos);
  ge_binding_free(stale);
  std::string path = testing::TempDir() + format("ge_capi_state{}", ::getpid());
  ASSERT_EQ(ge_state_save(b, path.c_str()), GE_OK);
  ASSERT_EQ(ge_state_load(a, path.c_str()), GE_OK);
  EXPECT_EQ(ge_state_length(a), 3);
  ASSERT_EQ(sum(a, {1, 1}, y), GE_OK);
  EXPECT_EQ(y[1], 17);
  std::filesystem::remove(path);
  int64_t committed = 0, reserved = 0, token = 0;
  ASSERT_EQ(ge_state_memory(a, &committed, &reserved, &token), GE_OK);
  EXPECT_EQ(token, 8);
  EXPECT_GE(committed, 4 * 8);
  EXPECT_GE(reserved, committed);
  EXPECT_GE(ge_model_memory(m).state, committed);
  ASSERT_EQ(ge_state_reset(a), GE_OK);
  EXPECT_EQ(ge_state_length(a), 0);
  // Without a state: the model's own.
  ASSERT_EQ(sum(nullptr, {5, 5}, y), GE_OK);
  ASSERT_EQ(sum(nullptr, {6, 5}, y), GE_OK);
  EXPECT_EQ(y[0], 11);
  ge_state_free(a);
  ge_state_free(b);
  ge_model_free(m);
}

}  // namespace
}  // namespace ge
