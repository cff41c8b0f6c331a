// The machine that vector programs run on: one accumulator of several vector registers that is passed
// from instruction to instruction in registers; second operands come from memory (vectors of operands,
// row temporaries and spills) or from a table of scalars. Each instruction is a function that computes
// and tail-calls the next. lowering.cc makes such code from a Program, interp-inl.h holds the functions
// for each instruction set. Nothing here is stored in files.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/vector/program.h"

namespace ge::kernels::vector {

// How an instruction finds its operands. acc is the accumulator; v an address in memory; s a scalar.
enum class Form : uint8_t {
  acc,                             // acc = f(acc), or no operand
  av, as, va, sa,                  // acc = f(acc, v) ... f(s, acc)
  avv, avs, asv, ass,              // acc = f(acc, p, q), p and q as named
  vav, vas, sav, sas,              // acc = f(p, acc, q)
  vva, vsa, sva, ssa,              // acc = f(p, q, acc)
  count,
};
inline constexpr int kForms = static_cast<int>(Form::count);

// Machine operations: an Op keeps its value; the rest are memory accesses and control.
enum MOp : uint8_t {
  kGet = 200,       // acc <- 32-bit lanes at v, or scalar s
  kGetF16, kGetBF16, kGetI32, kGetI64, kGetU8, kGetI8, kGetU16, kGetI16, kGetBool,  // to f32, at v
  kGetIntU8, kGetIntI8, kGetIntU16, kGetIntI16, kGetIntBool,                        // to i32, at v
  kPut,             // lanes at v <- acc, in operands: only the lanes that exist
  kPutF16, kPutBF16, kPutI64, kPut8, kPut16, kPutBool, kPutStream,
  kSpill,           // row temporaries and spills: whole vectors
  kPutScalar,       // scalar s <- first lane
  kLoop,            // next vectors of the row, or return
  kReturn,
};

// p and q are byte offsets from the Context: of a Slot (form letter v), a float (s) or a reduction's lanes.
struct MInst {
  void (*fn)() = nullptr;
  uint32_t p = 0, q = 0;
};

// The lanes of column i are at data + (i * size & mask): mask is 0 for what does not move along the row.
struct Slot {
  std::byte* data;
  int64_t mask;
};

inline constexpr int kSumLanes = 128;         // accumulators of a reduction: column modulo 128
inline constexpr int64_t kSumBlock = 8192;    // columns after which sums fold into a second level
inline constexpr int kMaxVectors = 8;         // of an accumulator

struct alignas(64) Context {
  alignas(64) std::byte tails[kMaxVectors * 64];  // Tail of each vector of the last, partial step
  const MInst* start;                             // of the loop
  int64_t end;                                    // columns in whole steps end here
  int32_t tail;                                   // columns in the last, partial step
};

// Functions of one instruction set. wide: as many vectors as pay; half: half as many; narrow: one vector.
// tail variants touch only the lanes that exist.
struct Table {
  using Functions = void (*[256][kForms])();
  int wide_lanes, half_lanes, narrow_lanes;
  Functions wide, wide_tail, half, half_tail, narrow, narrow_tail;
  void (*run_wide)(const MInst* code, Context* c, int64_t column);
  void (*run_half)(const MInst* code, Context* c, int64_t column);
  void (*run_narrow)(const MInst* code, Context* c, int64_t column);
  void (*set_tails)(Context* c, int count);         // for the wide step
  void (*fill)(float* lanes, float value, int n);   // n <= kSumLanes
  // Folds n lanes (the rest hold the identity) in a fixed tree.
  float (*fold)(Op reduction, const float* lanes, int n);
};

const Table& portable_table();
const Table* avx2_table();    // null where not built
const Table* avx512_table();

}  // namespace ge::kernels::vector
