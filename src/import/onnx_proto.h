// The messages of an ONNX file as plain structs, read from its bytes without a protobuf library.
//
// Tensor data are not copied: they are spans into the bytes, which must outlive the structs. Names
// are owned, so that functions can be inlined and values renamed. Nothing here knows what an op
// means. Not read: doc strings of nodes and values, quantization annotations, device configurations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace ge::onnx {

using Bytes = std::span<const std::byte>;
using StringPairs = std::vector<std::pair<std::string, std::string>>;

// A repeated number field: its encoded elements back to back, in one or (unpacked) many pieces.
using Chunks = std::vector<Bytes>;

struct TensorProto {
  std::string name;
  std::vector<int64_t> dims;
  int32_t data_type = 0;
  bool has_raw = false;
  bool has_segment = false;
  bool external = false;
  Bytes raw_data;
  Chunks float_data, double_data;              // fixed width
  Chunks int32_data, int64_data, uint64_data;  // varints
  std::vector<std::string_view> string_data;
  StringPairs external_data;
};

struct SparseTensorProto {
  TensorProto values;   // its name is the name of the sparse tensor
  TensorProto indices;  // [count] or [count, rank]
  std::vector<int64_t> dims;
};

struct DimensionProto {
  enum class Kind { unknown, value, param };
  Kind kind = Kind::unknown;
  int64_t value = 0;
  std::string param;
  std::string denotation;  // what the axis means, "DATA_BATCH"
};

struct TypeProto {
  enum class Kind { none, tensor, sequence, optional, map, sparse_tensor, opaque };
  Kind kind = Kind::none;
  int32_t elem_type = 0;             // of a tensor; of a map: its keys
  bool has_shape = false;            // a tensor without one has unknown rank
  std::vector<DimensionProto> dims;  // of a tensor
  std::vector<TypeProto> element;  // of a sequence, optional or map: one, or none when the file omits it
};

struct ValueInfoProto {
  std::string name;
  TypeProto type;
};

struct NodeProto;

struct GraphProto {
  std::string name, doc;
  std::vector<NodeProto> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfoProto> inputs, outputs, value_info;
  StringPairs metadata;
};

enum class AttributeType : int32_t {
  undefined = 0,
  real = 1,
  integer = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  reals = 6,
  integers = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};
std::string_view name(AttributeType t);

struct AttributeProto {
  std::string name;
  std::string ref_attr_name;  // inside a function: the function's attribute that gives the value
  AttributeType type =
      AttributeType::undefined;  // files of IR 1 omit it: then told by the field in use
  float f = 0;
  int64_t i = 0;
  std::string s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  // One element for the singular types.
  std::vector<TensorProto> tensors;
  std::vector<GraphProto> graphs;
  std::vector<SparseTensorProto> sparse_tensors;
  std::vector<TypeProto> types;
};

struct NodeProto {
  std::string name, op_type, domain, overload;  // domain: "" for ai.onnx
  std::vector<std::string> inputs, outputs;     // "" for an optional one that is absent
  std::vector<AttributeProto> attributes;
  StringPairs metadata;
  int64_t opset = 0;  // not in the file: the version of `domain` here; set by inline_functions()
};

struct OperatorSetId {
  std::string domain;
  int64_t version = 0;
};

struct FunctionProto {
  std::string name, domain, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<std::string> attributes;           // without a default
  std::vector<AttributeProto> attribute_protos;  // with one
  std::vector<NodeProto> nodes;
  std::vector<OperatorSetId> opset_imports;
};

struct ModelProto {
  int64_t ir_version = 0;
  int64_t model_version = 0;
  std::string producer_name, producer_version, domain, doc;
  std::vector<OperatorSetId> opset_imports;
  bool has_graph = false;
  bool has_training_info = false;
  GraphProto graph;
  std::vector<FunctionProto> functions;
  StringPairs metadata;
};

// "" for both names of the standard domain.
std::string_view normal_domain(std::string_view domain);
// "conv1" (Conv), or (Conv) for a node without a name: for messages.
std::string describe(const NodeProto& node);

// Reads a whole model. Damaged bytes give kParse with the place, over 4 GiB kTooLarge.
Result<ModelProto> parse_model(Bytes bytes);
// Reads one TensorProto, as in the .pb files beside test models.
Result<TensorProto> parse_tensor(Bytes bytes);

}  // namespace ge::onnx
