#include "driver/states.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"

namespace ge {
namespace {

using ir::ValueId;

Error invalid(const std::string& text, std::string reason, std::string fix = "") {
  return error(code::kInvalidValue, format("Value {} for parameter --state is invalid. Reason: {}.", text, reason), "", std::move(fix));
}

std::optional<int64_t> number(std::string_view s) {
  int64_t v;
  auto [end, e] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (s.empty() || e != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return v;
}

struct Pair {
  std::string text;            // that asked for it
  int input = -1, output = -1;
  std::optional<int64_t> axis, capacity;
};

class Marking {
 public:
  explicit Marking(ir::Graph& g) : g_(g) {
    for (size_t i = 0; i < g.inputs.size(); ++i) inputs_.emplace(g.value(g.inputs[i]).name, static_cast<int>(i));
    for (size_t i = 0; i < g.outputs.size(); ++i) outputs_.emplace(g.output_names[i], static_cast<int>(i));
  }

  Result<bool> run(const std::string& text) {
    for (auto& part : split(text, ';')) {
      std::string one(trim(part));
      if (one.empty()) continue;
      if (one == "auto" || one.starts_with("auto:")) GE_RETURN_IF_ERROR(find_pairs(one));
      else GE_RETURN_IF_ERROR(read_pair(one));
    }
    for (auto& p : pairs_) {
      // A pair that stands there by itself says more than auto.
      bool again = std::any_of(pairs_.begin(), pairs_.end(), [&](auto& q) {
        return &q != &p && !q.text.starts_with("auto") && p.text.starts_with("auto") && ((p.input >= 0 && p.input == q.input) || (p.output >= 0 && p.output == q.output));
      });
      if (!again) GE_RETURN_IF_ERROR(mark(p));
    }
    return refined_;
  }

 private:
  const ir::Type& input_type(int i) const { return g_.value(g_.inputs[static_cast<size_t>(i)]).type; }
  const ir::Type& output_type(int i) const { return g_.value(g_.outputs[static_cast<size_t>(i)]).type; }
  const std::string& input_name(int i) const { return g_.value(g_.inputs[static_cast<size_t>(i)]).name; }
  const std::string& output_name(int i) const { return g_.output_names[static_cast<size_t>(i)]; }

  Status find_pairs(const std::string& text) {
    std::optional<int64_t> capacity;
    if (text != "auto") {
      capacity = number(text.substr(5));
      if (!capacity || *capacity < 1) return invalid(text, "a capacity is a number from 1", "write auto or auto:4096");
    }
    std::map<std::string, Pair> found;
    std::vector<std::string> order;
    auto pair = [&](const std::string& name) -> Pair& {
      auto [it, fresh] = found.try_emplace(name, Pair{text, -1, -1, {}, capacity});
      if (fresh) order.push_back(name);
      return it->second;
    };
    auto tensor = [](const ir::Type& t) { return t.kind == ir::TypeKind::tensor && t.ranked && t.rank() >= 2; };
    for (size_t i = 0; i < g_.inputs.size(); ++i)
      if (auto s = state_name(input_name(static_cast<int>(i))); s.past && tensor(input_type(static_cast<int>(i)))) pair(s.name).input = static_cast<int>(i);
    for (size_t i = 0; i < g_.outputs.size(); ++i)
      if (auto s = state_name(output_name(static_cast<int>(i))); s.present && tensor(output_type(static_cast<int>(i)))) pair(s.name).output = static_cast<int>(i);
    if (found.empty())
      return error(code::kUnknownName, format("--state={} finds no states: no input or output is named as exporters name caches.", text),
                   "it looks for past_key_values.0.key with present.0.key, past_0 with present_0, past_key_0 with present_key_0 and the like", "name the pairs: --state=\"in:out;in2:out2\"");
    for (auto& name : order) pairs_.push_back(found[name]);
    return ok();
  }

  // Names may contain ':', so every way to cut the text is tried: the most numbers at the end first.
  Status read_pair(const std::string& text) {
    auto words = split(text, ':');
    for (size_t numbers = 2; numbers <= 2; --numbers) {
      if (words.size() < numbers + 2) continue;
      Pair p{text, -1, -1, {}, {}};
      size_t names = words.size() - numbers;
      bool good = true;
      if (numbers > 0) p.axis = number(trim(words[names])), good = p.axis.has_value();
      if (numbers > 1) p.capacity = number(trim(words[names + 1])), good &= p.capacity.has_value();
      for (size_t cut = 1; cut < names && good; ++cut) {
        std::string in(trim(join({words.begin(), words.begin() + static_cast<std::ptrdiff_t>(cut)}, ":")));
        std::string out(trim(join({words.begin() + static_cast<std::ptrdiff_t>(cut), words.begin() + static_cast<std::ptrdiff_t>(names)}, ":")));
        if ((in.empty() && out.empty()) || (!in.empty() && !inputs_.count(in)) || (!out.empty() && !outputs_.count(out))) continue;
        if (!in.empty()) p.input = inputs_[in];
        if (!out.empty()) p.output = outputs_[out];
        pairs_.push_back(p);
        return ok();
      }
    }
    return unknown(text, words);
  }

  Status unknown(const std::string& text, const std::vector<std::string>& words) {
    if (words.size() < 2) return invalid(text, "it is not in:out[:axis[:capacity]]", "write auto, or the names of an input and an output: past_key:present_key");
    std::vector<std::string> ins, outs;
    for (auto& [name, i] : inputs_) ins.push_back(name);
    for (auto& [name, i] : outputs_) outs.push_back(name);
    std::string in(trim(words[0])), out(trim(words[1]));
    bool input = !in.empty() && !inputs_.count(in);
    std::string near = nearest(input ? in : out, input ? ins : outs);
    return error(code::kUnknownName, format("--state \"{}\" names {} '{}', which the model does not have.", text, input ? "input" : "output", input ? in : out),
                 format("its {} are {}", input ? "inputs" : "outputs", join(input ? ins : outs, ", ")), near.empty() ? "write in:out[:axis[:capacity]]" : format("did you mean '{}'?", near));
  }

  Error refuse(const Pair& p, std::string why, std::string fix) const {
    std::string in = p.input >= 0 ? input_name(p.input) : "", out = p.output >= 0 ? output_name(p.output) : "";
    return error(code::kInvalidValue, format("'{}' and '{}' cannot be a state: {}.", in, out, why), "--state asks for it", std::move(fix));
  }

  Status mark(const Pair& p) {
    ir::State s;
    s.input = p.input, s.output = p.output;
    std::string called = p.output >= 0 ? output_name(p.output) : input_name(p.input);
    auto canonical = state_name(called);
    s.name = canonical.name.empty() ? called : canonical.name;
    if (!names_.insert(s.name).second) return refuse(p, format("another state is called '{}'", s.name), "name each pair once");
    if ((p.input >= 0 && !used_inputs_.insert(p.input).second) || (p.output >= 0 && !used_outputs_.insert(p.output).second))
      return refuse(p, "one of them belongs to another state", "name each input and output once");
    for (bool in : {true, false}) {
      if ((in ? p.input : p.output) < 0) continue;
      auto& t = in ? input_type(p.input) : output_type(p.output);
      if (t.kind != ir::TypeKind::tensor || !t.ranked) return refuse(p, format("{} is no tensor of a known number of axes", in ? "the input" : "the output"), "leave the pair out of --state");
      if (t.dtype == DType::string) return refuse(p, "it holds text", "leave the pair out of --state");
    }
    if (p.input >= 0 && p.output >= 0) GE_RETURN_IF_ERROR(compare(p));
    GE_TRY(s.axis, axis_of(p));
    GE_RETURN_IF_ERROR(check_sizes(p, s.axis));
    GE_TRY(s.capacity, capacity_of(p, s.axis));
    limit(p, s);
    g_.states.push_back(std::move(s));
    return ok();
  }

  // Where only the output's size is a number, the input has it too; and the batch may stand there under two names.
  Status compare(const Pair& p) {
    auto &a = input_type(p.input), &b = output_type(p.output);
    if (a.dtype != b.dtype)
      return refuse(p, format("the input is {}, the output {}", name(a.dtype), name(b.dtype)), "export the model with one type for both");
    if (a.rank() != b.rank()) return refuse(p, format("the input has {} axes, the output {}", a.rank(), b.rank()), "name an input and an output of one shape");
    for (size_t k = 0; k < a.dims.size(); ++k) {
      auto symbol = std::string(a.dims[k].symbol_name());
      bool batch = k == 0 && !b.dims[k].symbol_name().empty() && !g_.decided_by_data(b.dims[k]);
      if (symbol.empty() || a.dims[k] == b.dims[k] || (!b.dims[k].known() && !batch)) continue;
      for (ValueId v : g_.inputs)
        for (auto& d : g_.value(v).type.dims)
          if (d.symbol_name() == symbol) d = b.dims[k];
      refined_ = true;
    }
    return ok();
  }

  // The axis that grows: the one that was given, or in which input and output differ, or of which only the size is
  // open; -1 where none does.
  Result<int> axis_of(const Pair& p) {
    auto& t = p.input >= 0 ? input_type(p.input) : output_type(p.output);
    if (p.axis) {
      int64_t a = *p.axis < 0 ? *p.axis + t.rank() : *p.axis;
      if (a < 0 || a >= t.rank()) return invalid(p.text, format("there is no axis {} of {}", *p.axis, t.rank()));
      return static_cast<int>(a);
    }
    std::vector<int> axes;
    if (t.rank() == 0) return -1;
    if (p.input >= 0 && p.output >= 0) {
      for (int k = 0; k < t.rank(); ++k)
        if (!(input_type(p.input).dims[static_cast<size_t>(k)] == output_type(p.output).dims[static_cast<size_t>(k)])) axes.push_back(k);
      if (axes.size() > 1 && axes[0] == 0) axes.erase(axes.begin());   // a batch under two names
      if (axes.size() == 1) return axes[0];
      if (axes.size() > 1) return refuse(p, format("input {} and output {} differ in several axes", text(input_type(p.input)), text(output_type(p.output))), "give the axis that grows: in:out:axis");
      if (std::all_of(t.dims.begin() + 1, t.dims.end(), [](auto& d) { return d.known(); })) return -1;
    }
    for (int k = 1; k < t.rank(); ++k)
      if (!t.dims[static_cast<size_t>(k)].known()) axes.push_back(k);
    if (axes.size() == 1) return axes[0];
    // [batch, heads, entries, head size], as exporters have it.
    if (axes.empty() && (p.input < 0 || p.output < 0) && t.rank() == 4) return 2;
    return refuse(p, format("the axis of {} that grows is not known", text(t)), "give it: in:out:axis");
  }

  Status check_sizes(const Pair& p, int axis) {
    for (bool in : {true, false}) {
      if ((in ? p.input : p.output) < 0) continue;
      auto& t = in ? input_type(p.input) : output_type(p.output);
      for (int k = 0; k < t.rank(); ++k) {
        auto& d = t.dims[static_cast<size_t>(k)];
        bool batch = k == 0 && axis != 0 && !d.symbol_name().empty() && !g_.decided_by_data(d);
        if (k != axis && !d.known() && !batch) return refuse(p, format("axis {} of {} is open beside the axis that grows ({})", k, text(t), axis), "give its size with --input_shape");
      }
    }
    if (p.input < 0 || p.output < 0) return ok();
    auto &a = input_type(p.input), &b = output_type(p.output);
    for (int k = 0; k < a.rank(); ++k) {
      auto &x = a.dims[static_cast<size_t>(k)], &y = b.dims[static_cast<size_t>(k)];
      if (k != axis && !(x == y)) return refuse(p, format("axis {} is {} before a run and {} after it", k, x.text(), y.text()), "only one axis may grow");
      if (k == axis && x.known() && !(x == y)) return refuse(p, format("axis {} of the input has the fixed size {}, so it cannot grow", k, x.text()), "export the model with this size open, and give no number for it in --input_shape");
    }
    return ok();
  }

  // The largest size that the model allows, else kStateCapacity.
  Result<int64_t> capacity_of(const Pair& p, int axis) {
    if (axis < 0) return 0;
    int64_t least = 0, most = 0;
    for (bool in : {true, false}) {
      if ((in ? p.input : p.output) < 0) continue;
      auto& d = (in ? input_type(p.input) : output_type(p.output)).dims[static_cast<size_t>(axis)];
      if (d.known()) least = std::max(least, d.value());
      auto it = g_.symbols.find(d.symbol_name());
      if (it != g_.symbols.end() && it->second.max != INT64_MAX) most = std::max(most, it->second.max);
    }
    if (p.capacity) {
      if (*p.capacity < std::max<int64_t>(least, 1)) return invalid(p.text, format("the capacity is {}, at least {} is needed", *p.capacity, std::max<int64_t>(least, 1)));
      if (*p.capacity > (int64_t{1} << 40)) return invalid(p.text, format("the capacity {} is too large", *p.capacity));
      return *p.capacity;
    }
    return std::max(least, most > 0 ? most : kStateCapacity);
  }

  // What the state holds is never more than its capacity.
  void limit(const Pair& p, const ir::State& s) {
    if (p.input < 0 || s.axis < 0) return;
    auto it = g_.symbols.find(input_type(p.input).dims[static_cast<size_t>(s.axis)].symbol_name());
    if (it == g_.symbols.end()) return;
    it->second.min = 0;
    it->second.max = std::min(it->second.max, s.capacity);
  }

  ir::Graph& g_;
  std::map<std::string, int> inputs_, outputs_;
  std::vector<Pair> pairs_;
  std::set<std::string> names_;
  std::set<int> used_inputs_, used_outputs_;
  bool refined_ = false;
};

// Why the rows of the last axis of a state are not stored as bytes with a scale each; "" where they are.
std::string unfit_for_bytes(const ir::Graph& g, const ir::State& s) {
  ValueId in = s.input >= 0 ? g.inputs[static_cast<size_t>(s.input)] : ValueId{}, out = s.output >= 0 ? g.outputs[static_cast<size_t>(s.output)] : ValueId{};
  auto& type = g.value(in ? in : out).type;
  for (auto& other : g.states)
    if (other.name == s.name + ".scale") return format("another state is called '{}'", other.name);
  if (type.rank() < 2) return "it has no rows";
  if (s.axis == type.rank() - 1) return "it grows along its last axis, that of the rows which have a scale each";
  if (auto& width = type.dims.back(); !width.known() || width.value() < 2) return "its rows are of one value";
  if (s.axis >= 0 || in == out) return "";
  ir::NodeId id = g.value(out).producer;
  bool replaced = id && (g.node(id).op == "TensorScatter" || g.node(id).op == "ScatterND") && g.node(id).inputs[0] == in;
  return replaced ? "" : "it does not grow: each run may make all of it anew";
}

// States as `type` says, between the operators that widen and narrow them. Those of 16 bits become bytes, too.
class Storing {
 public:
  Storing(ir::Graph& g, DType type) : g_(g), type_(type) {}

  void run() {
    const size_t count = g_.states.size();
    for (size_t i = 0; i < count; ++i) {
      auto& s = g_.states[i];
      const DType now = g_.value(s.input >= 0 ? g_.inputs[static_cast<size_t>(s.input)] : g_.outputs[static_cast<size_t>(s.output)]).type.dtype;
      const bool bytes = type_ == DType::i8, half = now == DType::f16 || now == DType::bf16;
      if (now == type_) continue;
      if (now != DType::f32 && !(bytes && half)) s.unfit = format("it is {}", name(now));
      else if (bytes) s.unfit = unfit_for_bytes(g_, s);
      if (s.unfit.empty()) store(i);
    }
  }

 private:
  void store(size_t i) {
    ir::State& s = g_.states[i];
    ir::State scale{s.name + ".scale", -1, -1, s.axis, s.capacity, ""};
    ValueId in = s.input >= 0 ? g_.inputs[static_cast<size_t>(s.input)] : ValueId{}, in_scale;
    ValueId out = s.output >= 0 ? g_.outputs[static_cast<size_t>(s.output)] : ValueId{};
    if (in) {
      auto wide = g_.value(in).type;
      g_.value(in).type.dtype = type_;
      if (type_ == DType::i8) {
        scale.input = static_cast<int>(g_.inputs.size());
        in_scale = g_.add_input(g_.value(in).name + ".scale", scale_type(wide));
      }
      const DType computed = wide.dtype;
      wide.dtype = DType::f32;
      ValueId made = g_.add_value(g_.value(in).name + ".f32", wide), read = made;
      if (computed != DType::f32) wide.dtype = computed, read = g_.add_value(g_.value(in).name + ".wide", std::move(wide));
      // All that read it read that.
      g_.replace_uses(in, read);
      ir::NodeId id = in_scale ? g_.add_node("ge.DequantizeRows", {in, in_scale}, {made}, {}, g_.value(made).name)
                               : g_.add_node("Cast", {in}, {made}, {{"to", static_cast<int64_t>(DType::f32)}}, g_.value(made).name);
      g_.node(id).rank = -1;
      if (read != made) g_.node(g_.add_node("Cast", {made}, {read}, {{"to", static_cast<int64_t>(computed)}}, g_.value(read).name)).rank = -1;
    }
    if (out) {
      auto at = static_cast<size_t>(s.output);
      const std::string name = g_.output_names[at];
      ValueId out_scale = in_scale;
      if (out == in) g_.set_graph_output(at, in);
      else g_.set_graph_output(at, narrowed(g_.outputs[at], name, out_scale));   // what was an input may be wide now
      if (out_scale) {
        scale.output = static_cast<int>(g_.outputs.size());
        g_.add_graph_output(out_scale, name + ".scale");
      }
    }
    if (type_ == DType::i8) g_.states.push_back(std::move(scale));
  }

  ValueId narrowed(ValueId v, const std::string& name, ValueId& scale) {
    ir::Type type = g_.value(v).type;
    type.dtype = type_;
    ValueId made = g_.add_value(name + ".stored", type);
    if (type_ != DType::i8) {
      g_.add_node("Cast", {v}, {made}, {{"to", static_cast<int64_t>(type_)}}, name + ".stored");
      return made;
    }
    if (type = g_.value(v).type; type.dtype != DType::f32) {
      type.dtype = DType::f32;
      ValueId f32 = g_.add_value(name + ".f32", type);
      g_.add_node("Cast", {v}, {f32}, {{"to", static_cast<int64_t>(DType::f32)}}, name + ".f32");
      v = f32;
    }
    scale = g_.add_value(name + ".scale", scale_type(type));
    g_.add_node("ge.QuantizeRows", {v}, {made, scale}, {}, name + ".stored");
    return made;
  }

  static ir::Type scale_type(ir::Type rows) {
    rows.dtype = DType::f32;
    rows.dims.back() = Dim(1);
    return rows;
  }

  ir::Graph& g_;
  DType type_;
};

}  // namespace

void store_states(ir::Graph& g, DType type) { Storing(g, type).run(); }

Result<bool> mark_states(ir::Graph& g, const std::string& text) { return Marking(g).run(text); }

}  // namespace ge
