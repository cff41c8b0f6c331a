// Kernel "cube.matmul": out = epilogue(A x B) with B in packed panels or as it lies.
//
//   in[0]  A f32 [batch..., M, K], any strides (inner stride 1 is read in place)
//   in[1]  B f32 [batch..., ceil(N / 16), K, 16], packed panels (pack.h): each panel dense, other strides any;
//          or, if `plain`, B itself, f32 [batch..., K, N], any strides: read in place by up to kFewRows rows, else
//          packed by each chunk for itself, which pays for up to some hundred rows; or bf16
//          [batch..., ceil(N / 16), ceil(K / 2), 32], pair panels (bf16.h): A is rounded to bf16 as well
//   in[2]  bias f32 [N], dense, or absent
//   in[3]  residual f32, broadcastable to out, any strides, or absent; may be out's own memory
//   in[4+] further operands of the vector program, broadcastable to out, inner stride 1 or 0
//   out    [batch..., M, N]; without a program one f32 output with any strides; with a program as many as
//          it stores, of the types that it can store, inner stride 1
//   ints   [act, plain]: Act of microkernel.h (0 none, 1 relu, 2 clip, 3 leaky); plain 0 or 1, absent: 0
//   floats [p, q, scale]: clip to [p, q], or leaky with alpha p; scale multiplies the product
//   blob   an encoded vector program (kernels/vector/program.h) or empty; its input 0 is
//          act(A x B * scale + bias + residual), inputs 1+ are in[4+]; no row reductions
//
// Batch axes of all operands broadcast to those of the output by size 1 or absence. Batches fold into rows
// where strides allow it. in_place: input 3.
#include <algorithm>
#include <cstring>

#include "kernels/cube/bf16.h"
#include "kernels/cube/check.h"
#include "kernels/cube/microkernel.h"
#include "kernels/cube/pack.h"
#include "kernels/cube/row_space.h"
#include "kernels/vector/program.h"

namespace ge::kernels::cube {
namespace {

constexpr size_t kExtra = 4;             // first input that only the program reads
constexpr int64_t kRepackRows = 256;     // fewer rows than this never pack a part of B of their own
constexpr int64_t kFewRowsByColumns = 12;  // where the columns of B are contiguous, packing pays beyond this
constexpr int64_t kRunPanels = 32;        // of B's contiguous rows that a chunk reads in place
constexpr int64_t kStripBytes = 1 << 18;  // of B that a chunk packs at a time
constexpr int64_t kRoundedRows = 32, kRoundedPanels = 8;  // the least of A's rows, of B's panels, in a chunk that rounds A

// Everything about a task of these sizes that does not depend on addresses.
struct Plan {
  explicit Plan(std::span<const int64_t> lead) : space(lead) {}

  RowSpace space;  // operands: A, B, outputs, then residual and extras when present
  int64_t n = 0, k = 0;
  int b_operand = 1, out_operand = 2, residual_operand = -1, extra_operand = 0;
  bool plain_b = false;         // B is not in panels:
  BForm b_form = BForm::panels; // it is read in place, or if this still says panels
  int64_t strip = 0;            // a chunk packs so many columns at a time
  int64_t slice = kSlice;       // columns at a time when sums go through scratch
  bool bf16 = false;            // B is pair panels
  bool copy_a = false;          // A's inner stride is not 1, or A has to be rounded
  bool through_scratch = false; // the sums are not what out[0] holds, or not contiguous
  bool slow_residual = false;   // the residual's inner stride is not 1
  Act act = Act::none;
  float p = 0, q = 0, scale = 1;
  std::shared_ptr<const vector::Compiled> program;
  int64_t groups = 0, row_splits = 1, column_splits = 1, column_unit = 1;  // chunks = their product
  int64_t row_unit = 6;
  int64_t scratch_b = 0, scratch_sums = 0, scratch_program = 0;  // offsets of the parts of scratch; A's copy is first
  int64_t scratch = 0;

