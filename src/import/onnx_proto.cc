#include "import/onnx_proto.h"

#include <cstring>
#include <limits>
#include <protozero/pbf_reader.hpp>

#include "base/text.h"
#include "base/utf8.h"

namespace ge::onnx {
namespace {

using Reader = protozero::pbf_reader;
using Wire = protozero::pbf_wire_type;

// Nested messages; a graph inside a graph takes three. Protobuf's own limit, so no valid file is
// refused.
constexpr size_t kMaxDepth = 100;

// Reads field by field. protozero throws on malformed bytes; what else is wrong sets failed_. In
// both cases frames_ is left as it was at that point: it says where.
class Parser {
 public:
  explicit Parser(Bytes bytes)
      : base_(reinterpret_cast<const char*>(bytes.data())), size_(bytes.size()) {}

  template <class T>
  Status run(T& out, void (Parser::*field)(Reader&, T&)) {
    if (size_ > std::numeric_limits<uint32_t>::max())
      return error(code::kTooLarge,
                   format("The model file has {}; one file may have at most 4 GiB.",
                          bytes_text(static_cast<double>(size_))),
                   "lengths inside an ONNX file are read as 32-bit numbers",
                   "save the weights as external data beside the model");
    try {
      fields(Reader(base_, size_), out, field);
    } catch (const protozero::end_of_buffer_exception&) {
      fail("it ends before the data that it announces: it is incomplete");
    } catch (const protozero::exception& e) {
      fail(format("it is not valid protobuf ({})", e.what()));
    }
    if (!failed()) return ok();
    return error(code::kParse, format("The model file cannot be read: {}.", what_), where_,
                 "check that it is an ONNX file and was copied completely");
  }

  void model(Reader& m, ModelProto& o) {
    switch (m.tag()) {
      case 1:
        o.ir_version = integer(m);
        break;
      case 2:
        o.producer_name = loose_text(m);
        break;
      case 3:
        o.producer_version = loose_text(m);
        break;
      case 4:
        o.domain = loose_text(m);
        break;
      case 5:
        o.model_version = integer(m);
        break;
      case 6:
        o.doc = loose_text(m);
        break;
      case 7:
        o.has_graph = true;
        child(m, {"graph", 0, &o.graph.name}, o.graph, &Parser::graph);
        break;
      case 8:
        item(m, "opset import", o.opset_imports, &Parser::opset_id);
        break;
      case 14:
        item(m, "metadata entry", o.metadata, &Parser::string_pair);
        break;
      case 20:
        o.has_training_info = true;
        m.skip();
        break;
      case 25:
        named_item(m, "function", o.functions, &Parser::function);
        break;
      default:
        m.skip();
    }
  }

  void tensor(Reader& m, TensorProto& o) {
    switch (m.tag()) {
      case 1:
        integers(m, o.dims);
        break;
      case 2:
        o.data_type = static_cast<int32_t>(integer(m));
        break;
      case 3:
        o.has_segment = true;
        m.skip();
        break;
      case 4:
        chunk(m, Wire::fixed32, o.float_data);
        break;
      case 5:
        chunk(m, Wire::varint, o.int32_data);
        break;
      case 6:
        o.string_data.push_back(view(m));
        break;
      case 7:
        chunk(m, Wire::varint, o.int64_data);
        break;
      case 8:
        o.name = text(m);
        break;
      case 9: {
        auto v = view(m);
        o.has_raw = true;
        o.raw_data = std::as_bytes(std::span(v.data(), v.size()));
        break;
      }
      case 10:
        chunk(m, Wire::fixed64, o.double_data);
        break;
      case 11:
        chunk(m, Wire::varint, o.uint64_data);
        break;
      case 13:
        item(m, "external data entry", o.external_data, &Parser::string_pair);
        break;
      case 14:
        o.external = integer(m) == 1;
        break;
      default:
        m.skip();
    }
  }

 private:
  struct Frame {
    const char* what;
    size_t index;
    const std::string*
        name;  // of an element already in its place in the output; may still be empty
  };

  bool failed() const { return !what_.empty(); }
  void fail(std::string what) {
    if (failed()) return;
    what_ = std::move(what);
    where_ = format("byte {} of {}", position_, size_);
    for (size_t i = frames_.size(); i-- > 0;) {
      const Frame& f = frames_[i];
      where_ += format(", in {} {}", f.what, f.index);
      if (f.name && !f.name->empty()) where_ += format(" ({})", quote(*f.name));
    }
  }

