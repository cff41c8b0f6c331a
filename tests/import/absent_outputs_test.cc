// Nodes of which only later outputs are wanted: they compile, run, and give what they give beside the first.
#include <gmock/gmock.h>

#include "driver/compare.h"
#include "import/onnx.h"
#include "import/proto_writer.h"

namespace ge {
namespace {

using namespace ge::test;

struct Case {
  std::string op;
  std::vector<std::string> outputs;
  std::vector<Message> inputs;
  std::vector<Message> attrs = {};
};

std::vector<std::string> names(size_t n) {
  std::vector<std::string> out;
  for (size_t i = 0; i < n; ++i) out.push_back("x" + std::to_string(i));
  return out;
}

std::vector<Case> cases() {
  const std::vector<std::string> heads = {"1", "2", "3", "4"}, flat = {"1", "3", "4"}, image = {"1", "2", "4", "4"}, channels = {"2"};
  auto inputs = [](std::initializer_list<std::vector<std::string>> dims) {
    std::vector<Message> out;
    for (auto& d : dims) out.push_back(floats("x" + std::to_string(out.size()), d));
    return out;
  };
  return {{"Attention", {"", "y"}, inputs({heads, heads, heads, {}, heads, heads})},
          {"Attention", {"", "", "", "y"}, inputs({heads, heads, heads})},
          {"LinearAttention", {"", "y"}, inputs({flat, flat, flat}), {attr_int("q_num_heads", 2), attr_int("kv_num_heads", 2), attr_string("update_rule", "linear")}},
          {"CausalConvWithState", {"", "y"}, inputs({flat, {"3", "1", "2"}})},
          {"MaxPool", {"", "y"}, inputs({image}), {Message().text(1, "kernel_shape").varint(8, 2).varint(8, 2).varint(20, 7)}},
          {"BatchNormalization", {"", "y"}, inputs({image, channels, channels, channels, channels}), {attr_int("training_mode", 1)}},
          {"LayerNormalization", {"", "y"}, inputs({flat, {"4"}})}};
}

TEST(AbsentOutputs, TheFirstMayBeLeftOut) {
  for (auto& c : cases()) {
    auto inputs = names(c.inputs.size());
    std::vector<Message> given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (c.op == "Attention" && i == 3) inputs[i] = "";   // no mask
      else given.push_back(c.inputs[i]);
    }
    auto compiled_with = [&](const std::vector<std::string>& outputs) {
      auto m = model(graph({.nodes = {node(c.op, inputs, outputs, {.domain = "", .attrs = c.attrs})}, .inputs = given, .outputs = {Message().text(1, "y")}}), {}, {opset("", 28)});
      return compile_bytes(m.bytes(), {});
    };
    auto without = compiled_with(c.outputs);
    auto with = c.outputs;
    with[0] = "first";
    auto whole = compiled_with(with);
    ASSERT_TRUE(without.ok()) << c.op << ": " << without.error().text();
    ASSERT_TRUE(whole.ok()) << c.op << ": " << whole.error().text();
    EXPECT_TRUE(agree(*without, *whole, {}, 1e-6)) << c.op;
  }
}

}  // namespace
}  // namespace ge
