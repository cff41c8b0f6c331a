#include "kernels/cube/conv_epilogue.h"

#include "base/text.h"

namespace ge::kernels::cube {
namespace {

Error bad(std::string_view kernel, std::string_view what) {
  return error(code::kBadOp, format("{}: {}", kernel, what));
}

// Strides of an operand that broadcasts to y, axes aligned at the end.
Result<RowStrides> broadcast_strides(const View& v, const View& y, std::string_view kernel) {
  if (v.rank < 0 || v.rank > y.rank || (v.rank > 0 && (!v.dims || !v.strides)))
    return bad(kernel, "an operand of the vector program has too many axes");
  int64_t strides[5] = {0, 0, 0, 0, 0};
  for (int a = 0; a < v.rank; ++a) {
    int b = y.rank - v.rank + a;
    if (v.dims[a] != y.dims[b] && v.dims[a] != 1)
      return bad(kernel, "an operand of the vector program cannot be broadcast to the output");
    if (v.strides[a] > (int64_t{1} << 48) || v.strides[a] < -(int64_t{1} << 48))
      return bad(kernel, "an operand of the vector program has a stride out of range");
    strides[b] = v.dims[a] == 1 ? 0 : v.strides[a];
  }
  View full{nullptr, v.dtype, y.rank, y.dims, strides};
  RowStrides r = row_strides(full);
  if (r.c != 0 && r.c != 1)
    return bad(kernel,
               "operands of the vector program must be contiguous or broadcast along channels");
  return r;
}

Status check_act(const Call& call, const ConvShape& s, std::string_view kernel) {
  int64_t act = call.ints[2 + 4 * s.rank];
  if (act < 0 || act > static_cast<int64_t>(Act::leaky))
    return bad(kernel, format("unknown activation {}", act));
  size_t need = act == static_cast<int64_t>(Act::clip)    ? 2
                : act == static_cast<int64_t>(Act::leaky) ? 1
                                                          : 0;
  if (call.floats.size() < need) return bad(kernel, "the activation lacks its numbers");
  return ok();
}

}  // namespace

RowStrides pixel_strides(const ConvShape& s, RowStrides r) {
  if (s.out[2] == 1)
    r.s[2] = s.out[1] != 1 ? r.s[1] : s.out[0] != 1 ? r.s[0] : s.n != 1 ? r.n : r.s[2];
  return r;
}

int64_t even_run(const ConvShape& s, const RowStrides& r) {
  int64_t run = s.out[2], step = r.s[2] * s.out[2];
  const int64_t dims[3] = {s.out[1], s.out[0], s.n}, strides[3] = {r.s[1], r.s[0], r.n};
  for (int i = 0; i < 3; ++i) {
    if (dims[i] != 1 && strides[i] != step) break;
    run *= dims[i], step *= dims[i];
  }
  return run;
}

Result<ConvTail> conv_tail(const Call& call, const ConvShape& s, std::string_view kernel, bool or_bf16, DType stored) {
  GE_RETURN_IF_ERROR(check_bias_and_residual(call, s, kernel, or_bf16));
  GE_RETURN_IF_ERROR(check_act(call, s, kernel));
  ConvTail t;
  if (call.blob.empty()) return t;
  GE_TRY(vector::Program p, vector::decode(call.blob));
  GE_TRY(auto lanes, vector::check(p));
  (void)lanes;
  t.extras = call.in.size() > 4 ? call.in.size() - 4 : 0;
  if (t.extras > kMaxExtra || p.inputs != t.extras + 1 || p.outputs != 1)
    return bad(kernel, "the vector program does not fit the operands");
  for (const auto& phase : p.phases)
    for (const vector::Inst& inst : phase)
      if (vector::is_reduction(inst.op))
        return bad(kernel, "the vector program must not reduce rows");
  std::vector<vector::OperandSpec> specs = {{DType::f32, false}};
  t.even = s.out_pixels();
  for (size_t i = 0; i < t.extras; ++i) {
    GE_TRY(RowStrides r, broadcast_strides(call.in[4 + i], call.out[0], kernel));
    t.extra[i] = pixel_strides(s, r);
    specs.push_back({call.in[4 + i].dtype, t.extra[i].c == 0});
    t.even = std::min(t.even, even_run(s, t.extra[i]));
  }
  specs.push_back({stored, false});
  t.cycles = vector::cycles_per_element(p);
  GE_TRY(t.program, vector::compile(p, specs));
  return t;
}

int64_t tail_scratch(const ConvTail& t, int64_t columns) {
  return t.program ? round64(vector::scratch_bytes(*t.program, columns)) : 0;
}

Epilogue register_epilogue(const Call& call, const ConvShape& s) {
  Epilogue e;
  e.act = static_cast<Act>(call.ints[2 + 4 * s.rank]);
  if (e.act == Act::clip) {
    e.lo = static_cast<float>(call.floats[0]);
    e.hi = static_cast<float>(call.floats[1]);
  } else if (e.act == Act::leaky) {
    e.alpha = static_cast<float>(call.floats[0]);
  }
  return e;
}

void finish_tile(const ConvTail& t, const ConvShape& s, const Call& call, float* c, int64_t ldc,
                 int64_t pixel, int64_t rows, int64_t channel, int64_t columns,
                 std::byte* scratch, int64_t step, std::byte* to, int64_t to_step) {
  vector::TileOperand operands[kMaxExtra + 2];
  while (rows > 0) {
    int64_t now = step > 1 ? rows : std::min(rows, t.even - pixel % t.even);
    Pixel at = pixel_at(s, pixel);
    operands[0] = {reinterpret_cast<std::byte*>(c), ldc * 4, 1};
    for (size_t i = 0; i < t.extras; ++i) {
      const View& v = call.in[4 + i];
      const RowStrides& r = t.extra[i];
      int64_t size = size_of(v.dtype);
      operands[1 + i] = {v.data + (pixel_offset(r, at) + channel * r.c) * size, r.s[2] * step * size, r.c};
    }
    operands[1 + t.extras] = to ? vector::TileOperand{to, to_step, 1} : operands[0];
    vector::run_tile(*t.program, operands, now, columns, scratch);
    c += now * ldc, pixel += now, rows -= now;
    if (to) to += now * to_step;
  }
}

}  // namespace ge::kernels::cube
