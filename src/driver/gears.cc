#include "driver/gears.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace ge {
namespace {

constexpr size_t kMostGears = 256;

Error invalid(const std::string& option, const std::string& value, std::string why, std::string fix) {
  return error(code::kInvalidValue, format("Value {} for parameter --{} is invalid. Reason: {}.", value, option, why), "", std::move(fix));
}

std::optional<int64_t> number(std::string_view s) {
  s = trim(s);
  int64_t v;
  auto [end, e] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (e != std::errc() || end != s.data() + s.size() || v < 0) return std::nullopt;
  return v;
}

std::optional<std::vector<int64_t>> numbers(std::string_view s) {
  std::vector<int64_t> out;
  for (auto& word : split(std::string(s), ',')) {
    auto v = number(word);
    if (!v) return std::nullopt;
    out.push_back(*v);
  }
  return out;
}

// Names each -1; an error says what the option cannot use.
Status name_sizes(GearedShapes& out, const std::string& option, const std::string& value) {
  auto& names = out.gears.symbols;
  for (auto& [input, sizes] : out.shapes) {
    std::vector<size_t> open;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] == "-1") open.push_back(i);
    if (open.empty()) continue;
    if (option == "dynamic_batch_size") {
      if (open != std::vector<size_t>{0}) return invalid(option, value, format("input '{}' has -1 elsewhere than in its first size", input), "give the other sizes, or use --dynamic_dims");
      names = {"gear_batch"}, sizes[0] = names[0];
    } else if (option == "dynamic_image_size") {
      if (open.size() != 2) return invalid(option, value, format("input '{}' has not two sizes of -1, its height and width", input), "give the other sizes, or use --dynamic_dims");
      names = {"gear_height", "gear_width"};
      for (size_t i : {0, 1}) sizes[open[i]] = names[i];
    } else {
      for (size_t i : open) names.push_back(format("gear_{}", names.size())), sizes[i] = names.back();
    }
  }
  if (names.empty()) return invalid(option, value, "no size in --input_shape is -1", "write the input's shape with -1 for the sizes that change, for example --input_shape=\"x:-1,3,224,224\"");
  return ok();
}

}  // namespace

Result<GearedShapes> geared_shapes(const Options& o) {
  GearedShapes out{o.input_shape, {}};
  std::vector<std::pair<std::string, const std::string*>> given;
  for (auto& [name, value] : {std::pair{"dynamic_batch_size", &o.dynamic_batch_size}, {"dynamic_image_size", &o.dynamic_image_size}, {"dynamic_dims", &o.dynamic_dims}})
    if (!value->empty()) given.push_back({name, value});
  if (given.empty()) return out;
  if (given.size() > 1 || !o.input_hint_shape.empty())
    return error(code::kExclusive, format("Options [--{}] and [--{}] exclude each other.", given[0].first, given.size() > 1 ? given[1].first : "input_hint_shape"), "", "Give one of them.");
  const std::string &option = given[0].first, &value = *given[0].second;
  GE_RETURN_IF_ERROR(name_sizes(out, option, value));
  for (auto& part : split(value, option == "dynamic_batch_size" ? ',' : ';')) {
    auto gear = numbers(part);
    if (!gear) return invalid(option, value, format("'{}' is not a list of sizes", trim(part)), "write sizes, for example 1,2,4");
    if (gear->size() != out.gears.symbols.size())
      return invalid(option, value, format("'{}' has {} sizes for {} of -1", trim(part), gear->size(), out.gears.symbols.size()), "write one size for each -1, and ';' between gears");
    if (std::find(gear->begin(), gear->end(), 0) != gear->end()) return invalid(option, value, "a size is 0", "write sizes of 1 or more");
    auto& all = out.gears.sizes;
    if (std::find(all.begin(), all.end(), *gear) == all.end()) all.push_back(*std::move(gear));
  }
  if (out.gears.sizes.size() > kMostGears) return invalid(option, value, format("more than {} gears", kMostGears), "use a range in --input_shape");
  return out;
}

void set_gears(ir::Graph& g, ir::Gears gears) {
  for (size_t i = 0; i < gears.symbols.size(); ++i) {
    auto& symbol = g.symbols[gears.symbols[i]];
    auto [low, high] = std::minmax_element(gears.sizes.begin(), gears.sizes.end(), [&](auto& a, auto& b) { return a[i] < b[i]; });
    symbol.min = (*low)[i], symbol.max = (*high)[i];
  }
  g.gears = std::move(gears);
}

Result<std::vector<std::vector<int64_t>>> hinted_shapes(const std::string& text, size_t inputs) {
  std::vector<std::vector<int64_t>> out(inputs);
  for (auto& part : split(text, ';')) {
    size_t colon = part.find(':');
    std::string shape(colon == std::string::npos ? "" : trim(part.substr(colon + 1)));
    const int64_t index = colon == std::string::npos ? -1 : number(part.substr(0, colon)).value_or(-1);
    bool bracketed = shape.size() > 2 && shape.front() == '[' && shape.back() == ']';
    auto sizes = bracketed ? numbers(std::string_view(shape).substr(1, shape.size() - 2)) : std::nullopt;
    if (bracketed && !sizes && shape.find('-') != std::string::npos) return invalid("input_hint_shape", text, "a size is negative", "write the sizes whose memory is to be planned; none is open in a hint");
    if (index < 0 || !sizes) return invalid("input_hint_shape", text, "the format is wrong", "write \"0:[3,224];1:[2,4]\", an input's number and its sizes");
    if (index >= static_cast<int64_t>(inputs)) return invalid("input_hint_shape", text, format("the model has {} inputs, there is no {}", inputs, index), "numbers begin at 0");
    if (!out[static_cast<size_t>(index)].empty()) return invalid("input_hint_shape", text, format("input {} stands twice", index), "give one shape for each input");
    out[static_cast<size_t>(index)] = *std::move(sizes);
  }
  return out;
}

}  // namespace ge