  template <class T>
  void fields(Reader m, T& out, void (Parser::*field)(Reader&, T&)) {
    for (;;) {
      position_ = static_cast<size_t>(m.data().data() - base_);
      if (failed() || !m.next()) return;
      (this->*field)(m, out);
    }
  }
  // No guard object: after a throw the frames must still be there.
  template <class T>
  void child(Reader& m, Frame frame, T& out, void (Parser::*field)(Reader&, T&)) {
    frames_.push_back(frame);
    std::string_view v = view(m);
    if (frames_.size() > kMaxDepth) fail(format("messages are nested deeper than {}", kMaxDepth));
    if (!failed()) fields(Reader(v.data(), v.size()), out, field);
    frames_.pop_back();
  }
  template <class T>
  void item(Reader& m, const char* what, std::vector<T>& list, void (Parser::*field)(Reader&, T&)) {
    list.emplace_back();
    child(m, {what, list.size() - 1, nullptr}, list.back(), field);
  }
  template <class T>
  void named_item(Reader& m, const char* what, std::vector<T>& list,
                  void (Parser::*field)(Reader&, T&)) {
    list.emplace_back();
    child(m, {what, list.size() - 1, &list.back().name}, list.back(), field);
  }
  // A singular message kept in a list of at most one; a second occurrence is merged, as protobuf
  // does.
  template <class T>
  void only(Reader& m, const char* what, std::vector<T>& list, void (Parser::*field)(Reader&, T&)) {
    if (list.empty()) list.emplace_back();
    child(m, {what, 0, nullptr}, list.back(), field);
  }

  // False, and failed, unless the field at hand has the wire type; protozero only asserts it.
  bool expect(Reader& m, Wire wire) {
    if (m.has_wire_type(wire)) return true;
    fail(format("field {} has the wrong kind", m.tag()));
    return false;
  }
  std::string_view view(Reader& m) {
    if (!expect(m, Wire::length_delimited)) return {};
    auto v = m.get_view();
    return {v.data(), v.size()};
  }
  std::string text(Reader& m) {
    auto field = m.tag();
    std::string_view v = view(m);
    if (!is_utf8(v)) fail(format("the text of field {} is not UTF-8", field));
    return std::string(v);
  }
  // Text that only people read: repaired, not refused.
  std::string loose_text(Reader& m) {
    std::string s(view(m));
    if (!is_utf8(s))
      for (char& c : s)
        if (static_cast<uint8_t>(c) >= 0x80) c = '?';
    return s;
  }
  int64_t integer(Reader& m) { return expect(m, Wire::varint) ? m.get_int64() : 0; }
  float real(Reader& m) { return expect(m, Wire::fixed32) ? m.get_float() : 0; }
  // Repeated numbers come packed or one by one; readers must take both.
  void integers(Reader& m, std::vector<int64_t>& out) {
    if (m.has_wire_type(Wire::length_delimited))
      for (int64_t v : m.get_packed_int64()) out.push_back(v);
    else
      out.push_back(integer(m));
  }
  void reals(Reader& m, std::vector<float>& out) {
    if (m.has_wire_type(Wire::length_delimited))
      for (float v : m.get_packed_float()) out.push_back(v);
    else
      out.push_back(real(m));
  }
  void chunk(Reader& m, Wire wire, Chunks& out) {
    if (m.has_wire_type(Wire::length_delimited)) {
      auto v = m.get_view();
      out.push_back(std::as_bytes(std::span(v.data(), v.size())));
      return;
    }
    if (!expect(m, wire)) return;
    const char* begin = m.data().data();
    m.skip();
    out.push_back(std::as_bytes(std::span(begin, static_cast<size_t>(m.data().data() - begin))));
  }

  void string_pair(Reader& m, std::pair<std::string, std::string>& o) {
    switch (m.tag()) {
      case 1:
        o.first = loose_text(m);
        break;
      case 2:
        o.second = loose_text(m);
        break;
      default:
        m.skip();
    }
  }
  void opset_id(Reader& m, OperatorSetId& o) {
    switch (m.tag()) {
      case 1:
        o.domain = normal_domain(text(m));
        break;
      case 2:
        o.version = integer(m);
        break;
      default:
        m.skip();
    }
  }
  void sparse_tensor(Reader& m, SparseTensorProto& o) {
    switch (m.tag()) {
      case 1:
        child(m, {"values", 0, &o.values.name}, o.values, &Parser::tensor);
        break;
      case 2:
        child(m, {"indices", 0, nullptr}, o.indices, &Parser::tensor);
        break;
      case 3:
        integers(m, o.dims);
        break;
      default:
        m.skip();
    }
  }

