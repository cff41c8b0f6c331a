// LSTM, GRU and RNN on fast kernels: cube.matmul for what comes from X at all steps, cube.recurrent for the
// steps. Constant weights are packed while compiling, others by cube.pack_gates.
#include "kernels/cube/pack.h"
#include "kernels/cube/recurrent.h"
#include "ops/fused_tail.h"
#include "ops/recurrent.h"

namespace ge::ops {
namespace {

using kernels::Cell;

class Lowering {
 public:
  Lowering(LowerContext& c, Cell cell, RecurrentForm form)
      : c_(c), cell_(cell), form_(std::move(form)), gates_(kernels::gates_of(cell)) {
    h_ = recurrent_units(c.graph, c.node, cell), d_ = Dim(form_.directions);
    panels_ = Dim(gates_) * ceildiv(h_, Dim(16));
    n_ = panels_ * Dim(16);
  }

  void emit() {
    Strided x_view;
    Arg x = input_as_f32(c_, 0, x_view);
    x.view = x_view;
    const Dim inner = x_view.dims[2], columns = d_ * n_;
    Arg w = packed(1, inner);
    w.view = Strided::dense({d_ * panels_, inner, Dim(16)});
    Arg bias = half_of_bias(0);
    if (bias.kind != Arg::Kind::none) bias.view = Strided::dense({columns});
    Arg sums = c_.temp(DType::f32, {x_view.dims[0], x_view.dims[1], columns});
    c_.call("cube.matmul", {x, w, bias}, {sums}, {0}, {0, 0, 1});

    sums.view = turned(split_columns(Strided::dense({x_view.dims[0], x_view.dims[1], columns})), {1, 0, 2, 3});
    Arg r = packed(2, h_), recurrent_bias = half_of_bias(1);
    if (recurrent_bias.kind != Arg::Kind::none) recurrent_bias.view = Strided::dense({d_, n_});
    std::vector<Arg> out;
    for (int i : {0, 1, 2}) out.push_back(output(i));
    c_.call("cube.recurrent", {sums, r, recurrent_bias, c_.in(4), state(5), state(6), plain(7)}, out, form_.ints, form_.floats);
    for (auto& [from, i] : later_) emit_copy(c_, from, DType::f32, c_.out(i), c_.out_type(i).dtype);
  }

 private:
  // Sums [., ., D N] as [., ., D, N].
  Strided split_columns(Strided v) const {
    v.dims = {v.dims[0], v.dims[1], d_, n_};
    v.strides = {v.strides[0], v.strides[1], n_, Dim(1)};
    return v;
  }
  Strided turned(const Strided& v, std::vector<size_t> order) const {
    return form_.batch_first ? permuted(v, order) : v;
  }

  // Input i, or one half of a bias, [D, G H, K] as panels [D, panels, k, 16].
  Arg packed(int i, const Dim& k, int half = -1) {
    const int64_t together = kernels::cube::gates_together(cell_);
    Strided view;
    Arg from;
    Tensor f32;
    if (auto* t = c_.constant_of(i)) {
      f32 = constant_f32(*t);
      view = Strided::dense(c_.type(i).dims);
    } else {
      from = input_as_f32(c_, i, view);
    }
    if (half >= 0) view = bias_half(view, half);
    if (!c_.constant_of(i)) {
      from.view = view;
      Arg to = c_.temp(DType::f32, {d_, panels_, k, Dim(16)});
      c_.call("cube.pack_gates", {from}, {to}, {gates_, together});
      return to;
    }
    std::vector<int64_t> dims, strides;
    for (auto& d : view.dims) dims.push_back(d.value());
    for (auto& s : view.strides) strides.push_back(s.value());
    Tensor out(DType::f32, {dims[0], panels_.value(), dims[2], 16});
    auto* data = reinterpret_cast<std::byte*>(f32.as<float>() + view.offset.value());
    kernels::cube::pack_gates(View{data, DType::f32, 3, dims.data(), strides.data()}, gates_, together, out.as<float>());
    return c_.weight(std::move(out));
  }

  // [D, G H, 1] of B [D, 2 G H].
  Strided bias_half(const Strided& b, int half) const {
    const Dim rows = Dim(gates_) * h_;
    return {b.offset + Dim(half) * rows * b.strides[1], {d_, rows, Dim(1)}, {b.strides[0], b.strides[1], Dim(1)}};
  }
  Arg half_of_bias(int half) { return c_.has(3) ? packed(3, Dim(1), half) : Arg{}; }

  Arg plain(int i) {
    if (!c_.has(i)) return {};
    Strided view;
    Arg a = input_as_f32(c_, i, view);
    a.view = view;
    return a;
  }
  Arg state(int i) {
    Arg a = plain(i);
    if (a.kind != Arg::Kind::none) a.view = turned(*a.view, {1, 0, 2});
    return a;
  }
  Arg output(int i) {
    if (!c_.wants(i)) return {};
    Arg a = c_.out(i);
    Strided view = c_.out_view(i);
    if (c_.out_type(i).dtype != DType::f32) {
      a = c_.temp(DType::f32, c_.out_type(i).dims);
      view = Strided::dense(c_.out_type(i).dims);
      later_.push_back({a, i});
    }
    a.view = i == 0 ? turned(view, {1, 2, 0, 3}) : turned(view, {1, 0, 2});
    return a;
  }

  LowerContext& c_;
  Cell cell_;
  RecurrentForm form_;
  int64_t gates_;
  Dim h_, d_, panels_, n_;
  std::vector<std::pair<Arg, int>> later_;  // f32 temporaries that become outputs of another type
};

}  // namespace

Status lower_recurrent(LowerContext& c, Cell cell) {
  if (!c.type(0).ranked || !cube_float(c.type(0).dtype)) return ok();
  GE_TRY(auto form, read_recurrent_form(c.node, cell));
  Lowering(c, cell, std::move(form)).emit();
  return ok();
}

}  // namespace ge::ops