  bool packs() const { return plain_b && b_form == BForm::panels; }
};


// Cuts the task: a static estimate of its cycles, chunks of 30,000 or more, 64 at most or a little above.
void cut(Plan& plan, double program_cycles) {
  const int64_t m = plan.space.rows(), outer = plan.space.outer(), columns = panels(plan.n);
  const double rows = static_cast<double>(m), width = static_cast<double>(plan.n), k = static_cast<double>(plan.k);
  // With few rows the time is that of reading B.
  const double cycles = static_cast<double>(outer) * width * (k * std::max(rows / 32, 0.5) + rows * (1 + program_cycles));
  int64_t want = 1;
  while (want < 64 && static_cast<double>(want) * 60000 <= cycles) want *= 2;
  plan.row_unit = columns >= 4 ? 6 : 8;
  plan.groups = outer;
  if (outer >= want) {
    plan.groups = want;
    return;
  }
  const int64_t each = ceil_div(want, outer);
  if (plan.packs()) {
    const int64_t most = std::max<int64_t>(1, std::min(each, columns / 4));
    plan.column_unit = 4;
    plan.column_splits = most > 1 ? most / 2 * 2 : 1;
    plan.row_splits = std::max<int64_t>(1, std::min(ceil_div(each, plan.column_splits), m / kRepackRows));
    return;
  }
  if (plan.b_form == BForm::rows) {
    // Long runs of B's rows: memory and its prefetchers want them.
    const int64_t wide = ceil_div(columns, kRunPanels);
    plan.column_unit = wide > 2 ? kRunPanels : std::max<int64_t>(1, ceil_div(columns, 2));
    plan.column_splits = std::min(each, ceil_div(columns, plan.column_unit));
    if (plan.column_splits > 2) plan.column_splits = plan.column_splits / 2 * 2;
    return;
  }
  if (plan.bf16 && m >= 8) {
    // Each chunk rounds its rows of A for itself: wide pieces of few rows.
    plan.row_splits = std::min(each, std::max<int64_t>(1, m / kRoundedRows));
    if (plan.row_splits > 2) plan.row_splits = plan.row_splits / 2 * 2;
    plan.column_unit = 4;
    plan.column_splits = std::max<int64_t>(1, std::min(ceil_div(each, plan.row_splits), columns / kRoundedPanels));
    return;
  }
  int64_t splits = std::min(each, std::max<int64_t>(1, m / kBlockRows));
  plan.row_splits = splits > 1 ? splits / 2 * 2 : 1;
  const int64_t left = ceil_div(each, plan.row_splits), fours = ceil_div(columns, 4);
  // Whole tiles of four panels unless that makes the chunks uneven or too few.
  const bool whole = fours % left == 0 || fours >= 4 * left;
  plan.column_unit = whole ? 4 : m < 8 ? 1 : 2;
  plan.column_splits = std::min(left, ceil_div(columns, plan.column_unit));
}

Status bad(std::string why) { return error(code::kBadOp, "cube.matmul: " + why); }

bool unit_inner(const View& v) { return v.stride(-1) == 1 || v.dim(-1) == 1; }

Status read_parameters(const Call& call, Plan& plan) {
  if (call.in.size() < 2 || call.in.size() > kExtra + vector::kMaxOperands) return bad("takes 2 or more inputs");
  if (call.out.empty() || call.out.size() > vector::kMaxOperands) return bad("takes 1 or more outputs");
  if (call.ints.empty() || call.ints.size() > 2 || call.floats.size() != 3) return bad("takes 1 or 2 integers and 3 floats");
  if (call.ints.size() == 2 && (call.ints[1] < 0 || call.ints[1] > 1)) return bad("plain is neither 0 nor 1");
  plan.plain_b = call.ints.size() == 2 && call.ints[1] == 1;
  if (call.ints[0] < 0 || call.ints[0] > 3) return bad(format("no activation {}", call.ints[0]));
  plan.act = static_cast<Act>(call.ints[0]);
  plan.p = static_cast<float>(call.floats[0]);
  plan.q = static_cast<float>(call.floats[1]);
  plan.scale = static_cast<float>(call.floats[2]);
  return ok();
}

Status check_panels(const View& b, const Plan& plan) {
  const int64_t width = plan.bf16 ? 32 : 16, rows = plan.bf16 ? pair_rows(plan.k, plan.k) : plan.k;
  if (b.dim(-1) != width || b.dim(-2) != rows || b.dim(-3) != panels(plan.n))
    return bad(format("B is [{}, {}, {}], not [{}, {}, {}]", b.dim(-3), b.dim(-2), b.dim(-1), panels(plan.n), rows, width));
  if (b.stride(-1) != 1 || (b.stride(-2) != width && rows > 1)) return bad("the panels of B are not dense");
  return ok();
}

// Types, ranks and inner sizes of A, B, bias; N and K.
Status check_operands(const Call& call, Plan& plan) {
  const View &a = call.in[0], &b = call.in[1], &c = call.out[0];
  GE_RETURN_IF_ERROR(check_view(a, DType::f32, 2, kMaxRank, "A of cube.matmul"));
  plan.bf16 = b.dtype == DType::bf16 && !plan.plain_b;
  GE_RETURN_IF_ERROR(check_view(b, plan.bf16 ? DType::bf16 : DType::f32, plan.plain_b ? 2 : 3, kMaxRank, "B of cube.matmul"));
  for (const View& o : call.out) {
    GE_RETURN_IF_ERROR(check_view(o, o.dtype, 2, kMaxRank, "output of cube.matmul"));
    if (!std::ranges::equal(o.shape(), c.shape())) return bad("outputs differ in shape");
    if (size_of(o.dtype) == 0) return bad("an output has no plain type");
  }
  plan.n = c.dim(-1), plan.k = a.dim(-1);
  if (a.dim(-2) != c.dim(-2)) return bad(format("A has {} rows, the output {}", a.dim(-2), c.dim(-2)));
  if (!plan.plain_b) GE_RETURN_IF_ERROR(check_panels(b, plan));
  if (plan.plain_b && (b.dim(-2) != plan.k || b.dim(-1) != plan.n))
    return bad(format("B is [{}, {}], not [{}, {}]", b.dim(-2), b.dim(-1), plan.k, plan.n));
  plan.copy_a = plan.bf16 || !unit_inner(a);
  if (has_input(call, 2)) {
    const View& bias = call.in[2];
    GE_RETURN_IF_ERROR(check_view(bias, DType::f32, 1, 1, "bias of cube.matmul"));
    if (bias.dim(0) != plan.n || !bias.dense()) return bad(format("bias must be dense [{}]", plan.n));
  }
  return ok();
}

// True if v broadcasts to the last axis of n columns.
bool fits_columns(const View& v, int64_t n) { return v.dim(-1) == n || v.dim(-1) == 1; }
int64_t column_stride(const View& v, int64_t n) { return v.dim(-1) == 1 ? (n == 1 ? 1 : 0) : v.stride(-1); }

Status build_rows(const Call& call, Plan& plan) {
  const View& b = call.in[1];
  // B has no axis of rows: insert one that is broadcast.
  int64_t dims[kMaxRank], strides[kMaxRank];
  const int lead = b.rank - (plan.plain_b ? 2 : 3);
  for (int i = 0; i < lead; ++i) dims[i] = b.dims[i], strides[i] = b.strides[i];
  dims[lead] = 1, strides[lead] = 0;
  View rows_of_b = b;
  rows_of_b.rank = lead + 1, rows_of_b.dims = dims, rows_of_b.strides = strides;
  if (!plan.space.add(call.in[0], 1)) return bad("batch axes of A do not fit the output");
  if (!plan.space.add(rows_of_b, 0)) return bad("batch axes of B do not fit the output");
  int operands = 2;
  for (const View& o : call.out) {
    if (!plan.space.add(o, 1)) return bad("too many operands");
    ++operands;
  }
  if (has_input(call, 3)) {
    const View& r = call.in[3];
    GE_RETURN_IF_ERROR(check_view(r, DType::f32, 1, kMaxRank, "residual of cube.matmul"));
    if (!fits_columns(r, plan.n) || !plan.space.add(r, 1)) return bad("the residual does not broadcast to the output");
    plan.residual_operand = operands++;
    plan.slow_residual = column_stride(r, plan.n) != 1 && plan.n > 1;
  }
  plan.extra_operand = operands;
  for (size_t i = kExtra; i < call.in.size(); ++i) {
    const View& v = call.in[i];
    GE_RETURN_IF_ERROR(check_view(v, v.dtype, 1, kMaxRank, format("input {} of cube.matmul", i)));
    const int64_t s = column_stride(v, plan.n);
    if (size_of(v.dtype) == 0 || !fits_columns(v, plan.n) || !plan.space.add(v, 1))
      return bad(format("input {} does not broadcast to the output", i));
    if (s != 0 && s != 1 && plan.n > 1) return bad(format("input {} is neither contiguous nor broadcast along N", i));
  }
  plan.space.merge(plan.b_operand);
  return ok();
}

// How B is read. Its parts of scratch come after A's copy.
void choose_form(const View& b, Plan& plan) {
  if (!plan.plain_b) return;
  if (plan.space.rows() <= kFewRows) {
    if (plan.n == 1 ? b.stride(-2) != 1 : b.stride(-1) == 1) plan.b_form = BForm::rows;
    else if ((b.stride(-2) == 1 || plan.k <= 1) && plan.space.rows() <= kFewRowsByColumns) plan.b_form = BForm::columns;
    if (plan.b_form != BForm::panels) {
      plan.slice = kRunPanels * 16;
      return;
    }
  }
  const int64_t fours = std::max<int64_t>(1, kStripBytes / (std::max<int64_t>(1, plan.k) * 256));
  plan.strip = std::min(fours, ceil_div(panels(plan.n), 4)) * 64;
}

void lay_out_scratch(Plan& plan) {
  const int64_t rows = std::min(kBlockRows, plan.space.rows());
  int64_t at = 0;
  auto place = [&](int64_t bytes) {
    const int64_t from = at;
    at += round64(bytes);
    return from;
  };
  if (plan.bf16) place(rows * bf16_row(plan.k) * 2 + plan.k * 4);
  else if (plan.copy_a) place(rows * plan.k * 4);
  plan.scratch_b = place(plan.packs() ? plan.strip * plan.k * 4 : 0);
  plan.scratch_sums = place(plan.through_scratch ? rows * std::min(plan.slice, panels(plan.n) * 16) * 4 : 0);
  plan.scratch_program = at;
  plan.scratch = at + (plan.program ? vector::scratch_bytes(*plan.program, kSlice) : 0);
}

// The vector program; gives its estimated cycles for each element.
Result<double> build_program(const Call& call, Plan& plan) {
  const View& c = call.out[0];
  plan.through_scratch = !unit_inner(c);
  if (call.blob.empty()) {
    if (call.out.size() != 1 || c.dtype != DType::f32) return bad("without a program the output is one f32 tensor");
    if (call.in.size() > kExtra) return bad("without a program there are at most 4 inputs");
    return 0.0;
  }
  GE_TRY(vector::Program program, vector::decode(call.blob));
  const size_t extras = call.in.size() > kExtra ? call.in.size() - kExtra : 0;
  if (program.inputs != 1 + extras || program.outputs != call.out.size())
    return bad(format("the program has {} inputs and {} outputs, not {} and {}", program.inputs, program.outputs,
                      1 + extras, call.out.size()));
  for (const auto& phase : program.phases)
    for (const vector::Inst& inst : phase)
      if (vector::is_reduction(inst.op)) return bad("the program reduces rows");
  std::vector<vector::OperandSpec> specs = {{}};
  for (size_t i = kExtra; i < call.in.size(); ++i)
    specs.push_back({call.in[i].dtype, column_stride(call.in[i], plan.n) == 0});
  for (const View& o : call.out) {
    if (!unit_inner(o)) return bad("with a program the outputs must be contiguous along N");
    specs.push_back({o.dtype, false});
  }
  // Rows of a wide output lie some power of two apart and push each other out of the caches: the program reads a
  // dense copy of the sums.
  plan.through_scratch = call.out.size() != 1 || c.dtype != DType::f32 || (plan.n > kSlice && plan.b_form == BForm::panels);
  GE_TRY(plan.program, vector::compile(program, specs));
  return vector::cycles_per_element(program);
}

Result<Work> prepare(const Call& call) {
  if (call.out.empty() || call.out[0].rank < 2 || call.out[0].rank > kMaxRank || !call.out[0].dims)
    return bad("the output must have 2 or more axes");
  auto plan = std::make_shared<Plan>(call.out[0].shape().first(static_cast<size_t>(call.out[0].rank - 1)));
  GE_RETURN_IF_ERROR(read_parameters(call, *plan));
  GE_RETURN_IF_ERROR(check_operands(call, *plan));
  GE_RETURN_IF_ERROR(build_rows(call, *plan));
  choose_form(call.in[1], *plan);
  GE_TRY(double cycles, build_program(call, *plan));
  Work work;
  work.chunks = 0;
  if (call.out[0].count() == 0) return work;
  cut(*plan, cycles);
  lay_out_scratch(*plan);
  work.chunks = plan->groups * plan->row_splits * plan->column_splits;
  work.scratch = plan->scratch;
  work.state = plan;
  return work;
}

// One call of the microkernel, as finish() needs to know it.
struct Piece {
  const Call* call;
  const Plan* plan;
  int64_t outer, row, column;  // of the Block's first element
};

float activate(Act act, float x, float p, float q) {
  switch (act) {
    case Act::none: return x;
    case Act::relu: return x < 0 ? 0 : x;
    case Act::clip: x = x < p ? p : x; return x > q ? q : x;
    case Act::leaky: return x < 0 ? p * x : x;
  }
  return x;
}

void add_residual(const Piece& piece, float* c, int64_t ldc, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const Plan& plan = *piece.plan;
  const View& v = piece.call->in[3];
  const int64_t step = column_stride(v, plan.n);
  const float* r = v.as<float>() + plan.space.offset(plan.residual_operand, piece.outer) +
                   row * plan.space.row_stride(plan.residual_operand) + column * step;
  for (int64_t i = 0; i < rows; ++i, c += ldc, r += plan.space.row_stride(plan.residual_operand))
    for (int64_t j = 0; j < columns; ++j) c[j] = activate(plan.act, c[j] + r[j * step], plan.p, plan.q);
}

void run_program(const Piece& piece, float* c, int64_t ldc, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const Plan& plan = *piece.plan;
  const Call& call = *piece.call;
  vector::TileOperand operands[2 * vector::kMaxOperands + 1];
  size_t count = 0;
  operands[count++] = {reinterpret_cast<std::byte*>(c), ldc * 4, 1};
  auto add = [&](const View& v, int operand, int64_t step) {
    const int64_t size = size_of(v.dtype), stride = plan.space.row_stride(operand);
    const int64_t offset = plan.space.offset(operand, piece.outer) + row * stride + column * step;
    operands[count++] = {v.data + offset * size, stride * size, step};
  };
  for (size_t i = kExtra; i < call.in.size(); ++i)
    add(call.in[i], plan.extra_operand + static_cast<int>(i - kExtra), column_stride(call.in[i], plan.n) == 0 ? 0 : 1);
  for (size_t i = 0; i < call.out.size(); ++i) add(call.out[i], plan.out_operand + static_cast<int>(i), 1);
  vector::run_tile(*plan.program, operands, rows, columns, call.scratch + plan.scratch_program);
}

void finish(const void* context, float* c, int64_t ldc, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const Piece& piece = *static_cast<const Piece*>(context);
  const Plan& plan = *piece.plan;
  row += piece.row, column += piece.column;
  if (plan.slow_residual) add_residual(piece, c, ldc, row, rows, column, columns);
  if (plan.program) return run_program(piece, c, ldc, row, rows, column, columns);
  if (!plan.through_scratch) return;
  const View& v = piece.call->out[0];
  const int64_t step = v.stride(-1), stride = plan.space.row_stride(plan.out_operand);
  float* o = v.as<float>() + plan.space.offset(plan.out_operand, piece.outer) + row * stride + column * step;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) o[i * stride + j * step] = c[i * ldc + j];
}

// The lines that the program will write: fetched while the sums are made, not when all are written at once.
void prefetch_outputs(const Call& call, const Plan& plan, int64_t outer, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  for (size_t o = 0; o < call.out.size(); ++o) {
    const View& v = call.out[o];
    const int64_t size = size_of(v.dtype), stride = plan.space.row_stride(plan.out_operand + static_cast<int>(o)) * size;
    const std::byte* row = v.data + plan.space.offset(plan.out_operand + static_cast<int>(o), outer) * size + i0 * stride + j0 * size;
    for (int64_t i = i0; i < i1; ++i, row += stride)
      for (int64_t at = 0; at < (j1 - j0) * size; at += 64) __builtin_prefetch(row + at, 1);
  }
}

// Where B's columns from some multiple of 16 on are.
struct Columns {
  const std::byte* at = nullptr;
  int64_t stride = 0;  // Block::b_stride
  int64_t step = 0;    // bytes from a column to the 16th after it
};

const std::byte* as_bytes(const float* p) { return reinterpret_cast<const std::byte*>(p); }

// Columns [j0, j1) of B, packed if they must be.
Columns locate_b(const Call& call, const Plan& plan, int64_t outer, int64_t j0, int64_t j1) {
  const View& b = call.in[1];
  const int64_t offset = plan.space.offset(plan.b_operand, outer), size = size_of(b.dtype);
  if (!plan.plain_b) return {b.data + (offset + j0 / 16 * b.stride(-3)) * size, b.stride(-3), b.stride(-3) * size};
  const float* base = b.as<float>() + offset;
  const int64_t ks = b.stride(-2), ns = b.stride(-1);
  if (plan.b_form == BForm::rows) return {as_bytes(base + j0 * ns), ks, 16 * size};
  if (plan.b_form == BForm::columns) return {as_bytes(base + j0 * ns), ns, 16 * ns * size};
  auto* out = reinterpret_cast<float*>(call.scratch + plan.scratch_b);
  pack_panels(base + j0 * ns, plan.k, j1 - j0, ks, ns, 0, panels(j1 - j0), out);
  return {as_bytes(out), plan.k * 16, plan.k * 16 * size};
}

// Rows [i0, i1) and columns [j0, j1), j0 a multiple of 16, of one index of the outer axes; A at a, B at b.
void multiply_piece(const Call& call, const Plan& plan, int64_t outer, const float* a, int64_t lda, const std::byte* b,
                    int64_t b_stride, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  Piece piece{&call, &plan, outer, i0, j0};
  Block t;
  t.m = i1 - i0, t.n = j1 - j0;
  t.a = a, t.lda = lda, t.segment_k = plan.k;
  t.b_form = plan.b_form, t.b = reinterpret_cast<const float*>(b), t.b_stride = b_stride;
  if (plan.through_scratch) {
    t.c = reinterpret_cast<float*>(call.scratch + plan.scratch_sums);
    t.ldc = panels(t.n) * 16;
    if (plan.program) prefetch_outputs(call, plan, outer, i0, i1, j0, j1);
  } else {
    t.ldc = plan.space.row_stride(plan.out_operand);
    t.c = call.out[0].as<float>() + plan.space.offset(plan.out_operand, outer) + i0 * t.ldc + j0;
  }
  Epilogue& e = t.epilogue;
  e.scale = plan.scale;
  if (has_input(call, 2)) e.bias = call.in[2].as<float>() + j0;
  if (plan.residual_operand >= 0 && !plan.slow_residual) {
    e.ld_residual = plan.space.row_stride(plan.residual_operand);
    e.residual = call.in[3].as<float>() + plan.space.offset(plan.residual_operand, outer) + i0 * e.ld_residual + j0;
  }
  if (!plan.slow_residual) e.act = plan.act;
  e.lo = e.alpha = plan.p, e.hi = plan.q;
  if (plan.slow_residual || plan.program || plan.through_scratch) e.finish = finish, e.context = &piece;
  if (!plan.bf16) return multiply(t);
  t.segment_k = even(plan.k);
  multiply(Bf16Block{t, reinterpret_cast<const uint16_t*>(a), reinterpret_cast<const uint16_t*>(b)});
}

// Dense rows from A of any strides; 16 columns at a time, so that a transposed A is read by whole cache lines.
void copy_rows(const float* a, int64_t rows, int64_t k, int64_t lda, int64_t step, float* out) {
  for (int64_t k0 = 0; k0 < k; k0 += 16) {
    const int64_t k1 = std::min(k, k0 + 16);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t i = k0; i < k1; ++i) out[r * k + i] = a[r * lda + i * step];
  }
}

