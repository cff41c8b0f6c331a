// Kernel "cube.integer_product": sums of (a - za) * (b - zb) over bytes, exact modulo 2^32; as products of
// matrices or as convolutions; and what follows them.
//
//   in[0]  A u8 or i8: [batch..., M, K], or for a convolution [n, spatial..., C]; any strides
//   in[1]  B i8 [batch..., N/16, K/4, 16, 4], packed (integer.h), each batch dense
//   in[2]  i32 [batch..., 16 * panels]: the sums of B's columns as packed; dense each
//   in[3]  za: one element of A's type, or absent (0)
//   in[4]  zb: u8 or i8, one element or [N]; or absent
//   in[5]  f32, one element or [N], or absent (1); in[6] likewise, or absent (0): the program sees
//          sum * in[5] + in[6], the sum as f32
//   in[7+] operands of the vector program, broadcastable to out, inner stride 1 or 0
//   out    [batch..., M, N], or [n, spatial..., N]; without a program one i32 output of any strides; with one
//          as many as it stores, inner stride 1
//   ints   [rank, unsigned B, kernel[rank], strides[rank], dilations[rank], pad_begin[rank]]; rank 0: matrices
//   blob   a vector program whose input 0 is the scaled sum and whose inputs 1.. are in[7+], or empty
#include <algorithm>
#include <cstring>

#include "kernels/cube/check.h"
#include "kernels/cube/integer.h"
#include "kernels/cube/integer_rows.h"
#include "kernels/cube/row_space.h"
#include "kernels/vector/program.h"

