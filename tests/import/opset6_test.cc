#include "import/opset6.h"

#include <gmock/gmock.h>

#include "base/text.h"
#include "import/functions.h"
#include "import/proto_writer.h"

namespace ge::onnx {
namespace {

using namespace ge::test;
using testing::ElementsAre;
using testing::HasSubstr;

Result<GraphProto> raised(std::vector<Message> nodes, int64_t version = 6) {
  Message m = model(graph({.nodes = std::move(nodes),
                           .inputs = {floats("x", {"2", "3", "4", "5"}), floats("u", {"3"}),
                                      floats("v", {"3", "4"}),
                                      value("any", Message().add(1, Message().varint(1, 1)))}}),
                    {}, {opset("", version)});
  GE_TRY(auto parsed, parse_model(m.bytes()));
  GE_RETURN_IF_ERROR(inline_functions(parsed));
  GE_RETURN_IF_ERROR(raise_opset6(parsed.graph));
  return std::move(parsed.graph);
}
std::vector<std::string> lines(const Result<GraphProto>& g) {
  if (!g.ok()) return {g.error().text()};
  std::vector<std::string> out;
  for (auto& n : g->nodes) {
    std::string s =
        format("{} = {}@{}({})", join(n.outputs, ","), n.op_type, n.opset, join(n.inputs, ","));
    for (auto& a : n.attributes) {
      s += " " + a.name;
      for (int64_t i : a.ints) s += format(" {}", i);
      for (float f : a.floats) s += format(" {}", f);
    }
    out.push_back(s);
  }
  return out;
}
Message old(const std::string& op, std::vector<std::string> in, std::vector<std::string> out,
            std::vector<Message> attrs = {}) {
  return node(op, in, out, {.domain = "", .attrs = attrs});
}
std::vector<Message> along(int64_t axis) {
  return {attr_int("broadcast", 1), attr_int("axis", axis)};
}

TEST(Opset6, BroadcastAlongAnAxis) {
  EXPECT_THAT(lines(raised({old("Add", {"x", "u"}, {"y"}, along(1))})),
              ElementsAre("y/align = Unsqueeze@7(u) axes 1 2", "y = Add@7(x,y/align)"));
  EXPECT_THAT(lines(raised({old("Mul", {"x", "v"}, {"y"}, along(-3))})),
              ElementsAre("y/align = Unsqueeze@7(v) axes 2", "y = Mul@7(x,y/align)"));
  EXPECT_THAT(lines(raised({old("Sub", {"x", "u"}, {"y"}, along(3))})),
              ElementsAre("y = Sub@7(x,u)"));
  EXPECT_THAT(lines(raised({old("Div", {"x", "u"}, {"y"}, {attr_int("broadcast", 1)})})),
              ElementsAre("y = Div@7(x,u)"));
  // The rank comes through the nodes before.
  EXPECT_THAT(
      lines(raised({old("Conv", {"x", "w"}, {"c"}), old("Add", {"c", "u"}, {"y"}, along(1))})),
      ElementsAre("c = Conv@7(x,w)", "y/align = Unsqueeze@7(u) axes 1 2", "y = Add@7(c,y/align)"));
  EXPECT_THAT(raised({old("Add", {"any", "u"}, {"y"}, along(1))}).error().text(),
              HasSubstr("not known"));
  EXPECT_THAT(raised({old("Add", {"v", "u"}, {"y"}, along(2))}).error().text(),
              HasSubstr("does not fit"));
}

TEST(Opset6, OtherOps) {
  EXPECT_THAT(lines(raised({old("PRelu", {"x", "u"}, {"y"})})),
              ElementsAre("y/align = Unsqueeze@7(u) axes 1 2", "y = PRelu@7(x,y/align)"));
  EXPECT_THAT(lines(raised({old("Gemm", {"x", "v", "u"}, {"y"},
                                {attr_int("broadcast", 1), attr_int("transB", 1)})})),
              ElementsAre("y = Gemm@7(x,v,u) transB"));
  EXPECT_THAT(lines(raised({old("BatchNormalization", {"x", "u", "u", "u", "u"}, {"y"},
                                {attr_int("is_test", 1)})})),
              ElementsAre("y = BatchNormalization@7(x,u,u,u,u)"));
  EXPECT_FALSE(raised({old("BatchNormalization", {"x", "u", "u", "u", "u"}, {"y", "m"})}).ok());
  EXPECT_THAT(lines(raised({old("Upsample", {"x"}, {"y"},
                                {attr_float("height_scale", 2), attr_float("width_scale", 3)})})),
              ElementsAre("y = Upsample@7(x) scales 1 1 2 3"));
  EXPECT_THAT(lines(raised({old("Relu", {"x"}, {"y"})})), ElementsAre("y = Relu@7(x)"));
}

TEST(Opset6, LaterOpsetsAreLeftAlone) {
  EXPECT_THAT(lines(raised({old("Add", {"x", "u"}, {"y"}, along(1))}, 7)),
              ElementsAre("y = Add@7(x,u) broadcast axis"));
}

}  // namespace
}  // namespace ge::onnx
