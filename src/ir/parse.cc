#include "ir/parse.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/random.h"
#include "base/text.h"
#include "tensor/float8.h"
#include "tensor/half.h"

namespace ge::ir {
namespace {

void set_element(Tensor& t, int64_t i, double v) {
  if (is_small_float(t.dtype())) {
    t.as<uint8_t>()[i] = small_float_code(t.dtype(), v, false, Round::nearest);
    return;
  }
  auto n = static_cast<int64_t>(v);
  switch (t.dtype()) {
    case DType::f32: t.as<float>()[i] = static_cast<float>(v); return;
    case DType::f64: t.as<double>()[i] = v; return;
    case DType::f16: t.as<uint16_t>()[i] = f32_to_f16(static_cast<float>(v)); return;
    case DType::bf16: t.as<uint16_t>()[i] = f32_to_bf16(static_cast<float>(v)); return;
    default: break;
  }
  switch (size_of(t.dtype())) {
    case 1: t.as<int8_t>()[i] = static_cast<int8_t>(n); return;
    case 2: t.as<int16_t>()[i] = static_cast<int16_t>(n); return;
    case 4: t.as<int32_t>()[i] = static_cast<int32_t>(n); return;
    default: t.as<int64_t>()[i] = n;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view s) : s_(s) {}

  Result<Graph> graph() {
    Graph g;
    GE_RETURN_IF_ERROR(expect("graph"));
    g.name = word();
    GE_RETURN_IF_ERROR(expect("("));
    while (!eat(")")) {
      std::string n;
      Type t;
      GE_RETURN_IF_ERROR(typed(n, t));
      if (!define(n, g.add_input(n, t))) return bad("a value has this name already");
      eat(",");
    }
    GE_RETURN_IF_ERROR(expect("->"));
    GE_RETURN_IF_ERROR(expect("("));
    std::vector<std::string> outs;
    while (!eat(")")) {
      if (!eat("%")) return bad("an output is expected");
      outs.push_back(word());
      eat(",");
    }
    GE_RETURN_IF_ERROR(expect("{"));
    while (!eat("}")) {
      if (at_end()) return bad("'}' is expected");
      if (eat("symbol ")) GE_RETURN_IF_ERROR(symbol(g));
      else if (eat("equal ")) GE_RETURN_IF_ERROR(equal(g));
      else if (eat("state ")) GE_RETURN_IF_ERROR(state(g, outs));
      else GE_RETURN_IF_ERROR(statement(g));
    }
    for (auto& o : outs) {
      auto it = values_.find(o);
      if (it == values_.end()) return bad(format("output %{} is not made", o));
      g.add_graph_output(it->second, o);
    }
    for (ValueId v : g.inputs)
      for (auto& d : g.value(v).type.dims) {
        std::vector<std::string> names;
        d.symbols(names);
        for (auto& n : names) g.symbols.emplace(n, SymbolInfo{});
      }
    return g;
  }
  bool at_end() {
    space();
    return i_ >= s_.size();
  }

  Error bad(std::string why) {
    size_t line = 1;
    for (size_t k = 0; k < i_ && k < s_.size(); ++k) line += s_[k] == '\n';
    return error(code::kParse, format("Line {}: {}.", line, why), format("near '{}'", s_.substr(std::min(i_, s_.size()), 24)));
  }

 private:
  void space() {
    for (;;) {
      while (i_ < s_.size() && std::isspace(static_cast<unsigned char>(s_[i_]))) ++i_;
      if (s_.substr(std::min(i_, s_.size()), 2) != "//") return;
      while (i_ < s_.size() && s_[i_] != '\n') ++i_;
    }
  }
  bool eat(std::string_view t) {
    space();
    if (s_.substr(std::min(i_, s_.size()), t.size()) != t) return false;
    i_ += t.size();
    return true;
  }
  Status expect(std::string_view t) { return eat(t) ? Status() : Status(bad(format("'{}' is expected", t))); }
  bool peek(char c) {
    space();
    return i_ < s_.size() && s_[i_] == c;
  }
  std::string word() {
    space();
    size_t start = i_;
    while (i_ < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[i_])) || std::string_view("_./:$#<>~+").find(s_[i_]) != std::string_view::npos)) {
      // "x: f32": a colon followed by a space ends the name.
      if (s_[i_] == ':' && (i_ + 1 >= s_.size() || s_[i_ + 1] == ' ')) break;
      ++i_;
    }
    return std::string(s_.substr(start, i_ - start));
  }
  bool define(const std::string& n, ValueId v) { return values_.emplace(n, v).second; }

  Result<double> number() {
    space();
    std::string_view rest = s_.substr(std::min(i_, s_.size()));
    for (auto [t, v] : {std::pair<std::string_view, double>{"-inf", -INFINITY}, {"inf", INFINITY}, {"nan", NAN}, {"true", 1}, {"false", 0}})
      if (rest.starts_with(t)) {
        i_ += t.size();
        return v;
      }
    double v = 0;
    auto [end, e] = std::from_chars(rest.data(), rest.data() + rest.size(), v);
    if (e != std::errc()) return bad("a number is expected");
    last_integer_ = std::string_view(rest.data(), static_cast<size_t>(end - rest.data())).find_first_of(".einf") == std::string_view::npos;
    if (last_integer_) std::from_chars(rest.data(), end, last_int_);
    i_ += static_cast<size_t>(end - rest.data());
    return v;
  }
  Result<std::string> quoted() {
    if (!eat("\"")) return bad("a text is expected");
    std::string out;
    while (i_ < s_.size() && s_[i_] != '"') {
      char c = s_[i_++];
      if (c == '\\' && i_ < s_.size()) {
        c = s_[i_++];
        if (c == 'n') c = '\n';
        if (c == 'u' && i_ + 4 <= s_.size()) {
          c = static_cast<char>(std::strtol(std::string(s_.substr(i_, 4)).c_str(), nullptr, 16));
          i_ += 4;
        }
      }
      out += c;
    }
    if (i_ >= s_.size()) return bad("a text does not end");
    ++i_;
    return out;
  }

  Result<Type> type() {
    Type t;
    std::string n;
    if (eat("seq(")) t.kind = TypeKind::sequence;
    else if (eat("optional(")) t.kind = TypeKind::optional;
    space();
    while (i_ < s_.size() && std::isalnum(static_cast<unsigned char>(s_[i_]))) n += s_[i_++];
    auto d = dtype_from_name(n);
    if (!d) return bad(format("'{}' is no element type", n));
    t.dtype = *d;
    GE_RETURN_IF_ERROR(expect("["));
    if (eat("?]")) return t;
    t.ranked = true;
    int depth = 0;
    std::string part;
    for (;; ++i_) {
      if (i_ >= s_.size()) return bad("']' is expected");
      char c = s_[i_];
      if (c == ']' || (c == ',' && depth == 0)) {
        if (!trim(part).empty()) {
          GE_TRY(Dim dim, Dim::parse(trim(part)));
          t.dims.push_back(dim);
        }
        part.clear();
        if (c == ']') break;
        continue;
      }
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      part += c;
    }
    ++i_;
    if (t.kind != TypeKind::tensor) GE_RETURN_IF_ERROR(expect(")"));
    return t;
  }
  Status typed(std::string& n, Type& t) {
    if (!eat("%")) return bad("a value is expected");
    n = word();
    if (n.empty()) return bad("a name is expected");
    if (!eat(":")) return ok();
    GE_TRY(t, type());
    return ok();
  }
  Status symbol(Graph& g) {
    std::string n;
    space();
    while (i_ < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[i_])) || s_[i_] == '_')) n += s_[i_++];
    GE_TRY(double low, number_until_dots());
    GE_RETURN_IF_ERROR(expect(".."));
    GE_TRY(double high, number());
    g.symbols[n] = {static_cast<int64_t>(low), high >= 9e18 ? INT64_MAX : static_cast<int64_t>(high)};
    return ok();
  }
  // equal "size" "size" "who asks".
  Status equal(Graph& g) {
    GE_TRY(std::string one, quoted());
    GE_TRY(std::string other, quoted());
    GE_TRY(std::string who, quoted());
    GE_TRY(Dim a, Dim::parse(one));
    GE_TRY(Dim b, Dim::parse(other));
    g.facts.add(a, b, who);
    return ok();
  }
  // state "name" %input %output axis N capacity N, with - where there is none.
  Status state(Graph& g, const std::vector<std::string>& outs) {
    State x;
    GE_TRY(x.name, quoted());
    if (!eat("-")) {
      GE_RETURN_IF_ERROR(expect("%"));
      std::string n = word();
      for (size_t i = 0; i < g.inputs.size(); ++i)
        if (g.value(g.inputs[i]).name == n) x.input = static_cast<int>(i);
      if (x.input < 0) return bad(format("%{} is no input", n));
    }
    if (!eat("-")) {
      GE_RETURN_IF_ERROR(expect("%"));
      std::string n = word();
      for (size_t i = 0; i < outs.size(); ++i)
        if (outs[i] == n) x.output = static_cast<int>(i);
      if (x.output < 0) return bad(format("%{} is no output", n));
    }
    GE_RETURN_IF_ERROR(expect("axis"));
    GE_TRY(double axis, number());
    GE_RETURN_IF_ERROR(expect("capacity"));
    GE_TRY(double capacity, number());
    x.axis = static_cast<int>(axis), x.capacity = static_cast<int64_t>(capacity);
    g.states.push_back(std::move(x));
    return ok();
  }
  Result<double> number_until_dots() {
    space();
    size_t start = i_;
    while (i_ < s_.size() && std::isdigit(static_cast<unsigned char>(s_[i_]))) ++i_;
    if (start == i_) return bad("a number is expected");
    return std::atof(std::string(s_.substr(start, i_ - start)).c_str());
  }

  Result<Tensor> constant(const Type& t) {
    if (!t.is_static()) return bad("a constant needs a type with numbers as sizes");
    if (t.dtype == DType::c64 || t.dtype == DType::c128) return bad("a constant of complex numbers cannot be written as text");
    std::vector<int64_t> dims;
    int64_t count = 1;
    for (auto& d : t.dims) {
      dims.push_back(d.value());
      if (d.value() < 0 || __builtin_mul_overflow(count, d.value(), &count) || count > (int64_t(1) << 28)) return bad("the constant is too large");
    }
    Tensor out(t.dtype, dims);
    if (eat("random(")) {
      GE_TRY(double seed, number());
      GE_RETURN_IF_ERROR(expect(")"));
      SplitMix64 random{static_cast<uint64_t>(seed)};
      for (int64_t i = 0; i < count; ++i) {
        double normal = random.normal();
        set_element(out, i, is_float(t.dtype) ? normal : std::floor(normal * 3));
      }
      return out;
    }
    if (eat("splat(")) {
      GE_TRY(double v, number());
      GE_RETURN_IF_ERROR(expect(")"));
      for (int64_t i = 0; i < count; ++i) set_element(out, i, v);
      return out;
    }
    if (eat("data(")) return bad("a long constant printed as a hash cannot be read back");
    GE_RETURN_IF_ERROR(expect("["));
    int64_t at = 0;
    while (!eat("]")) {
      if (at >= count) return bad("the constant has too many elements");
      if (t.dtype == DType::string) {
        GE_TRY(out.strings()[static_cast<size_t>(at)], quoted());
      } else {
        GE_TRY(double v, number());
        if (last_integer_ && is_integer(t.dtype) && size_of(t.dtype) == 8) out.as<int64_t>()[at] = last_int_;
        else set_element(out, at, v);
      }
      ++at;
      eat(",");
    }
    if (at != count) return bad(format("the constant has {} elements instead of {}", at, count));
    return out;
  }

  Result<Attr> attr() {
    if (peek('"')) {
      GE_TRY(std::string v, quoted());
      return Attr(std::move(v));
    }
    if (eat("tensor ")) {
      GE_TRY(Type t, type());
      GE_TRY(Tensor v, constant(t));
      return Attr(std::move(v));
    }
    if (eat("{")) {
      if (++depth_ > 32) return bad("graphs are nested too deeply");
      auto outer = std::move(values_);
      values_.clear();
      auto g = graph();
      values_ = std::move(outer);
      --depth_;
      if (!g.ok()) return std::move(g).take_error();
      GE_RETURN_IF_ERROR(expect("}"));
      return Attr(std::make_shared<Graph>(*std::move(g)));
    }
    if (!eat("[")) {
      GE_TRY(double v, number());
      return last_integer_ ? Attr(last_int_) : Attr(v);
    }
    std::vector<int64_t> ints;
    std::vector<double> floats;
    std::vector<std::string> texts;
    bool integers = true;
    while (!eat("]")) {
      if (peek('"')) {
        GE_TRY(texts.emplace_back(), quoted());
      } else {
        GE_TRY(double v, number());
        floats.push_back(v);
        integers &= last_integer_;
        ints.push_back(last_integer_ ? last_int_ : 0);
      }
      eat(",");
    }
    if (!texts.empty()) return Attr(std::move(texts));
    return integers ? Attr(std::move(ints)) : Attr(std::move(floats));
  }

  Status statement(Graph& g) {
    struct Out {
      std::string name;
      Type type;
    };
    std::vector<Out> outs;
    do {
      Out o;
      if (!eat("-")) GE_RETURN_IF_ERROR(typed(o.name, o.type));
      outs.push_back(std::move(o));
    } while (eat(","));
    GE_RETURN_IF_ERROR(expect("="));
    space();
    if (peek('[') || s_.substr(i_).starts_with("random(") || s_.substr(i_).starts_with("splat(") || s_.substr(i_).starts_with("data(")) {
      GE_TRY(Tensor t, constant(outs[0].type));
      ValueId v = g.add_constant(std::move(t), outs[0].name);
      return define(outs[0].name, v) ? Status() : Status(bad("a value has this name already"));
    }
    std::string op = word();
    if (op.empty()) return bad("an operator is expected");
    GE_RETURN_IF_ERROR(expect("("));
    std::vector<ValueId> ins;
    while (!eat(")")) {
      if (eat("-")) {
        ins.push_back({});
      } else {
        if (!eat("%")) return bad("an input is expected");
        std::string n = word();
        auto it = values_.find(n);
        if (it == values_.end()) return bad(format("%{} is read before it is made", n));
        ins.push_back(it->second);
      }
      eat(",");
    }
    Attrs attrs;
    if (eat("{"))
      while (!eat("}")) {
        std::string key = word();
        GE_RETURN_IF_ERROR(expect("="));
        GE_TRY(attrs[key], attr());
        eat(",");
      }
    std::vector<int> order;
    if (eat("layout")) {
      GE_RETURN_IF_ERROR(expect("["));
      while (!eat("]")) {
        GE_TRY(double v, number());
        order.push_back(static_cast<int>(v));
        eat(",");
      }
    }
    std::string name;
    if (eat("@")) {
      GE_TRY(name, quoted());
    }
    std::vector<ValueId> made;
    for (auto& o : outs) {
      if (o.name.empty()) {
        made.push_back({});
        continue;
      }
      made.push_back(g.add_value(o.name, o.type));
      g.value(made.back()).layout = order;
      if (!define(o.name, made.back())) return bad("a value has this name already");
    }
    g.add_node(op, ins, made, std::move(attrs), name);
    return ok();
  }

  std::string_view s_;
  size_t i_ = 0;
  int depth_ = 0;
  bool last_integer_ = false;
  int64_t last_int_ = 0;
  std::map<std::string, ValueId> values_;
};

}  // namespace

Result<Graph> parse(std::string_view text) {
  Parser p(text);
  GE_TRY(Graph g, p.graph());
  if (!p.at_end()) return p.bad("text after the graph");
  return g;
}

}  // namespace ge::ir
