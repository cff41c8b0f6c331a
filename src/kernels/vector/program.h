// The vector program: a connected region of elementwise operators and row reductions, as straight-line
// code over one row. This is the neutral form that .om files hold: no instruction set, no addresses, no
// machine registers. compile() turns it into threaded code for the CPU at hand; run_tile() runs that.
//
// A program sees its operands as tiles [rows, cols]. Every instruction means "for each column of the
// row". Registers are virtual, each assigned once, and hold 32-bit lanes: f32, or i32 (a bool is an i32
// that is 0 or 1). Nothing converts by itself between the two: cast does. Float arithmetic is IEEE
// binary32, round to nearest even, never contracted or reassociated, except in row reductions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace ge::kernels::vector {

enum class Lane : uint8_t { f32 = 0, i32 = 1 };

// The values stand in .om files: append only. "f" is an f32 register, "i" an i32 one, "b" an i32 that
// is read as "not zero" and written as 0 or 1.
enum class Op : uint8_t {
  none = 0,
  // Sources and sinks; imm is the operand's number. Inputs and outputs are numbered apart, from 0.
  load = 1,       // f <- f32 f16 bf16 i32 i64 u8 i8 u16 i16 bool storage, as static_cast<float>
  load_i32 = 2,   // i <- i32 u8 i8 u16 i16 storage; bool storage gives 0 or 1
  store = 3,      // f -> f32 f16 bf16 storage (to nearest even); i -> i32, i64 (sign-extended), u8 i8
                  // u16 i16 (the low bits: clip first), bool (not zero -> 1)
  constant = 4,      // f <- bits of imm
  constant_i32 = 5,  // i <- imm
  // f <- f
  neg = 10, abs, sqrt, rsqrt, reciprocal, exp, log, erf, tanh, sigmoid, sin, cos, floor, ceil, round,
  trunc, sign, relu, softplus, silu, gelu, gelu_tanh, mish, expm1, square,
  // f <- f f
  add = 50, sub, mul, div, min, max, pow, fmod, leaky /* a<0 ? a*b : a */, elu /* a>0 ? a : b*(e^a-1) */,
  // f <- f f f
  fma = 70 /* a*b+c; one rounding where the CPU has FMA, else two */, clip /* min(max(a,b),c) */,
  // b <- f f, IEEE: any comparison with NaN is 0, ne is 1
  lt = 80, le, eq, ne, gt, ge,
  // b <- f
  is_nan = 90, is_inf, is_pos_inf, is_neg_inf,
  // i <- f: toward zero; NaN and values outside of i32 give INT32_MIN. f <- i: to nearest even.
  to_i32 = 100, to_f32,
  // i <- i (wrapping)
  ineg = 110, iabs, isign, inot /* all bits */, lnot /* b <- b */, to_bool /* b <- b */,
  // i <- i i (wrapping). idiv truncates, imod has the divisor's sign, irem the dividend's; a division
  // by zero gives 0. Shifts by 32 or more give 0 (ishr is logical).
  iadd = 130, isub, imul, idiv, imod, irem, imin, imax, iand, ior, ixor, ishl, ishr,
  // b <- i i
  ilt = 150, ile, ieq, ine, igt, ige,
  // x <- b x x, for x either f or i: a != 0 ? b : c
  select = 170,
  // Row reductions: one value for each row, to be used in later phases only. f <- f, then i <- i.
  row_sum = 180, row_mean, row_max, row_min, row_prod, row_isum = 190, row_imax, row_imin,
};
// min, max, row_max and row_min give NaN when an operand is NaN; relu and clip when a is. Of two zeros min
// and max give the second, relu(-0) is -0.
// Sums accumulate in f32 in 128 lanes (column modulo 128), folded every 8,192 columns, and end in a
// fixed tree: the order depends neither on the instruction set nor on threads.

std::string_view name(Op op);  // as in the text form; "" for a value that is not an Op
int arity(Op op);              // registers read
bool is_reduction(Op op);

using Reg = uint16_t;
inline constexpr Reg kNoReg = 0xffff;

struct Inst {
  Op op = Op::none;
  Reg dst = kNoReg, a = kNoReg, b = kNoReg, c = kNoReg;
  uint32_t imm = 0;
  bool operator==(const Inst&) const = default;
};

// Phases run one after another over a whole row before the next row begins. A register of an earlier
// phase may be used in a later one (it then lives in a row temporary in L1, or is computed again).
struct Program {
  uint16_t inputs = 0, outputs = 0;
  std::vector<std::vector<Inst>> phases;
  bool operator==(const Program&) const = default;
};

