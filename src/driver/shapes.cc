#include "driver/shapes.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "driver/options.h"

namespace ge {
namespace {

Error malformed(const std::string& text, std::string why) {
  return error(code::kInputShape, format("--input_shape \"{}\" cannot be read: {}.", text, why), "the format is wrong",
               "write \"name:1,3,224,224;name2:2~10,-1\"");
}

std::optional<int64_t> number(std::string_view s) {
  int64_t v;
  auto [end, e] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (e != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return v;
}

Result<Dim> size_from(ir::Graph& g, const std::string& input, size_t axis, const std::string& word) {
  if (auto v = number(word)) {
    if (*v >= 0) return Dim(*v);
    if (*v == -1) return g.fresh_symbol(format("{}_dim{}", input, axis));
    return malformed(word, "a size is negative");
  }
  size_t tilde = word.find('~'), equals = word.find('=');
  std::string name = tilde == std::string::npos ? word : word.substr(0, equals == std::string::npos ? 0 : equals);
  if (tilde == std::string::npos || equals != std::string::npos) {
    bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
    if (!good) return malformed(word, "a size is a number, -1, a range, a name or name=range");
    g.symbols.emplace(name, ir::SymbolInfo{});
  }
  Dim d = name.empty() ? g.fresh_symbol(format("{}_dim{}", input, axis)) : Dim::symbol(name);
  if (tilde == std::string::npos) return d;
  size_t start = equals == std::string::npos ? 0 : equals + 1;
  const int64_t none = -2, low = tilde < start ? none : number(word.substr(start, tilde - start)).value_or(none);
  auto high = number(word.substr(tilde + 1));
  if (!high || low < 0 || (*high != -1 && *high < low)) return malformed(word, "a range is low~high");
  g.symbols.find(d.symbol_name())->second = {low, *high == -1 ? INT64_MAX : *high};
  return d;
}

}  // namespace

Result<std::map<std::string, std::vector<std::string>>> parse_input_shape(const std::string& text) {
  std::map<std::string, std::vector<std::string>> out;
  for (auto& part : split(text, ';')) {
    if (trim(part).empty()) continue;
    size_t colon = part.rfind(':');
    if (colon == std::string::npos || colon == 0) return malformed(text, "an input's name and ':' are missing");
    std::vector<std::string> sizes;
    if (!trim(part.substr(colon + 1)).empty())
      for (auto& s : split(part.substr(colon + 1), ',')) {
        if (trim(s).empty()) return malformed(text, "a size is missing");
        sizes.emplace_back(trim(s));
      }
    std::string name(trim(part.substr(0, colon)));
    if (!out.emplace(name, std::move(sizes)).second) return malformed(text, format("input '{}' stands twice", name));
  }
  return out;
}

Status set_input_shapes(ir::Graph& g, const std::map<std::string, std::vector<std::string>>& shapes) {
  for (auto& [name, sizes] : shapes) {
    std::vector<std::string> names;
    ir::ValueId found;
    for (auto v : g.inputs) {
      names.push_back(g.value(v).name);
      if (g.value(v).name == name) found = v;
    }
    if (!found) {
      std::string near = nearest(name, names);
      return error(code::kUnknownName, format("--input_shape names input '{}', which the model does not have.", name),
                   format("its inputs are {}", join(names, ", ")), near.empty() ? "" : format("did you mean '{}'?", near));
    }
    auto& type = g.value(found).type;
    const std::string fix = type.ranked ? format("the model has {}{}; give a size for each axis, -1 or a range where it is a name", name, text(type.dims)) : "";
    if (type.ranked && type.dims.size() != sizes.size())
      return error(code::kInputShape, format("--input_shape gives {} sizes for '{}', which has {} axes.", sizes.size(), name, type.dims.size()), "", fix);
    std::vector<Dim> dims;
    for (size_t i = 0; i < sizes.size(); ++i) {
      GE_TRY(Dim d, size_from(g, name, i, sizes[i]));
      if (type.ranked && type.dims[i].known() && d.known() && !(type.dims[i] == d))
        return error(code::kInputShape, format("--input_shape gives {} for axis {} of '{}', the model says {}.", sizes[i], i, name, type.dims[i].text()), "", fix);
      if (type.ranked && type.dims[i].known() && !d.known())
        return error(code::kInputShape, format("--input_shape leaves axis {} of '{}' open, which the model fixes at {}.", i, name, type.dims[i].text()),
                     "what stands behind the input was made for this size", format("give {} there, or export the model with this size open", type.dims[i].text()));
      // A size for a symbol holds wherever the model uses that symbol, but for inputs that are given sizes themselves.
      auto symbol = type.ranked ? std::string(type.dims[i].symbol_name()) : std::string();
      if (!symbol.empty())
        for (auto v : g.inputs)
          for (auto& other : g.value(v).type.dims)
            if (other.symbol_name() == symbol && v != found && !shapes.count(g.value(v).name)) other = d;
      dims.push_back(d);
    }
    type.ranked = true;
    type.dims = std::move(dims);
  }
  for (auto v : g.inputs)
    if (!g.value(v).type.ranked && g.value(v).type.kind == ir::TypeKind::tensor)
      return error(code::kInputShape, format("The model does not say how many axes input '{}' has.", g.value(v).name), "", "give them with --input_shape, -1 for sizes that may change");
  return ok();
}

}  // namespace ge