// Rows of A rounded to bf16, an odd K followed by a zero; behind them is room for one row of floats.
void round_rows(const float* a, int64_t rows, int64_t k, int64_t lda, int64_t step, int64_t most, uint16_t* out) {
  auto* row = reinterpret_cast<float*>(out + most * bf16_row(k));
  for (int64_t r = 0; r < rows; ++r, out += bf16_row(k)) {
    const float* from = a + r * lda;
    if (step != 1) {
      for (int64_t i = 0; i < k; ++i) row[i] = from[i * step];
      from = row;
    }
    round_to_bf16(from, k, out);
    if (k & 1) out[k] = 0;
  }
}

// Columns [j0, j1) of rows [i0, i1).
void run_strip(const Call& call, const Plan& plan, int64_t outer, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  const View& a = call.in[0];
  const int64_t lda = plan.space.row_stride(0);
  const int64_t row_step = plan.copy_a || plan.through_scratch ? kBlockRows : i1 - i0;
  const int64_t column_step = plan.through_scratch ? plan.slice : j1 - j0;
  const Columns b = locate_b(call, plan, outer, j0, j1);
  for (int64_t i = i0; i < i1; i += row_step) {
    const int64_t end = std::min(i1, i + row_step);
    const float* from = a.as<float>() + plan.space.offset(0, outer) + i * lda;
    int64_t ld = lda;
    if (plan.bf16) {
      auto* to = reinterpret_cast<uint16_t*>(call.scratch);
      round_rows(from, end - i, plan.k, lda, plan.k > 1 ? a.stride(-1) : 1, std::min(kBlockRows, plan.space.rows()), to);
      from = reinterpret_cast<const float*>(to), ld = bf16_row(plan.k);
    } else if (plan.copy_a) {
      copy_rows(from, end - i, plan.k, lda, a.stride(-1), reinterpret_cast<float*>(call.scratch));
      from = reinterpret_cast<const float*>(call.scratch), ld = plan.k;
    }
    for (int64_t j = j0; j < j1; j += column_step)
      multiply_piece(call, plan, outer, from, ld, b.at + (j - j0) / 16 * b.step, b.stride, i, end, j,
                     std::min(j1, j + column_step));
  }
}

