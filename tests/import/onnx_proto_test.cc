#include "import/onnx_proto.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>

#include "import/proto_writer.h"

namespace ge::onnx {
namespace {

using namespace ge::test;
using testing::ElementsAre;
using testing::HasSubstr;

Message rich_model() {
  Message sequence = Message().add(4, Message().add(1, tensor_type(7, {"3"})));
  Message optional = Message().add(9, Message().add(1, sequence));
  Message map = Message().add(5, Message().varint(1, 7));
  Message inner = graph({.nodes = {node("Neg", {"x"}, {"t"})}, .outputs = {floats("t")}});
  Message sparse = Message()
                       .add(1, raw_tensor("s", 1, {1}, raw<float>({5})))
                       .add(2, raw_tensor("", 7, {1}, raw<int64_t>({2})))
                       .varint(1 + 2, 4);
  std::vector<Message> attrs = {
      attr_int("i", -3),
      attr_float("f", 0.5f),
      attr_string("s", "\xff\x01"),
      attr_tensor("t", raw_tensor("tt", 6, {1}, raw<int32_t>({9}))),
      attr_graph("body", inner),
      Message().text(1, "fs").text(7, raw<float>({1, 2})).varint(20, 6),
      Message().text(1, "is").add(8, packed({1, -2})).varint(8, 3).varint(20, 7),
      Message().text(1, "ss").text(9, "a").text(9, "").varint(20, 8),
      Message().text(1, "tp").add(14, sequence).varint(20, 13),
      Message().text(1, "old").varint(3, 4)};
  Message n = node("Op", {"x", "", "w"}, {"y", ""}, {.name = "n1", .attrs = attrs});
  Message g = graph(
      {.nodes = {n},
       .inputs = {floats("x", {"batch", "2", "", "-1"}), value("q", optional), value("m", map)},
       .outputs = {value("y", Message().add(1, Message().varint(1, 1)))},
       .initializers = {raw_tensor("w", 1, {2}, raw<float>({1, 2}))},
       .sparse_initializers = {sparse}});
  Message m = model(g,
                    {function({.name = "f",
                               .overload = "o",
                               .inputs = {"a"},
                               .outputs = {"b"},
                               .attributes = {"k"},
                               .defaults = {attr_int("d", 1)},
                               .nodes = {node("Neg", {"a"}, {"b"})}})},
                    {opset("ai.onnx", 17), opset("test", 3)});
  return m.text(2, "maker").add(14, Message().text(1, "key").text(2, "v"));
}

TEST(ParseModel, ReadsEveryField) {
  Message bytes = rich_model();
  auto r = parse_model(bytes.bytes());
  ASSERT_TRUE(r.ok()) << r.error().text();
  auto& m = *r;
  EXPECT_EQ(m.ir_version, 8);
  EXPECT_EQ(m.producer_name, "maker");
  ASSERT_EQ(m.opset_imports.size(), 2u);
  EXPECT_EQ(m.opset_imports[0].domain, "");
  EXPECT_EQ(m.opset_imports[0].version, 17);
  EXPECT_THAT(m.metadata, ElementsAre(std::pair<std::string, std::string>("key", "v")));
  ASSERT_EQ(m.functions.size(), 1u);
  EXPECT_EQ(m.functions[0].overload, "o");
  EXPECT_THAT(m.functions[0].attributes, ElementsAre("k"));
  EXPECT_EQ(m.functions[0].attribute_protos[0].i, 1);

  auto& g = m.graph;
  EXPECT_EQ(g.name, "g");
  ASSERT_EQ(g.inputs.size(), 3u);
  auto& dims = g.inputs[0].type.dims;
  ASSERT_EQ(dims.size(), 4u);
  EXPECT_EQ(dims[0].param, "batch");
  EXPECT_EQ(dims[1].value, 2);
  EXPECT_EQ(dims[2].kind, DimensionProto::Kind::unknown);
  EXPECT_EQ(dims[3].value, -1);
  EXPECT_EQ(g.inputs[1].type.kind, TypeProto::Kind::optional);
  EXPECT_EQ(g.inputs[1].type.element.at(0).kind, TypeProto::Kind::sequence);
  EXPECT_EQ(g.inputs[1].type.element.at(0).element.at(0).elem_type, 7);
  EXPECT_EQ(g.inputs[2].type.kind, TypeProto::Kind::map);
  EXPECT_FALSE(g.outputs[0].type.has_shape);
  ASSERT_EQ(g.sparse_initializers.size(), 1u);
  EXPECT_EQ(g.sparse_initializers[0].values.name, "s");
  EXPECT_THAT(g.sparse_initializers[0].dims, ElementsAre(4));

  auto& n = g.nodes.at(0);
  EXPECT_THAT(n.inputs, ElementsAre("x", "", "w"));
  EXPECT_THAT(n.outputs, ElementsAre("y", ""));
  EXPECT_EQ(describe(n), "\"n1\" (test.Op)");
  auto& a = n.attributes;
  ASSERT_EQ(a.size(), 10u);
  EXPECT_EQ(a[0].i, -3);
  EXPECT_EQ(a[1].f, 0.5f);
  EXPECT_EQ(a[2].s, "\xff\x01");
  EXPECT_EQ(a[3].tensors.at(0).name, "tt");
  EXPECT_EQ(a[4].graphs.at(0).nodes.at(0).op_type, "Neg");
  EXPECT_THAT(a[5].floats, ElementsAre(1, 2));
  EXPECT_THAT(a[6].ints, ElementsAre(1, -2, 3));  // packed and single ones mixed
  EXPECT_THAT(a[7].strings, ElementsAre("a", ""));
  EXPECT_EQ(a[8].types.at(0).kind, TypeProto::Kind::sequence);
  EXPECT_EQ(a[9].type, AttributeType::integer);  // told by the field in use
}

TEST(ParseModel, TensorDataAreNotCopied) {
  Message bytes = model(graph({.initializers = {raw_tensor("w", 1, {2}, raw<float>({1, 2}))}}));
  auto r = parse_model(bytes.bytes());
  ASSERT_TRUE(r.ok());
  auto data = r->graph.initializers.at(0).raw_data;
  EXPECT_GE(data.data(), bytes.bytes().data());
  EXPECT_LE(data.data() + data.size(), bytes.bytes().data() + bytes.bytes().size());
}

// Every prefix of a file must give a model or an error, and a cut inside the graph always an error.
TEST(ParseModel, CutAnywhereIsAnError) {
  std::string all = model(graph({.nodes = {node("Neg", {"x"}, {"y"}, {.name = "n"})},
                                 .inputs = {floats("x")},
                                 .outputs = {floats("y")}}))
                        .str();
  int refused = 0;
  for (size_t n = 0; n < all.size(); ++n) {
    std::string cut = all.substr(0, n);
    auto r = parse_model(std::as_bytes(std::span(cut.data(), n)));
    if (r.ok()) continue;
    ++refused;
    EXPECT_EQ(r.error().code, code::kParse);
  }
  EXPECT_GT(refused, 50);
  std::string cut = all.substr(0, 40);
  EXPECT_THAT(parse_model(std::as_bytes(std::span(cut))).error().message, HasSubstr("incomplete"));
}

TEST(ParseModel, FlippedBytesNeverCrash) {
  std::string all = rich_model().str();
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string s = all;
    for (int k = 0; k < 1 + round % 4; ++k) s[random() % s.size()] = static_cast<char>(random());
    refused += !parse_model(std::as_bytes(std::span(s))).ok();
  }
  EXPECT_GT(refused, 1000);
}

TEST(ParseModel, SaysWhere) {
  // An attribute whose float has the wire type of a varint.
  Message bad = node("Conv", {"x"}, {"y"},
                     {.name = "conv1", .attrs = {Message().text(1, "alpha").varint(2, 5)}});
  auto r = parse_model(model(graph({.nodes = {node("A", {}, {"a"}), bad}})).bytes());
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, code::kParse);
  EXPECT_THAT(r.error().text(),
              HasSubstr("attribute 0 (\"alpha\"), in node 1 (\"conv1\"), in graph 0"));

