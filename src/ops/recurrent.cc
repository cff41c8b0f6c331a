#include "ops/recurrent.h"

#include <cctype>
#include <limits>

#include "base/text.h"
#include "ops/fused_tail.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

using kernels::Activation;
using kernels::Cell;

struct Named {
  const char* name;    // lower case: ONNX Runtime takes any case, and so do exporters
  Activation kind;
  bool alpha, beta;    // takes one from activation_alpha, activation_beta
  double default_alpha, default_beta;
};

const Named kNames[] = {
    {"relu", Activation::relu, false, false, 0, 0},
    {"tanh", Activation::tanh, false, false, 0, 0},
    {"sigmoid", Activation::sigmoid, false, false, 0, 0},
    {"affine", Activation::affine, true, true, 1, 0},
    {"leakyrelu", Activation::leaky_relu, true, false, static_cast<double>(0.01f), 0},
    {"thresholdedrelu", Activation::thresholded_relu, true, false, 1, 0},
    {"scaledtanh", Activation::scaled_tanh, true, true, 1, 1},
    {"hardsigmoid", Activation::hard_sigmoid, true, true, static_cast<double>(0.2f), 0.5},
    {"elu", Activation::elu, true, false, 1, 0},
    {"softsign", Activation::softsign, false, false, 0, 0},
    {"softplus", Activation::softplus, false, false, 0, 0},
};

size_t activations_of(Cell c) { return c == Cell::lstm ? 3 : c == Cell::gru ? 2 : 1; }

Result<const Named*> find_activation(const Node& n, std::string name) {
  for (char& ch : name) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  for (auto& a : kNames)
    if (name == a.name) return &a;
  return node_error(code::kBadOp, n.name, format("{}: no activation '{}'", n.op, name));
}

Status read_activations(const Node& n, Cell cell, RecurrentForm& f) {
  const size_t each = activations_of(cell), all = each * static_cast<size_t>(f.directions);
  auto names = ir::attr_strings(n, "activations");
  if (names.empty())
    for (size_t i = 0; i < all; ++i) names.push_back(cell != Cell::rnn && i % each == 0 ? "sigmoid" : "tanh");
  if (names.size() != all)
    return node_error(code::kBadOp, n.name, format("{}: {} activations, not {}", n.op, names.size(), all));
  auto alphas = ir::attr_floats(n, "activation_alpha"), betas = ir::attr_floats(n, "activation_beta");
  size_t alpha = 0, beta = 0;
  for (size_t i = 0; i < static_cast<size_t>(f.directions) * kernels::kActivations; ++i) {
    const size_t at = i % kernels::kActivations;
    if (at >= each) {
      f.ints.push_back(0);
      f.floats.insert(f.floats.end(), {0, 0});
      continue;
    }
    GE_TRY(const Named* a, find_activation(n, names[i / kernels::kActivations * each + at]));
    f.ints.push_back(static_cast<int64_t>(a->kind));
    f.floats.push_back(a->alpha && alpha < alphas.size() ? alphas[alpha++] : a->default_alpha);
    f.floats.push_back(a->beta && beta < betas.size() ? betas[beta++] : a->default_beta);
  }
  return ok();
}

// Input i, where it is there and its rank is known, has these sizes.
Status check_operand(InferContext& c, int i, std::vector<Dim> dims, std::string_view what) {
  if (!c.has(i) || !c.ranked(i)) return ok();
  if (c.rank(i) != static_cast<int>(dims.size()))
    return c.fail(format("{} has {} axes, not {}", what, c.rank(i), dims.size()));
  for (size_t a = 0; a < dims.size(); ++a) {
    auto size = unify(c, c.dims(i)[a], dims[a], what);
    if (!size.ok()) return std::move(size).take_error();
  }
  return ok();
}

}  // namespace