Status run(const Call& call, int64_t chunk) {
  const Plan& plan = *static_cast<const Plan*>(call.state);
  const int64_t columns = chunk % plan.column_splits, rows = chunk / plan.column_splits % plan.row_splits;
  const int64_t group = chunk / plan.column_splits / plan.row_splits;
  const int64_t row_units = ceil_div(plan.space.rows(), plan.row_unit);
  const int64_t i0 = row_units * rows / plan.row_splits * plan.row_unit;
  const int64_t i1 = std::min(plan.space.rows(), row_units * (rows + 1) / plan.row_splits * plan.row_unit);
  const int64_t units = ceil_div(panels(plan.n), plan.column_unit), width = plan.column_unit * 16;
  const int64_t j0 = units * columns / plan.column_splits * width;
  const int64_t j1 = std::min(plan.n, units * (columns + 1) / plan.column_splits * width);
  const int64_t strip = plan.strip ? plan.strip : j1 - j0;
  const int64_t last = plan.space.outer() * (group + 1) / plan.groups;
  for (int64_t outer = plan.space.outer() * group / plan.groups; outer < last; ++outer)
    for (int64_t j = j0; j < j1; j += strip) run_strip(call, plan, outer, i0, i1, j, std::min(j1, j + strip));
  return ok();
}

double operations(const Call& call) {
  return 2.0 * static_cast<double>(call.out[0].count()) * static_cast<double>(call.in[0].dim(-1));
}

const Register kMatmul(Kernel{.name = "cube.matmul", .unit = Unit::cube, .prepare = prepare, .run = run, .in_place = 1u << 3, .operations = operations});

}  // namespace
}  // namespace ge::kernels::cube
