#include "import/types.h"

#include <cctype>
#include <charconv>

#include "base/text.h"
#include "import/tensors.h"

namespace ge::onnx {
namespace {

// A word that the text form of sizes can read.
std::string word(std::string_view s) {
  std::string out;
  for (char c : s)
    out += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ? c : '_';
  bool bad_start = out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) || out[0] == '.';
  return bad_start ? format("_{}", out) : out;
}

// Exporters write "?", "-1", "*" or "None" for "not known": those are no names, two need not be
// equal.
bool is_name(std::string_view param) {
  return !param.empty() && param != "None" &&
         (std::isalpha(static_cast<unsigned char>(param[0])) || param[0] == '_' ||
          param[0] == '(' || std::isdigit(static_cast<unsigned char>(param[0])));
}

std::optional<int64_t> as_number(std::string_view s) {
  int64_t v = 0;
  auto [end, e] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (e != std::errc() || end != s.data() + s.size() || v < 0) return std::nullopt;
  return v;
}

}  // namespace

// A formula as a name ("2*s0") becomes a symbol of its own: inputs are what symbols are bound from.
Dim TypeReader::symbol(const std::string& param) {
  auto [it, first] = symbols_.emplace(param, "");
  if (first) it->second = graph_.fresh_symbol(word(param)).symbol_name();
  return Dim::symbol(it->second);
}

void TypeReader::declare(const TypeProto& type) {
  for (auto& d : type.dims)
    if (d.kind == DimensionProto::Kind::param && is_name(d.param) && !as_number(d.param))
      symbol(d.param);
  for (auto& e : type.element) declare(e);
}

Dim TypeReader::dimension(const DimensionProto& d, std::string_view name, size_t axis) {
  if (d.kind == DimensionProto::Kind::value && d.value >= 0) return d.value;
  if (d.kind == DimensionProto::Kind::param && is_name(d.param)) {
    auto n = as_number(d.param);
    return n ? Dim(*n) : symbol(d.param);
  }
  return graph_.fresh_symbol(format("{}_dim{}", word(name), axis));
}

Result<ir::Type> TypeReader::read(const TypeProto& type, std::string_view name, bool shapes) {
  using Kind = TypeProto::Kind;
  auto refuse = [&](std::string_view what) {
    return error(code::kUnsupportedOp,
                 format("Value {} is of a {} type, which is not supported.", quote(name), what));
  };
  switch (type.kind) {
    case Kind::none:
      return error(code::kBadGraph, format("Value {} has no type.", quote(name)),
                   "the model gives neither its element type nor its shape",
                   "export the model again");
    case Kind::map: {
      if (type.element.empty() || type.element[0].kind != Kind::tensor) return refuse("map to other than tensors");
      ir::Type t;
      GE_TRY(DType key, element_type(type.elem_type, format("The keys of {}", quote(name))));
      if (key != DType::i64 && key != DType::string) return refuse(format("map from {}", ge::name(key)));
      t.kind = key == DType::i64 ? ir::TypeKind::map_from_i64 : ir::TypeKind::map_from_text;
      GE_TRY(t.dtype, element_type(type.element[0].elem_type, format("Value {}", quote(name))));
      return t;
    }
    case Kind::sparse_tensor:
      return refuse("sparse tensor");
    case Kind::opaque:
      return refuse("opaque");
    case Kind::sequence:
    case Kind::optional: {
      bool sequence = type.kind == Kind::sequence;
      if (type.element.empty())
        return error(code::kBadGraph,
                     format("The type of value {} has no element type.", quote(name)));
      bool inner = type.element[0].kind == Kind::sequence;
      if (type.element[0].kind == Kind::map) {
        if (!sequence) return refuse("optional map");
        GE_TRY(ir::Type t, read(type.element[0], name, shapes));
        t.kind = t.kind == ir::TypeKind::map_from_i64 ? ir::TypeKind::maps_from_i64 : ir::TypeKind::maps_from_text;
        return t;
      }
      if ((sequence && inner) || type.element[0].kind == Kind::optional)
        return refuse(sequence ? "nested sequence" : "nested optional");
      GE_TRY(ir::Type t, read(type.element[0], name, shapes));
      // The tensors in it may differ in shape: sizes that the file names are no symbols.
      for (auto& d : t.dims)
        if (!d.known()) d = Dim::symbol("any");
      t.kind = sequence ? ir::TypeKind::sequence : inner ? ir::TypeKind::optional_sequence : ir::TypeKind::optional;
      return t;
    }
    case Kind::tensor:
      break;
  }
  ir::Type t;
  GE_TRY(t.dtype, element_type(type.elem_type, format("Value {}", quote(name))));
  if (!type.has_shape || !shapes) return t;
  if (type.dims.size() > static_cast<size_t>(kMaxRank))
    return error(code::kTooLarge, format("Value {} has {} dimensions; at most {} are possible.",
                                         quote(name), type.dims.size(), kMaxRank));
  t.ranked = true;
  for (size_t i = 0; i < type.dims.size(); ++i) t.dims.push_back(dimension(type.dims[i], name, i));
  return t;
}

}  // namespace ge::onnx