Result<RecurrentForm> read_recurrent_form(const Node& n, Cell cell) {
  auto bad = [&](std::string why) { return node_error(code::kBadOp, n.name, format("{}: {}", n.op, why)); };
  RecurrentForm f;
  std::string direction = ir::attr_string(n, "direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return bad(format("no direction '{}'", direction));
  f.directions = direction == "bidirectional" ? 2 : 1;
  const int64_t layout = ir::attr_int(n, "layout", 0);
  if (layout != 0 && layout != 1) return bad(format("no layout {}", layout));
  f.batch_first = layout == 1;
  const char* flag = cell == Cell::lstm ? "input_forget" : "linear_before_reset";
  const double clip = ir::attr_float(n, "clip", 0);
  if (!(clip >= 0)) return bad("clip is negative");
  f.ints = {static_cast<int64_t>(cell), int64_t{cell != Cell::rnn && ir::attr_int(n, flag, 0) != 0}, f.directions,
            int64_t{direction == "reverse" ? 1 : f.directions == 2 ? 2 : 0}};
  f.floats = {n.attrs.count("clip") && clip > 0 ? clip : std::numeric_limits<double>::infinity()};
  GE_RETURN_IF_ERROR(read_activations(n, cell, f));
  return f;
}

Dim recurrent_units(const Graph& g, const Node& n, Cell cell) {
  const int64_t hidden = ir::attr_int(n, "hidden_size", 0), gates = kernels::gates_of(cell);
  if (hidden > 0) return Dim(hidden);
  // Operand, axis, and what multiple of the units that axis has.
  const int64_t places[][3] = {{2, 2, 1}, {2, 1, gates}, {1, 1, gates}, {3, 1, 2 * gates}, {5, 2, 1}, {6, 2, 1}, {7, 1, 3}};
  Dim best;
  for (auto& [i, axis, times] : places) {
    if (static_cast<size_t>(i) >= n.inputs.size() || !n.inputs[static_cast<size_t>(i)]) continue;
    auto& type = g.value(n.inputs[static_cast<size_t>(i)]).type;
    if (!type.ranked || type.rank() <= axis) continue;
    auto& size = type.dims[static_cast<size_t>(axis)];
    if (size.known()) return Dim(size.value() / times);
    if (i == 2 && times == 1) best = size;
  }
  return best;
}

Status infer_recurrent(InferContext& c, Cell cell) {
  GE_RETURN_IF_ERROR(require_inputs(c, 3));
  GE_TRY(RecurrentForm f, read_recurrent_form(c.node, cell));
  const int64_t gates = kernels::gates_of(cell);
  if (c.has(4) && c.dtype(4) != DType::i32) return c.fail("sequence_lens must be int32");
  if (!c.ranked(0)) {
    for (int i = 0; i < static_cast<int>(c.out.size()); ++i) c.set_unranked(i, c.dtype(0));
    return ok();
  }
  if (c.rank(0) != 3) return c.fail(format("X {} does not have 3 axes", text(c.dims(0))));
  if (c.ranked(2) && c.rank(2) != 3) return c.fail(format("R {} does not have 3 axes", text(c.dims(2))));
  Dim h = recurrent_units(c.graph, c.node, cell);
  if (!c.ranked(2) && !h.known()) h = c.fresh("hidden");
  if (auto hidden = ir::attr_int(c.node, "hidden_size", 0); hidden > 0 && c.ranked(2) && c.dims(2)[2].known() && !c.dims(2)[2].is(hidden))
    return c.fail(format("hidden_size is {}, but R is {}", hidden, text(c.dims(2))));
  auto& x = c.dims(0);
  const Dim d(f.directions), s = x[f.batch_first ? 1 : 0], b = x[f.batch_first ? 0 : 1];
  GE_RETURN_IF_ERROR(check_operand(c, 1, {d, Dim(gates) * h, x[2]}, "W"));
  GE_RETURN_IF_ERROR(check_operand(c, 2, {d, Dim(gates) * h, h}, "R"));
  GE_RETURN_IF_ERROR(check_operand(c, 3, {d, Dim(2 * gates) * h}, "B"));
  GE_RETURN_IF_ERROR(check_operand(c, 4, {b}, "sequence_lens"));
  const std::vector<Dim> state = f.batch_first ? std::vector<Dim>{b, d, h} : std::vector<Dim>{d, b, h};
  GE_RETURN_IF_ERROR(check_operand(c, 5, state, "initial_h"));
  GE_RETURN_IF_ERROR(check_operand(c, 6, state, "initial_c"));
  GE_RETURN_IF_ERROR(check_operand(c, 7, {d, Dim(3) * h}, "P"));
  c.set(0, c.dtype(0), f.batch_first ? std::vector<Dim>{b, s, d, h} : std::vector<Dim>{s, d, b, h});
  c.set(1, c.dtype(0), state);
  c.set(2, c.dtype(0), state);
  return ok();
}

Strided permuted(const Strided& v, const std::vector<size_t>& order) {
  Strided out{v.offset, {}, {}};
  for (size_t a : order) out.dims.push_back(v.dims[a]), out.strides.push_back(v.strides[a]);
  return out;
}

namespace {

// A state [D, B, H] or Y [S, D, B, H], whatever the layout.
Strided sequence_first(const Strided& v, bool batch_first) {
  if (!batch_first) return v;
  return v.dims.size() == 4 ? permuted(v, {1, 2, 0, 3}) : permuted(v, {1, 0, 2});
}

Arg optional_in(LowerContext& c, int i) { return c.has(i) ? c.in(i) : Arg{}; }

}  // namespace

Status reference_recurrent(LowerContext& c, Cell cell) {
  GE_TRY(RecurrentForm f, read_recurrent_form(c.node, cell));
  auto turned = [&](int i) { return c.has(i) ? c.in_as(i, sequence_first(c.view(i), f.batch_first)) : Arg{}; };
  std::vector<Arg> in{turned(0), c.in(1), c.in(2)}, out;
  for (int i : {3, 4}) in.push_back(optional_in(c, i));
  for (int i : {5, 6}) in.push_back(turned(i));
  in.push_back(optional_in(c, 7));
  for (int i : {0, 1, 2})
    out.push_back(c.wants(i) ? c.out_as(i, sequence_first(c.out_view(i), f.batch_first)) : Arg{});
  c.call("ref.Recurrent", std::move(in), std::move(out), std::move(f.ints), std::move(f.floats));
  return ok();
}

std::vector<int> recurrent_layout(const Graph& g, const Node& n) {
  if (n.outputs.empty() || !n.outputs[0]) return {};
  NodeId reader = g.only_reader(n.outputs[0]);
  if (!reader || g.node(reader).op != "Transpose") return {};
  auto perm = ir::attr_ints(g.node(reader), "perm");
  if (perm.size() != 4 || perm.back() != 3) return {};
  return {perm.begin(), perm.end()};
}

std::vector<AttrDef> recurrent_attrs() {
  return {{"activation_alpha", "taken in order by the activations that have one"},
          {"activation_beta", "taken in order by the activations that have one"},
          {"activations", "names for each direction: of the gates, of the new state, LSTM: of the cell"},
          {"clip", "bounds what the activations see to [-clip, clip]"},
          {"direction", "forward, reverse or bidirectional"},
          {"hidden_size", "units; told by R"},
          {"layout", "0: [S, B, I]; 1: batch first"}};
}

}  // namespace ge::ops
