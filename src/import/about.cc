#include "import/about.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/text.h"

namespace ge {
namespace {

using namespace onnx;
using Json = nlohmann::ordered_json;

std::string_view element_text(int32_t type) {
  static constexpr std::string_view kNames[] = {
      "undefined",  "float",          "uint8",      "int8",           "uint16",      "int16",  "int32",
      "int64",      "string",         "bool",       "float16",        "double",      "uint32", "uint64",
      "complex64",  "complex128",     "bfloat16",   "float8e4m3fn",   "float8e4m3fnuz",
      "float8e5m2", "float8e5m2fnuz", "uint4",      "int4",           "float4e2m1",  "float8e8m0",
      "uint2",      "int2"};
  auto i = static_cast<size_t>(type);
  return i < std::size(kNames) ? kNames[i] : kNames[0];
}

std::string type_text(const TypeProto& t) {
  using Kind = TypeProto::Kind;
  std::string element = t.element.empty() ? "" : type_text(t.element[0]);
  switch (t.kind) {
    case Kind::none:
      return "";
    case Kind::tensor:
      return format("tensor({})", element_text(t.elem_type));
    case Kind::sparse_tensor:
      return format("sparse_tensor({})", element_text(t.elem_type));
    case Kind::sequence:
      return format("seq({})", element);
    case Kind::optional:
      return format("optional({})", element);
    case Kind::map:
      return format("map({},{})", element_text(t.elem_type), element);
    case Kind::opaque:
      return "opaque()";
  }
  return "";
}

Json port(const ValueInfoProto& v) {
  Json shape, denotations = Json::array();
  bool denoted = false;
  if (v.type.has_shape) {
    shape = Json::array();
    for (auto& d : v.type.dims) {
      bool named = d.kind == DimensionProto::Kind::param && !d.param.empty();
      if (d.kind == DimensionProto::Kind::value && d.value >= 0) shape.push_back(d.value);
      else shape.push_back(named ? Json(d.param) : Json());
      denotations.push_back(d.denotation);
      denoted |= !d.denotation.empty();
    }
  }
  Json j = {{"name", v.name}, {"type", type_text(v.type)}, {"shape", shape}};
  if (denoted) j["denotations"] = denotations;
  return j;
}

}  // namespace

std::string about(const ModelProto& m) {
  Json j = {{"ir_version", m.ir_version}, {"producer", m.producer_name}, {"producer_version", m.producer_version},
            {"domain", m.domain}, {"version", m.model_version}, {"doc", m.doc},
            {"graph", m.graph.name}, {"graph_doc", m.graph.doc}};
  j["metadata"] = Json::object();
  for (auto& [key, value] : m.metadata) j["metadata"][key] = value;
  std::unordered_set<std::string_view> defaults;
  for (auto& t : m.graph.initializers) defaults.insert(t.name);
  for (auto& t : m.graph.sparse_initializers) defaults.insert(t.values.name);
  for (auto* list : {"inputs", "overridable", "outputs"}) j[list] = Json::array();
  for (auto& v : m.graph.inputs) j[defaults.count(v.name) ? "overridable" : "inputs"].push_back(port(v));
  for (auto& v : m.graph.outputs) j["outputs"].push_back(port(v));
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> about_onnx(const MappedFile& file) {
  GE_TRY(ModelProto model, parse_model(file.bytes()));
  return about(model);
}

}  // namespace ge