namespace ge::kernels::cube {
namespace {

constexpr int64_t kRows = 96, kColumns = 128;
constexpr size_t kExtra = 7;
constexpr int64_t kMaxNumber = (int64_t{1} << 31) - 1;

struct Plan {
  explicit Plan(std::span<const int64_t> lead) : space(lead) {}
  RowSpace space;
  int64_t n = 0, k = 0, ld = 0;
  IntegerWindow window;
  bool in_place = false;        // A is read where it lies
  bool signed_a = false, unsigned_b = false;
  int a_operand = -1, b_operand = 0, sums_operand = 1, out_operand = 2, extra_operand = 0;
  std::shared_ptr<const vector::Compiled> program;
  int64_t groups = 1, row_splits = 1, column_splits = 1;
  // Of scratch: dense rows come first; then the tile, four vectors along the columns, sums of rows.
  int64_t at_tile = 0, at_columns = 0, at_sums = 0, at_program = 0;
  int64_t width = 0;            // of such a vector
};

Error bad(std::string why) { return error(code::kBadOp, "cube.integer_product: " + why); }
bool unit_inner(const View& v) { return v.stride(-1) == 1 || v.dim(-1) == 1; }
int64_t column_stride(const View& v, int64_t n) { return v.dim(-1) == 1 ? (n == 1 ? 1 : 0) : v.stride(-1); }

bool is_byte(DType t) { return t == DType::u8 || t == DType::i8; }

Status read_window(const Call& call, Plan& plan) {
  const int64_t rank = call.ints[0];
  const View &x = call.in[0], &y = call.out[0];
  if (call.ints.size() != static_cast<size_t>(2 + 4 * rank)) return bad("wrong number of parameters");
  if (x.rank != rank + 2 || y.rank != rank + 2) return bad("a convolution of operands of another rank");
  IntegerWindow& w = plan.window;
  w.rank = static_cast<int>(rank);
  w.channels = x.dim(-1), w.xc = x.stride(-1), w.xn = x.stride(0);
  plan.k = w.channels;
  for (int a = 0; a < rank; ++a) {
    const int to = kMaxSpatial - static_cast<int>(rank) + a;
    const int64_t* p = call.ints.data() + 2 + a;
    w.in[to] = x.dims[a + 1], w.xs[to] = x.strides[a + 1], w.out[to] = y.dims[a + 1];
    w.kernel[to] = p[0], w.stride[to] = p[rank], w.dilation[to] = p[2 * rank], w.pad[to] = p[3 * rank];
    for (int64_t v : {w.in[to], w.out[to], w.kernel[to], w.stride[to], w.dilation[to], w.pad[to]})
      if (v < 0 || v > kMaxNumber) return bad("a parameter is out of range");
    if (w.kernel[to] < 1 || w.stride[to] < 1 || w.dilation[to] < 1) return bad("a parameter is out of range");
    if (__builtin_mul_overflow(plan.k, w.kernel[to], &plan.k) || plan.k > kMaxNumber) return bad("the window is too large");
  }
  if (x.dims[0] != y.dims[0]) return bad("batch sizes differ");
  return ok();
}

Status check_operands(const Call& call, Plan& plan) {
  if (call.in.size() < 3 || call.in.size() > kExtra + vector::kMaxOperands) return bad("takes 3 or more inputs");
  if (call.out.empty() || call.out.size() > vector::kMaxOperands) return bad("takes 1 or more outputs");
  if (call.ints.size() < 2 || call.ints[0] < 0 || call.ints[0] > kMaxSpatial || !call.floats.empty()) return bad("wrong parameters");
  const View &a = call.in[0], &b = call.in[1], &sums = call.in[2], &y = call.out[0];
  if (!is_byte(a.dtype)) return bad(format("A is {}", name(a.dtype)));
  GE_RETURN_IF_ERROR(check_view(a, a.dtype, 2, kMaxRank, "A of cube.integer_product"));
  GE_RETURN_IF_ERROR(check_view(b, DType::i8, 4, kMaxRank, "B of cube.integer_product"));
  GE_RETURN_IF_ERROR(check_view(sums, DType::i32, 1, kMaxRank, "sums of cube.integer_product"));
  for (const View& o : call.out) {
    GE_RETURN_IF_ERROR(check_view(o, o.dtype, 2, kMaxRank, "output of cube.integer_product"));
    if (!std::ranges::equal(o.shape(), y.shape()) || size_of(o.dtype) == 0) return bad("outputs differ in shape");
  }
  plan.signed_a = a.dtype == DType::i8, plan.unsigned_b = call.ints[1] != 0;
  plan.n = y.dim(-1), plan.k = a.dim(-1);
  if (call.ints[0] > 0) {
    GE_RETURN_IF_ERROR(read_window(call, plan));
  } else {
    if (call.ints.size() != 2) return bad("wrong number of parameters");
    if (a.dim(-2) != y.dim(-2)) return bad(format("A has {} rows, the output {}", a.dim(-2), y.dim(-2)));
  }
  if (plan.k > kMaxNumber || plan.n > kMaxNumber) return bad("the sums are too long");
  const int64_t panels = ceil_div(plan.n, 16), q = quads(plan.k);
  if (b.dim(-1) != 4 || b.dim(-2) != 16 || b.dim(-3) != q || b.dim(-4) != panels)
    return bad(format("B is [{}, {}, {}, {}], not [{}, {}, 16, 4]", b.dim(-4), b.dim(-3), b.dim(-2), b.dim(-1), panels, q));
  const int64_t want[3] = {1, 4, 64};
  for (int i = 0; i < 3; ++i)
    if (b.dim(-1 - i) > 1 && b.stride(-1 - i) != want[i]) return bad("the panels of B are not dense");
  if (sums.dim(-1) != panels * 16 || !unit_inner(sums)) return bad("wrong sums of columns");
  return ok();
}

Status check_zeros(const Call& call, const Plan& plan) {
  for (size_t i = 5; i < std::min(call.in.size(), kExtra); ++i) {
    if (!has_input(call, i)) continue;
    const View& v = call.in[i];
    GE_RETURN_IF_ERROR(check_view(v, DType::f32, 0, kMaxRank, "scale or bias of cube.integer_product"));
    if (call.blob.empty()) return bad("scales without a program");
    if (v.count() != 1 && (v.rank < 1 || v.count() != plan.n || v.dim(-1) != plan.n)) return bad("wrong shape of scale or bias");
  }
  for (size_t i = 3; i < std::min<size_t>(call.in.size(), 5); ++i) {
    if (!has_input(call, i)) continue;
    const View& z = call.in[i];
    if (!is_byte(z.dtype) || (i == 3 && z.dtype != call.in[0].dtype)) return bad("wrong type of zero point");
    GE_RETURN_IF_ERROR(check_view(z, z.dtype, 0, kMaxRank, "zero point of cube.integer_product"));
    if (z.count() != 1 && (i == 3 || z.rank < 1 || z.count() != plan.n || z.dim(-1) != plan.n)) return bad("wrong shape of zero point");
  }
  return ok();
}

// v without its last `tail` axes but one of size 1 that is broadcast: B has no axis of rows.
struct RowsOf {
  int64_t dims[kMaxRank], strides[kMaxRank];
  View view;
  RowsOf(const View& v, int tail) : view(v) {
    const int lead = v.rank - tail;
    for (int i = 0; i < lead; ++i) dims[i] = v.dims[i], strides[i] = v.strides[i];
    dims[lead] = 1, strides[lead] = 0;
    view.rank = lead + 1, view.dims = dims, view.strides = strides;
  }
};

Status build_rows(const Call& call, Plan& plan) {
  RowsOf b(call.in[1], 4), sums(call.in[2], 1);
  const bool conv = plan.window.rank > 0;
  if (conv && (call.in[1].rank != 4 || call.in[2].rank != 1)) return bad("a convolution of several right sides");
  if (!plan.space.add(b.view, 0) || !plan.space.add(sums.view, 0)) return bad("batch axes of B do not fit the output");
  int operands = 2;
  for (const View& o : call.out) {
    if (!plan.space.add(o, 1)) return bad("too many operands");
    ++operands;
  }
  if (!conv) {
    if (!plan.space.add(call.in[0], 1)) return bad("batch axes of A do not fit the output");
    plan.a_operand = operands++;
  }
  plan.extra_operand = operands;
  for (size_t i = kExtra; i < call.in.size(); ++i) {
    const View& v = call.in[i];
    if (!has_input(call, i)) return bad(format("input {} is missing", i));
    GE_RETURN_IF_ERROR(check_view(v, v.dtype, 1, kMaxRank, format("input {} of cube.integer_product", i)));
    const int64_t s = column_stride(v, plan.n);
    if (size_of(v.dtype) == 0 || (v.dim(-1) != plan.n && v.dim(-1) != 1) || !plan.space.add(v, 1))
      return bad(format("input {} does not broadcast to the output", i));
    if (s != 0 && s != 1 && plan.n > 1) return bad(format("input {} is neither contiguous nor broadcast along N", i));
  }
  // The sums move where B does.
  plan.space.merge(plan.b_operand);
  return ok();
}

Result<double> build_program(const Call& call, Plan& plan) {
  if (call.blob.empty()) {
    if (call.out.size() != 1 || call.out[0].dtype != DType::i32) return bad("without a program the output is one i32 tensor");
    if (call.in.size() > kExtra) return bad("without a program there are no operands of one");
    return 1.0;
  }
  GE_TRY(vector::Program program, vector::decode(call.blob));
  const size_t extras = call.in.size() > kExtra ? call.in.size() - kExtra : 0;
  if (program.inputs != 1 + extras || program.outputs != call.out.size()) return bad("the program does not fit the operands");
  for (const auto& phase : program.phases)
    for (const vector::Inst& inst : phase)
      if (vector::is_reduction(inst.op)) return bad("the program reduces rows");
  std::vector<vector::OperandSpec> specs = {{}};
  for (size_t i = kExtra; i < call.in.size(); ++i) specs.push_back({call.in[i].dtype, column_stride(call.in[i], plan.n) == 0});
  for (const View& o : call.out) {
    if (!unit_inner(o)) return bad("with a program the outputs must be contiguous along N");
    specs.push_back({o.dtype, false});
  }
  GE_TRY(plan.program, vector::compile(program, specs));
  return vector::cycles_per_element(program);
}

// Chunks of 100,000 estimated cycles or more, 64 at most. Every column chunk gathers its windows again.
void cut(Plan& plan, double program_cycles) {
  const double rows = static_cast<double>(plan.space.rows()), outer = static_cast<double>(plan.space.outer());
  const double n = static_cast<double>(plan.n), k = static_cast<double>(plan.k);
  const double cycles = outer * (n * (k * std::max(rows / 96, 0.15) + rows * (2 + program_cycles)) + rows * k / 8);
  int64_t want = 1;
  while (want < 64 && static_cast<double>(want) * 100000 <= cycles) want *= 2;
  if (plan.space.outer() >= want) {
    plan.groups = want;
    return;
  }
  plan.groups = plan.space.outer();
  const int64_t each = ceil_div(want, plan.groups);
  const bool windows = plan.window.rank > 0;
  plan.row_splits = std::clamp<int64_t>(plan.space.rows() / (windows ? 24 : 48), 1, each);
  plan.column_splits = std::min(ceil_div(each, plan.row_splits), ceil_div(plan.n, windows ? 256 : 64));
}

Result<Work> prepare(const Call& call) {
  if (call.out.empty() || call.out[0].rank < 2 || call.out[0].rank > kMaxRank || !call.out[0].dims) return bad("the output must have 2 or more axes");
  for (int64_t d : call.out[0].shape())
    if (d < 0) return bad("a size is negative");
  auto plan = std::make_shared<Plan>(call.out[0].shape().first(static_cast<size_t>(call.out[0].rank - 1)));
  GE_RETURN_IF_ERROR(check_operands(call, *plan));
  GE_RETURN_IF_ERROR(check_zeros(call, *plan));
  GE_RETURN_IF_ERROR(build_rows(call, *plan));
  GE_TRY(double cycles, build_program(call, *plan));
  Work work;
  work.chunks = 0;
  if (call.out[0].count() == 0) return work;
  cut(*plan, cycles);
  const bool sums = has_input(call, 4) || plan->unsigned_b;
  plan->in_place = plan->window.rank == 0 && !plan->signed_a && !sums && plan->k % 4 == 0 && unit_inner(call.in[0]);
  // Rows a multiple of 4 KiB apart would push each other out of the cache.
  plan->ld = round64(4 * quads(plan->k));
  if (plan->ld % 4096 == 0) plan->ld += 64;
  const int64_t rows = std::min(kRows, plan->space.rows());
  plan->at_tile = plan->in_place ? 0 : rows * plan->ld;
  plan->width = ceil_div(plan->n, 16) * 16;
  plan->at_columns = plan->at_tile + rows * kColumns * 4;
  plan->at_sums = plan->at_columns + 4 * plan->width * 4;
  plan->at_program = plan->at_sums + round64(rows * 4);
  work.scratch = plan->at_program + (plan->program ? vector::scratch_bytes(*plan->program, kColumns) : 0);
  work.chunks = plan->groups * plan->row_splits * plan->column_splits;
  work.state = plan;
  return work;
}

int64_t zero_value(const View& z, int64_t i) {
  const int64_t at = z.count() == 1 ? 0 : i * z.stride(-1);
  return z.dtype == DType::u8 ? int64_t{z.as<uint8_t>()[at]} : int64_t{z.as<int8_t>()[at]};
}

struct Zeros {
  int64_t a = 0;          // of A as the rows hold it
  uint8_t pad = 0;        // the byte of A that means 0
  bool b = false;         // B's may be other than 0
};

Zeros read_zeros(const Call& call, const Plan& plan) {
  Zeros z;
  if (has_input(call, 3)) z.a = zero_value(call.in[3], 0);
  z.pad = static_cast<uint8_t>(z.a);
  if (plan.signed_a) z.a += 128;
  if (!has_input(call, 4)) {
    z.b = plan.unsigned_b;
    return z;
  }
  const int64_t count = call.in[4].count();
  for (int64_t i = 0; i < count && !z.b; ++i) z.b = zero_value(call.in[4], i) != (plan.unsigned_b ? 128 : 0);
  return z;
}

// The vectors along the columns, in scratch: what sums begin with, B's zero points as packed, scales and biases.
struct Columns {
  int32_t *start, *zero;
  float *scale, *bias;
};

Columns columns_of(const Call& call, const Plan& plan) {
  auto* at = reinterpret_cast<int32_t*>(call.scratch + plan.at_columns);
  auto* f = reinterpret_cast<float*>(at);
  return {at, at + plan.width, f + 2 * plan.width, f + 3 * plan.width};
}

void spread(const Call& call, size_t i, float otherwise, int64_t j0, int64_t j1, float* to) {
  if (!has_input(call, i)) return std::fill(to + j0, to + j1, otherwise);
  const View& v = call.in[i];
  const int64_t step = v.count() == 1 ? 0 : v.stride(-1);
  if (step == 1) return static_cast<void>(std::copy(v.as<float>() + j0, v.as<float>() + j1, to + j0));
  for (int64_t j = j0; j < j1; ++j) to[j] = v.as<float>()[j * step];
}

// Fills columns [j0, j1) for one index of the outer axes.
void fill_columns(const Call& call, const Plan& plan, const Zeros& z, int64_t outer, int64_t j0, int64_t j1) {
  const Columns c = columns_of(call, plan);
  const auto* sums = call.in[2].as<int32_t>() + plan.space.offset(plan.sums_operand, outer);
  const int64_t end = ceil_div(j1, 16) * 16;
  const auto za = static_cast<uint32_t>(z.a);
  for (int64_t j = j0; j < end; ++j) c.start[j] = static_cast<int32_t>(0u - za * static_cast<uint32_t>(sums[j]));
  if (z.b) {
    std::fill(c.zero + j0, c.zero + end, 0);
    for (int64_t j = j0; j < j1; ++j) {
      const int64_t zb = (has_input(call, 4) ? zero_value(call.in[4], j) : 0) - (plan.unsigned_b ? 128 : 0);
      c.zero[j] = static_cast<int32_t>(zb);
      c.start[j] = static_cast<int32_t>(static_cast<uint32_t>(c.start[j]) + static_cast<uint32_t>(plan.k * z.a * zb));
    }
  }
  if (!plan.program) return;
  spread(call, 5, 1, j0, j1, c.scale);
  spread(call, 6, 0, j0, j1, c.bias);
  std::fill(c.scale + j1, c.scale + end, 0.0f), std::fill(c.bias + j1, c.bias + end, 0.0f);
}

void run_program(const Call& call, const Plan& plan, int64_t outer, const int32_t* tile, int64_t ldc, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  vector::TileOperand operands[2 * vector::kMaxOperands + 1];
  size_t count = 0;
  operands[count++] = {reinterpret_cast<std::byte*>(const_cast<int32_t*>(tile)), ldc * 4, 1};
  auto add = [&](const View& v, int operand, int64_t step) {
    const int64_t size = size_of(v.dtype), stride = plan.space.row_stride(operand);
    operands[count++] = {v.data + (plan.space.offset(operand, outer) + row * stride + column * step) * size, stride * size, step};
  };
  for (size_t i = kExtra; i < call.in.size(); ++i)
    add(call.in[i], plan.extra_operand + static_cast<int>(i - kExtra), column_stride(call.in[i], plan.n) == 0 ? 0 : 1);
  for (size_t i = 0; i < call.out.size(); ++i) add(call.out[i], plan.out_operand + static_cast<int>(i), 1);
  vector::run_tile(*plan.program, operands, rows, columns, call.scratch + plan.at_program);
}

void store_sums(const Call& call, const Plan& plan, int64_t outer, const int32_t* tile, int64_t ldc, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const View& v = call.out[0];
  const int64_t step = v.stride(-1), stride = plan.space.row_stride(plan.out_operand);
  int32_t* o = v.as<int32_t>() + plan.space.offset(plan.out_operand, outer) + row * stride + column * step;
  for (int64_t i = 0; i < rows; ++i, o += stride, tile += ldc) {
    if (step == 1) std::memcpy(o, tile, static_cast<size_t>(columns) * 4);
    else
      for (int64_t j = 0; j < columns; ++j) o[j * step] = tile[j];
  }
}

// Rows [i0, i0 + rows) of one index of the outer axes, columns [j0, j1).
void run_block(const Call& call, const Plan& plan, const Zeros& z, int64_t outer, int64_t i0, int64_t rows, int64_t j0, int64_t j1) {
  const View& a = call.in[0];
  auto* dense = reinterpret_cast<uint8_t*>(call.scratch);
  auto* row_sums = reinterpret_cast<int32_t*>(call.scratch + plan.at_sums);
  IntegerBlock t;
  t.m = rows, t.quads = quads(plan.k);
  t.a = dense, t.lda = plan.ld;
  const int64_t lda = plan.a_operand >= 0 ? plan.space.row_stride(plan.a_operand) : 0;
  const uint8_t* from = a.as<uint8_t>() + (plan.a_operand >= 0 ? plan.space.offset(plan.a_operand, outer) + i0 * lda : 0);
  if (plan.in_place) {
    t.a = from, t.lda = lda;
  } else {
    if (plan.window.rank) window_rows(plan.window, from, outer * plan.space.rows() + i0, rows, z.pad, dense, plan.ld);
    else matrix_rows(from, lda, a.stride(-1), rows, plan.k, dense, plan.ld);
    if (plan.signed_a || z.b) finish_integer_rows(dense, rows, plan.k, plan.ld, plan.signed_a, z.b ? row_sums : nullptr);
  }
  const View& b = call.in[1];
  const Columns columns = columns_of(call, plan);
  t.b_stride = t.quads * 64;
  t.row_sum = z.b ? row_sums : nullptr;
  t.to_float = plan.program != nullptr;
  t.c = reinterpret_cast<int32_t*>(call.scratch + plan.at_tile);
  for (int64_t j = j0; j < j1; j += kColumns) {
    t.n = std::min(kColumns, j1 - j);
    t.ldc = ceil_div(t.n, 16) * 16;
    t.b = b.as<int8_t>() + plan.space.offset(plan.b_operand, outer) + j / 16 * t.b_stride;
    t.start = columns.start + j, t.column_zero = columns.zero + j;
    t.scale = columns.scale + j, t.bias = columns.bias + j;
    multiply_integer(t);
    if (plan.program) run_program(call, plan, outer, t.c, t.ldc, i0, rows, j, t.n);
    else store_sums(call, plan, outer, t.c, t.ldc, i0, rows, j, t.n);
  }
}

Status run(const Call& call, int64_t chunk) {
  const Plan& plan = *static_cast<const Plan*>(call.state);
  const Zeros z = read_zeros(call, plan);
  const int64_t column = chunk % plan.column_splits, split = chunk / plan.column_splits % plan.row_splits;
  const int64_t group = chunk / plan.column_splits / plan.row_splits;
  const int64_t units = ceil_div(plan.n, 64);
  const int64_t j0 = units * column / plan.column_splits * 64, j1 = std::min(plan.n, units * (column + 1) / plan.column_splits * 64);
  const int64_t i0 = plan.space.rows() * split / plan.row_splits, i1 = plan.space.rows() * (split + 1) / plan.row_splits;
  const int64_t blocks = ceil_div(i1 - i0, kRows), last = plan.space.outer() * (group + 1) / plan.groups;
  // Blocks of nearly equal height, in whole tiles of 6 and 8 rows.
  const int64_t height = std::min(kRows, ceil_div(ceil_div(i1 - i0, std::max<int64_t>(blocks, 1)), 24) * 24);
  if (j0 >= j1) return ok();
  for (int64_t outer = plan.space.outer() * group / plan.groups; outer < last; ++outer) {
    fill_columns(call, plan, z, outer, j0, j1);
    for (int64_t i = i0; i < i1; i += height) run_block(call, plan, z, outer, i, std::min(height, i1 - i), j0, j1);
  }
  return ok();
}

const Register r(Kernel{.name = "cube.integer_product", .unit = Unit::cube, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::cube