  void dimension(Reader& m, DimensionProto& o) {
    switch (m.tag()) {
      case 1:
        o.kind = DimensionProto::Kind::value;
        o.value = integer(m);
        break;
      case 2:
        o.kind = DimensionProto::Kind::param;
        o.param = text(m);
        break;
      case 3:
        o.denotation = loose_text(m);
        break;
      default:
        m.skip();
    }
  }
  void shape(Reader& m, TypeProto& o) {
    if (m.tag() == 1)
      item(m, "dimension", o.dims, &Parser::dimension);
    else
      m.skip();
  }
  void tensor_type(Reader& m, TypeProto& o) {
    switch (m.tag()) {
      case 1:
        o.elem_type = static_cast<int32_t>(integer(m));
        break;
      case 2:
        o.has_shape = true;
        child(m, {"shape", 0, nullptr}, o, &Parser::shape);
        break;
      default:
        m.skip();
    }
  }
  void element_type(Reader& m, TypeProto& o) {
    if (m.tag() == 1)
      only(m, "element type", o.element, &Parser::type);
    else
      m.skip();
  }
  void map_type(Reader& m, TypeProto& o) {
    switch (m.tag()) {
      case 1:
        o.elem_type = static_cast<int32_t>(integer(m));
        break;
      case 2:
        only(m, "value type", o.element, &Parser::type);
        break;
      default:
        m.skip();
    }
  }
  void type(Reader& m, TypeProto& o) {
    using Kind = TypeProto::Kind;
    switch (m.tag()) {
      case 1:
        o.kind = Kind::tensor;
        child(m, {"tensor type", 0, nullptr}, o, &Parser::tensor_type);
        break;
      case 4:
        o.kind = Kind::sequence;
        child(m, {"sequence type", 0, nullptr}, o, &Parser::element_type);
        break;
      case 9:
        o.kind = Kind::optional;
        child(m, {"optional type", 0, nullptr}, o, &Parser::element_type);
        break;
      case 5:
        o.kind = Kind::map;
        child(m, {"map type", 0, nullptr}, o, &Parser::map_type);
        break;
      case 7:
        o.kind = Kind::opaque, m.skip();
        break;
      case 8:
        o.kind = Kind::sparse_tensor;
        child(m, {"sparse tensor type", 0, nullptr}, o, &Parser::tensor_type);
        break;
      default:
        m.skip();
    }
  }
  void value_info(Reader& m, ValueInfoProto& o) {
    switch (m.tag()) {
      case 1:
        o.name = text(m);
        break;
      case 2:
        child(m, {"type", 0, nullptr}, o.type, &Parser::type);
        break;
      default:
        m.skip();
    }
  }

