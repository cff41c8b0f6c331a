#include "ops/matmul_lowering.h"

#include <tuple>

#include "base/text.h"
#include "kernels/cube/pack.h"
#include "ops/bf16.h"
#include "ops/vector_lowering.h"

namespace ge::ops {

namespace {

// Up to so many rows each chunk packs its part of B for itself, or reads it in place: cheaper than a task more.
constexpr int64_t kOwnPackingRows = 512;

}  // namespace

Result<std::vector<Dim>> matmul_dims(const InferContext& c, std::vector<Dim> a, std::vector<Dim> b,
                                     bool transpose_a, bool transpose_b) {
  if (a.empty() || b.empty()) return c.fail("an input is a scalar; each needs an axis or more");
  bool vector_a = a.size() == 1, vector_b = b.size() == 1;
  if (vector_a) a.insert(a.begin(), Dim(1));
  else if (transpose_a) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (vector_b) b.push_back(Dim(1));
  else if (transpose_b) std::swap(b[b.size() - 1], b[b.size() - 2]);
  Dim m = a[a.size() - 2], k = a.back(), k2 = b[b.size() - 2], n = b.back();
  if (k.known() && k2.known() && !(k == k2))
    return c.fail(format("inner sizes {} and {} differ ({} times {})", k.text(), k2.text(), text(a), text(b)));
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  GE_TRY(auto dims, broadcast_dims(c, a, b));
  if (!vector_a) dims.push_back(m);
  if (!vector_b) dims.push_back(n);
  return dims;
}

RightSide constant_right_side(LowerContext& c, const Tensor& t, const Strided& view) {
  Tensor f = constant_f32(t);
  size_t lead = view.dims.size() - 2;
  int64_t k = view.dims[lead].value(), n = view.dims[lead + 1].value(), batches = 1;
  std::vector<int64_t> dims;
  for (size_t a = 0; a < lead; ++a) dims.push_back(view.dims[a].value()), batches *= dims.back();
  std::vector<int64_t> out_dims = dims;
  out_dims.insert(out_dims.end(), {kernels::cube::panels(n), k, 16});
  Tensor out(DType::f32, out_dims);
  const int64_t sizes[2] = {k, n}, strides[2] = {view.strides[lead].value(), view.strides[lead + 1].value()};
  for (int64_t i = 0; i < batches; ++i) {
    int64_t at = view.offset.value(), left = i;
    for (size_t a = lead; a-- > 0; left /= dims[a]) at += left % dims[a] * view.strides[a].value();
    auto* data = reinterpret_cast<std::byte*>(f.as<float>() + at);
    kernels::cube::pack_b(View{data, DType::f32, 2, sizes, strides}, out.as<float>() + i * kernels::cube::packed_floats(k, n));
  }
  return {c.weight(computes_bf16(c.node) ? pair_panels(out, k) : std::move(out))};
}

RightSide computed_right_side(LowerContext& c, Arg b, const Strided& view, const Dim& rows) {
  b.view = view;
  if (!rows.known() || rows.value() <= kOwnPackingRows) return {b, true};
  size_t rank = view.dims.size();
  std::vector<Dim> dims(view.dims.begin(), view.dims.end() - 2);
  dims.push_back(ceildiv(view.dims[rank - 1], Dim(16)));
  dims.push_back(view.dims[rank - 2]);
  dims.push_back(Dim(16));
  Arg packed = c.temp(DType::f32, dims);
  c.call("cube.pack_b", {b}, {packed});
  return {packed};
}

const Tensor* constant_behind(const Graph& g, ValueId v, Strided& view) {
  auto& value = g.value(v);
  if (value.constant) {
    view = Strided::dense(value.type.dims);
    return value.constant.get();
  }
  if (!value.producer) return nullptr;
  auto& n = g.node(value.producer);
  auto* def = find(n.op);
  if (!def || !def->view || n.outputs.size() != 1) return nullptr;
  const Tensor* constant = constant_behind(g, n.inputs[0], view);
  auto seen = constant ? def->view(g, n, 0, view) : std::nullopt;
  Dim count = seen ? product(seen->dims) : Dim(0);
  // An expanded constant would only grow.
  if (!seen || !seen->offset.known() || !count.known() || count.value() > constant->count()) return nullptr;
  view = *seen;
  return constant;
}

namespace {

// The rows that meet one matrix of b: those of all batches where b has none.
Dim rows_for(const Strided& b, const Strided& out) {
  size_t rank = out.dims.size();
  bool batched = false;
  for (size_t i = 0; i + 2 < b.dims.size(); ++i) batched |= !b.dims[i].is(1);
  return batched ? out.dims[rank - 2] : product({out.dims.begin(), out.dims.end() - 1});
}

RightSide right_side(LowerContext& c, const MatMulForm& form, const Strided& out) {
  Strided view;
  const Tensor* constant = constant_behind(c.graph, c.input(form.b), view);
  // A few rows read a shared constant in place as fast as a second, packed one; where their number is not known, a
  // second copy of an embedding would cost more than it gains.
  const Dim rows = rows_for(constant ? view : c.view(form.b), out);
  if (!computes_bf16(c.node) && !c.constant_of(form.b) && c.type(form.b).dtype == DType::f32 && (!rows.known() || rows.value() <= kFewRowsInPlace)) constant = nullptr;
  Arg b;
  if (!constant) b = input_as_f32(c, form.b, view);
  if (view.dims.size() == 1) view = with_axis(view, 1);
  else if (form.transpose_b) view = transposed_last(view);
  return constant ? constant_right_side(c, *constant, view) : computed_right_side(c, b, view, rows);
}

// Whether the inner stride of an operand of the program is 0 or 1, as the kernel asks.
bool unit_inner(const Strided& v) {
  return v.dims.empty() || v.dims.back().is(1) || v.strides.back().is(1) || v.strides.back().is(0);
}

// The view of an operand that broadcasts to the output, with the output's inserted axes of size 1.
Strided align(Strided v, bool vector_a, bool vector_b) {
  if (vector_b) v = with_axis(v, v.dims.size());
  if (vector_a && v.dims.size() > 1) v = with_axis(v, v.dims.size() - 1);
  return v;
}

// Input i as an operand along the output: f32 when the kernel reads it itself.
Arg along_output(LowerContext& c, int i, bool f32, bool program, bool vector_a, bool vector_b) {
  Strided view = c.view(i);
  Arg a = f32 ? input_as_f32(c, i, view) : c.in(i);
  if (program && !unit_inner(view)) {
    DType t = f32 ? DType::f32 : c.type(i).dtype;
    Arg copy = c.temp(t, view.dims);
    a.view = view;
    emit_copy(c, a, t, copy, t);
    a = copy;
    view = Strided::dense(view.dims);
  }
  view = align(view, vector_a, vector_b);
  a.view = view.dims.empty() ? with_axis(view, 0) : view;
  return a;
}

// A bias fits when it is a vector along N: one axis of N or of an unknown equal size, the others 1.
bool is_column_vector(const LowerContext& c, int bias, const Dim& n) {
  auto& dims = c.type(bias).dims;
  for (size_t a = 0; a + 1 < dims.size(); ++a)
    if (!dims[a].is(1)) return false;
  if (dims.empty() || !(dims.back() == n)) return false;
  auto strides = c.view(bias).strides;
  return c.constant_of(bias) || n.is(1) || strides.back().is(1);
}

}  // namespace

Status lower_matmul(LowerContext& c, const MatMulForm& form) {
  if (!cube_float(c.type(form.a).dtype) || !cube_float(c.type(form.b).dtype)) return ok();
  for (int i : form.tail.extras)
    if (!vector_dtype(c.type(i).dtype) && c.type(i).dtype != DType::i64) return c.fail(format("input {} has a type that programs cannot read", i));
  bool vector_a = c.type(form.a).rank() == 1, vector_b = c.type(form.b).rank() == 1;
  Strided a_view;
  Arg a = input_as_f32(c, form.a, a_view);
  if (vector_a) a_view = with_axis(a_view, 0);
  else if (form.transpose_a) a_view = transposed_last(a_view);
  a.view = a_view;
  auto widen = [&](Strided v) {
    if (vector_b) v = with_axis(v, v.dims.size());
    if (vector_a) v = with_axis(v, v.dims.size() - 1);
    return v;
  };
  Strided out_view = widen(c.out_view(0));
  RightSide b = right_side(c, form, out_view);
  Dim n = out_view.dims.back();
  FusedTail tail = form.tail;
  GE_RETURN_IF_ERROR(settle_tail(c, tail, tail.bias >= 0 && is_column_vector(c, tail.bias, n)));
  if (!tail.program && c.out_type(0).dtype != DType::f32) tail.program = identity_program();

  std::vector<Arg> in{a, b.arg, bias_vector(c, tail, n), {}}, out, copies;
  if (tail.residual >= 0) in[3] = along_output(c, tail.residual, true, false, vector_a, vector_b);
  for (int i : tail.extras) in.push_back(along_output(c, i, false, true, vector_a, vector_b));
  while (in.size() > 2 && in.back().kind == Arg::Kind::none) in.pop_back();
  // With a program the outputs must be contiguous along N: else it writes a temporary that is copied.
  std::vector<std::tuple<Arg, Arg, DType>> later;
  for (int i = 0; i < static_cast<int>(c.node.outputs.size()); ++i) {
    Strided view = widen(c.out_view(i));
    if (tail.program && !unit_inner(view)) {
      Arg temp = c.temp(c.out_type(i).dtype, view.dims);
      later.push_back({temp, c.out_as(i, view), c.out_type(i).dtype});
      out.push_back(temp);
    } else {
      out.push_back(c.out_as(i, view));
    }
  }
  c.call("cube.matmul", std::move(in), std::move(out), b.ints(tail.act), {tail.p, tail.q, tail.scale}, encode_program(tail));
  for (auto& [from, to, type] : later) emit_copy(c, from, type, to, type);
  return ok();
}

}  // namespace ge::ops
