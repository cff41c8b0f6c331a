// ge.DynamicLSTM: an LSTM whose sums from its input are there, with recurrent weights in bytes (cube.recurrent).
//   in[0] f32 [S, B, D N]; in[1] i8 [D, N / 16, 64 ceil(H / 4)]; in[2] f32 [D, N]; in[3], in[4] i32 [D, N], in[4] may
//   be absent; in[5] sequence_lens, in[6] initial_h, in[7] initial_c, in[8] P as of LSTM
//   attributes: those of LSTM; hidden_size must be given, layout must not
#include "base/text.h"
#include "ops/recurrent.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

using kernels::Cell;

Status infer(InferContext& c) {
  GE_TRY(auto form, read_recurrent_form(c.node, Cell::lstm));
  const int64_t h = ir::attr_int(c.node, "hidden_size", 0), d = form.directions;
  if (h < 1 || form.batch_first) return c.fail("hidden_size is missing or the batch comes first");
  const int64_t n = (h + 15) / 16 * 64;
  if (c.dtype(0) != DType::f32 || (c.ranked(0) && c.rank(0) != 3)) return c.fail("its sums are not f32 [S, B, D N]");
  if (c.ranked(0) && c.dims(0)[2].known() && c.dims(0)[2].value() != d * n) return c.fail("its sums are not one for each gate");
  for (int i = 1; i < 5; ++i)
    if (c.has(i) && (!c.ranked(i) || c.dims(i)[0] != Dim(d))) return c.fail(format("input {} is not one for each direction", i));
  const Dim s = c.ranked(0) ? c.dims(0)[0] : c.fresh("s"), b = c.ranked(0) ? c.dims(0)[1] : c.fresh("b");
  c.set(0, DType::f32, {s, Dim(d), b, Dim(h)});
  c.set(1, DType::f32, {Dim(d), b, Dim(h)});
  c.set(2, DType::f32, {Dim(d), b, Dim(h)});
  return ok();
}

Status lower(LowerContext& c) {
  GE_TRY(auto form, read_recurrent_form(c.node, Cell::lstm));
  const int64_t d = form.directions, n = (ir::attr_int(c.node, "hidden_size", 0) + 15) / 16 * 64;
  Strided sums = c.view(0);
  sums.dims = {sums.dims[0], sums.dims[1], Dim(d), Dim(n)};
  sums.strides = {sums.strides[0], sums.strides[1], sums.strides[2] * Dim(n), sums.strides[2]};
  std::vector<Arg> out;
  for (int i : {0, 1, 2}) out.push_back(c.wants(i) ? c.out(i) : Arg{});
  c.call("cube.recurrent", {c.in_as(0, sums), c.in(1), Arg{}, c.in(5), c.in(6), c.in(7), c.in(8), c.in(2), c.in(3), c.in(4)}, std::move(out),
         form.ints, form.floats);
  return ok();
}

std::vector<AttrDef> attrs() {
  auto a = recurrent_attrs();
  a.push_back({"input_forget", "1: the forget gate is 1 - the input gate"});
  return a;
}

const Register r(OpDef{.name = "ge.DynamicLSTM",
                       .min_inputs = 4,
                       .max_inputs = 9,
                       .min_outputs = 0,
                       .max_outputs = 3,
                       .attrs = attrs(),
                       .unit = kernels::Unit::cube,
                       .doc = "the steps of an LSTM with recurrent weights in bytes",
                       .infer = infer,
                       .lower = lower});

}  // namespace
}  // namespace ge::ops