  void attribute(Reader& m, AttributeProto& o) {
    using Type = AttributeType;
    auto used = [&](Type t) {
      if (o.type == Type::undefined) o.type = t;
    };
    switch (m.tag()) {
      case 1:
        o.name = text(m);
        break;
      case 2:
        used(Type::real), o.f = real(m);
        break;
      case 3:
        used(Type::integer), o.i = integer(m);
        break;
      case 4:
        used(Type::string), o.s = view(m);
        break;
      case 5:
        used(Type::tensor), only(m, "tensor", o.tensors, &Parser::tensor);
        break;
      case 6:
        used(Type::graph), only(m, "graph", o.graphs, &Parser::graph);
        break;
      case 7:
        used(Type::reals), reals(m, o.floats);
        break;
      case 8:
        used(Type::integers), integers(m, o.ints);
        break;
      case 9:
        used(Type::strings), o.strings.emplace_back(view(m));
        break;
      case 10:
        used(Type::tensors), named_item(m, "tensor", o.tensors, &Parser::tensor);
        break;
      case 11:
        used(Type::graphs), named_item(m, "graph", o.graphs, &Parser::graph);
        break;
      case 14:
        used(Type::type_proto), only(m, "type", o.types, &Parser::type);
        break;
      case 15:
        used(Type::type_protos), item(m, "type", o.types, &Parser::type);
        break;
      case 20:
        if (int64_t t = integer(m)) o.type = static_cast<Type>(static_cast<int32_t>(t));
        break;
      case 21:
        o.ref_attr_name = text(m);
        break;
      case 22:
        used(Type::sparse_tensor),
            only(m, "sparse tensor", o.sparse_tensors, &Parser::sparse_tensor);
        break;
      case 23:
        used(Type::sparse_tensors),
            item(m, "sparse tensor", o.sparse_tensors, &Parser::sparse_tensor);
        break;
      default:
        m.skip();
    }
  }
  void node(Reader& m, NodeProto& o) {
    switch (m.tag()) {
      case 1:
        o.inputs.push_back(text(m));
        break;
      case 2:
        o.outputs.push_back(text(m));
        break;
      case 3:
        o.name = text(m);
        break;
      case 4:
        o.op_type = text(m);
        break;
      case 5:
        named_item(m, "attribute", o.attributes, &Parser::attribute);
        break;
      case 7:
        o.domain = normal_domain(text(m));
        break;
      case 8:
        o.overload = text(m);
        break;
      case 9:
        item(m, "metadata entry", o.metadata, &Parser::string_pair);
        break;
      default:
        m.skip();
    }
  }
  void graph(Reader& m, GraphProto& o) {
    switch (m.tag()) {
      case 1:
        named_item(m, "node", o.nodes, &Parser::node);
        break;
      case 2:
        o.name = text(m);
        break;
      case 5:
        named_item(m, "initializer", o.initializers, &Parser::tensor);
        break;
      case 10:
        o.doc = loose_text(m);
        break;
      case 11:
        named_item(m, "input", o.inputs, &Parser::value_info);
        break;
      case 12:
        named_item(m, "output", o.outputs, &Parser::value_info);
        break;
      case 13:
        named_item(m, "value info", o.value_info, &Parser::value_info);
        break;
      case 15:
        item(m, "sparse initializer", o.sparse_initializers, &Parser::sparse_tensor);
        break;
      case 16:
        item(m, "metadata entry", o.metadata, &Parser::string_pair);
        break;
      default:
        m.skip();
    }
  }
  void function(Reader& m, FunctionProto& o) {
    switch (m.tag()) {
      case 1:
        o.name = text(m);
        break;
      case 4:
        o.inputs.push_back(text(m));
        break;
      case 5:
        o.outputs.push_back(text(m));
        break;
      case 6:
        o.attributes.push_back(text(m));
        break;
      case 7:
        named_item(m, "node", o.nodes, &Parser::node);
        break;
      case 9:
        item(m, "opset import", o.opset_imports, &Parser::opset_id);
        break;
      case 10:
        o.domain = normal_domain(text(m));
        break;
      case 11:
        named_item(m, "attribute", o.attribute_protos, &Parser::attribute);
        break;
      case 13:
        o.overload = text(m);
        break;
      default:
        m.skip();
    }
  }

  const char* base_;
  size_t size_;
  size_t position_ = 0;  // of the field being read
  std::vector<Frame> frames_;
  std::string what_, where_;
};

Status not_onnx(std::string message) {
  return error(code::kParse, std::move(message), "",
               "give an ONNX model (a file that ends in .onnx)");
}

}  // namespace

std::string_view name(AttributeType t) {
  static constexpr std::string_view kNames[] = {
      "UNDEFINED",      "FLOAT",      "INT",        "STRING",  "TENSOR", "GRAPH",
      "FLOATS",         "INTS",       "STRINGS",    "TENSORS", "GRAPHS", "SPARSE_TENSOR",
      "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};
  auto i = static_cast<size_t>(t);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

std::string_view normal_domain(std::string_view domain) {
  return domain == "ai.onnx" ? "" : domain;
}

std::string describe(const NodeProto& node) {
  std::string op = node.domain.empty() ? node.op_type : format("{}.{}", node.domain, node.op_type);
  return node.name.empty() ? format("({})", op) : format("{} ({})", quote(node.name), op);
}

Result<ModelProto> parse_model(Bytes bytes) {
  if (bytes.empty()) return not_onnx("The model file is empty.");
  if (bytes.size() >= 4 && std::memcmp(bytes.data(), "PK\3\4", 4) == 0)
    return not_onnx("The model file is a zip archive, not an ONNX model.");
  ModelProto model;
  GE_RETURN_IF_ERROR(Parser(bytes).run(model, &Parser::model));
  if (!model.has_graph)
    return not_onnx("The model file holds no graph: it is not an ONNX model, or it is incomplete.");
  return model;
}

Result<TensorProto> parse_tensor(Bytes bytes) {
  TensorProto tensor;
  GE_RETURN_IF_ERROR(Parser(bytes).run(tensor, &Parser::tensor));
  return tensor;
}

}  // namespace ge::onnx