// Of a program in a file. compile() takes more operands (short_rows.h).
inline constexpr int kMaxInsts = 1024, kMaxPhases = 16, kMaxOperands = 64, kMaxRegs = 2048;
inline constexpr int kUnrolledOperands = 256;

// What every program satisfies that compile(), print() or encode() accepts: known operators, registers
// assigned once, before use and of the right lane, operands in range, every output stored exactly once,
// reductions used only in later phases. Gives the lane of each register.
// most: operands in all.
Result<std::vector<Lane>> check(const Program& p, int most = kMaxOperands);

// "v0 = load 0; v1 = row_max v0 | v2 = sub v0 v1; store 0 v2". Constants print so that they read back
// bit for bit. Counts of operands are the largest number used plus one, unless "io 3 1;" stands first.
std::string print(const Program& p);
Result<Program> parse(std::string_view text);

// The binary form, little-endian. decode() takes any bytes.
std::vector<std::byte> encode(const Program& p);
Result<Program> decode(std::span<const std::byte> bytes);

// Builds a program value by value. Equal computations share a register; phases follow from where
// reductions are used; what no store needs is dropped.
class ProgramBuilder {
 public:
  Reg load(int input, Lane lane = Lane::f32);
  Reg constant(float v);
  Reg constant_i32(int32_t v);
  Reg op(Op op, Reg a, Reg b = kNoReg, Reg c = kNoReg);
  Reg op(Op o, Reg a, float b) { return op(o, a, constant(b)); }
  Reg reduce(Op row_op, Reg a) { return op(row_op, a); }
  void store(int output, Reg v);
  // The body of another program on these registers in place of its inputs (loads take the register
  // whatever lane they name; a mismatch is an error in finish()); gives the registers it would store.
  std::vector<Reg> append(const Program& p, std::span<const Reg> inputs);
  // pow with an exponent known now: exact forms for 1, 2, 3, 0.5, -0.5, -1, else Op::pow.
  Reg pow_constant(Reg a, float exponent);
  Reg hard_sigmoid(Reg a, float alpha, float beta);  // max(0, min(1, alpha*a + beta))
  int size() const { return static_cast<int>(insts_.size()); }
  // Operand counts of at least these; the program has passed check().
  Result<Program> finish(int inputs = 0, int outputs = 0, int most = kMaxOperands) const;

 private:
  struct Value {
    Inst inst;
    int phase;
  };
  Reg add(Inst inst);
  std::vector<Value> insts_;
  std::vector<std::pair<int, Reg>> stores_;
  std::map<std::tuple<Op, Reg, Reg, Reg, uint32_t>, Reg> seen_;
};

// --- running -------------------------------------------------------------------------------------

// What compile() must know of an operand; inputs first, then outputs. broadcast: one value for each
// row (col_stride 0). An output that is broadcast stores a value that is the same in the whole row
// (a reduction and what is computed from reductions, constants and broadcast inputs).
struct OperandSpec {
  DType dtype = DType::f32;
  bool broadcast = false;
  bool operator==(const OperandSpec&) const = default;
};

struct CompileOptions {
  bool stream = false;  // outputs bypass the cache where their address allows it
};

// A program as threaded code for one instruction set (that of isa() when it was compiled). Immutable.
struct Compiled;
Result<std::shared_ptr<const Compiled>> compile(const Program& p, std::span<const OperandSpec> operands,
                                                CompileOptions options = {});
// Whether compile() would give the same for the program that it was made of.
bool fits(const Compiled& c, std::span<const OperandSpec> operands, CompileOptions options = {});

struct TileOperand {
  std::byte* data = nullptr;     // row 0, column 0; inputs are not written
  int64_t row_stride_bytes = 0;  // any
  int64_t col_stride = 1;        // 1 element, or 0: one value for the row. 0 is allowed for any input,
                                 // 1 only where the spec did not say broadcast
};

// Bytes that run_tile needs at scratch (64-byte aligned) for rows of up to cols columns.
int64_t scratch_bytes(const Compiled& c, int64_t cols);
// Inputs then outputs. An output may be exactly the memory of an input with the same strides and
// element size; otherwise outputs overlap nothing. Any rows, cols >= 0.
void run_tile(const Compiled& c, const TileOperand* operands, int64_t rows, int64_t cols, std::byte* scratch);

// Static estimates for cutting work into chunks: cycles for each element of the tile, on a CPU with
// 16-lane vectors; independent of the CPU at hand.
double cycles_per_element(const Program& p);

}  // namespace ge::kernels::vector
