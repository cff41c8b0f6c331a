// Builds ONNX files by hand for tests: a protobuf writer of a page, and the messages as functions.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace ge::test {

class Message {
 public:
  Message& varint(int field, uint64_t v) {
    raw_varint(uint64_t(field) << 3);
    return raw_varint(v);
  }
  Message& text(int field, std::string_view s) {
    raw_varint(uint64_t(field) << 3 | 2);
    raw_varint(s.size());
    bytes_ += s;
    return *this;
  }
  Message& f32(int field, float v) {
    raw_varint(uint64_t(field) << 3 | 5);
    char c[4];
    std::memcpy(c, &v, 4);
    bytes_.append(c, 4);
    return *this;
  }
  Message& add(int field, const Message& m) { return text(field, m.bytes_); }
  Message& each(int field, const std::vector<Message>& list) {
    for (auto& m : list) add(field, m);
    return *this;
  }
  Message& texts(int field, const std::vector<std::string>& list) {
    for (auto& s : list) text(field, s);
    return *this;
  }
  Message& raw_varint(uint64_t v) {
    for (; v >= 128; v >>= 7) bytes_ += static_cast<char>(v | 128);
    bytes_ += static_cast<char>(v);
    return *this;
  }
  const std::string& str() const { return bytes_; }
  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span(bytes_.data(), bytes_.size()));
  }
  std::shared_ptr<const MappedFile> file() const { return MappedFile::from_bytes(bytes()); }

 private:
  std::string bytes_;
};

template <class T>
std::string raw(std::initializer_list<T> values) {
  std::string s(values.size() * sizeof(T), '\0');
  std::memcpy(s.data(), values.begin(), s.size());
  return s;
}

inline Message packed(const std::vector<int64_t>& values) {
  Message m;
  for (int64_t v : values) m.raw_varint(static_cast<uint64_t>(v));
  return m;
}

// dtype: ONNX's number.
inline Message tensor_head(std::string_view name, int dtype, const std::vector<int64_t>& dims) {
  Message m;
  for (int64_t d : dims) m.varint(1, static_cast<uint64_t>(d));
  m.varint(2, static_cast<uint64_t>(dtype));
  if (!name.empty()) m.text(8, name);
  return m;
}
inline Message raw_tensor(std::string_view name, int dtype, const std::vector<int64_t>& dims,
                          std::string_view data) {
  return tensor_head(name, dtype, dims).text(9, data);
}

// A dim: a number as text, a name, or "" for none at all.
inline Message tensor_type(int dtype, const std::vector<std::string>& dims) {
  Message shape;
  for (auto& d : dims) {
    Message dim;
    bool number = !d.empty() && (d[0] == '-' || (d[0] >= '0' && d[0] <= '9'));
    if (number)
      dim.varint(1, static_cast<uint64_t>(std::stoll(d)));
    else if (!d.empty())
      dim.text(2, d);
    shape.add(1, dim);
  }
  return Message().add(1, Message().varint(1, static_cast<uint64_t>(dtype)).add(2, shape));
}
inline Message value(std::string_view name, const Message& type) {
  return Message().text(1, name).add(2, type);
}
inline Message floats(std::string_view name, const std::vector<std::string>& dims = {"2"}) {
  return value(name, tensor_type(1, dims));
}

inline Message attr_int(std::string_view name, int64_t v) {
  return Message().text(1, name).varint(3, static_cast<uint64_t>(v)).varint(20, 2);
}
inline Message attr_float(std::string_view name, float v) {
  return Message().text(1, name).f32(2, v).varint(20, 1);
}
inline Message attr_string(std::string_view name, std::string_view v) {
  return Message().text(1, name).text(4, v).varint(20, 3);
}
inline Message attr_tensor(std::string_view name, const Message& t) {
  return Message().text(1, name).add(5, t).varint(20, 4);
}
inline Message attr_graph(std::string_view name, const Message& g) {
  return Message().text(1, name).add(6, g).varint(20, 5);
}
inline Message attr_ref(std::string_view name, std::string_view ref, int type) {
  return Message().text(1, name).varint(20, static_cast<uint64_t>(type)).text(21, ref);
}

struct NodeArgs {
  std::string name = {}, domain = "test", overload = {};
  std::vector<Message> attrs = {};
};
inline Message node(std::string_view op, const std::vector<std::string>& in,
                    const std::vector<std::string>& out, const NodeArgs& a = {}) {
  Message m;
  m.texts(1, in).texts(2, out);
  if (!a.name.empty()) m.text(3, a.name);
  m.text(4, op).each(5, a.attrs).text(7, a.domain);
  if (!a.overload.empty()) m.text(8, a.overload);
  return m;
}

struct GraphArgs {
  std::vector<Message> nodes = {}, inputs = {}, outputs = {}, initializers = {},
                       sparse_initializers = {};
};
inline Message graph(const GraphArgs& a) {
  return Message()
      .each(1, a.nodes)
      .text(2, "g")
      .each(5, a.initializers)
      .each(15, a.sparse_initializers)
      .each(11, a.inputs)
      .each(12, a.outputs);
}

inline Message opset(std::string_view domain, int64_t version) {
  return Message().text(1, domain).varint(2, static_cast<uint64_t>(version));
}
inline Message model(const Message& g, const std::vector<Message>& functions = {},
                     const std::vector<Message>& opsets = {opset("", 17), opset("test", 3)}) {
  return Message().varint(1, 8).add(7, g).each(8, opsets).each(25, functions);
}

struct FunctionArgs {
  std::string name = {}, domain = "local", overload = {};
  std::vector<std::string> inputs = {}, outputs = {}, attributes = {};
  std::vector<Message> defaults = {}, nodes = {}, opsets = {opset("", 17), opset("test", 3)};
};
inline Message function(const FunctionArgs& a) {
  Message m;
  m.text(1, a.name).texts(4, a.inputs).texts(5, a.outputs).texts(6, a.attributes).each(7, a.nodes);
  m.each(9, a.opsets).text(10, a.domain).each(11, a.defaults);
  if (!a.overload.empty()) m.text(13, a.overload);
  return m;
}

}  // namespace ge::test