  // Bytes that end inside a tensor of the third initializer.
  Message t = tensor_head("w", 1, {2});
  t.raw_varint(9 << 3 | 2).raw_varint(100);
  r = parse_model(
      model(graph({.initializers = {tensor_head("u", 1, {}), tensor_head("v", 1, {}), t}}))
          .bytes());
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().text(), HasSubstr("in initializer 2 (\"w\")"));
}

TEST(ParseModel, NestingIsBounded) {
  auto nested = [](int levels) {
    Message g = graph({});
    for (int i = 0; i < levels; ++i)
      g = graph({.nodes = {node("If", {}, {"y"}, {.attrs = {attr_graph("b", g)}})}});
    return model(g);
  };
  EXPECT_TRUE(parse_model(nested(30).bytes()).ok());
  auto r = parse_model(nested(2000).bytes());
  ASSERT_FALSE(r.ok());
  EXPECT_THAT(r.error().text(), HasSubstr("nested deeper"));
}

TEST(ParseModel, NamesMustBeUtf8) {
  auto with = [](std::string_view name) {
    return parse_model(model(graph({.inputs = {floats(name)}})).bytes());
  };
  EXPECT_TRUE(with("h\xc3\xa9llo \xe4\xb8\xad \xf0\x9f\x98\x80").ok());
  for (std::string_view s :
       {"\xff", "\xc0\x80", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "a\x80"}) {
    auto r = with(s);
    ASSERT_FALSE(r.ok());
    EXPECT_THAT(r.error().text(), HasSubstr("UTF-8"));
  }
}

TEST(ParseModel, OtherFilesAreNoModels) {
  for (std::string s : {"", "PK\3\4xxxxxxxx", "hello world, this is text", "<html></html>"}) {
    auto r = parse_model(std::as_bytes(std::span(s)));
    ASSERT_FALSE(r.ok()) << s;
    EXPECT_EQ(r.error().code, code::kParse);
  }
  EXPECT_THAT(parse_model(Message().varint(1, 8).bytes()).error().message, HasSubstr("no graph"));
}

TEST(ParseModel, MoreThanFourGigabytes) {
  auto path =
      std::filesystem::temp_directory_path() / ("ge_import_huge_" + std::to_string(getpid()));
  int fd = open(path.c_str(), O_CREAT | O_RDWR | O_TRUNC, 0600);
  ASSERT_GE(fd, 0);
  int grown = ftruncate(fd, (int64_t{1} << 32) + 4096);  // sparse: takes no space
  close(fd);
  ASSERT_EQ(grown, 0);
  auto file = MappedFile::open(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(file.ok());
  auto r = parse_model((*file)->bytes());
  ASSERT_FALSE(r.ok());
  EXPECT_EQ(r.error().code, code::kTooLarge);
  EXPECT_THAT(r.error().text(), HasSubstr("external data"));
}

}  // namespace
}  // namespace ge::onnx
