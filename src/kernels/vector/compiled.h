// A program lowered to machine code (machine.h), as lowering.cc makes it and run.cc runs it.
#pragma once

#include <vector>

#include "kernels/vector/machine.h"
#include "kernels/vector/program.h"

namespace ge::kernels::vector {

// A row reduction: its lanes and its result, as byte offsets from the Context.
struct Reduction {
  Op op;
  uint32_t lanes, folded, result;
};

// A scalar that comes from a broadcast input, or goes to a broadcast output.
struct ScalarMove {
  int operand;
  Lane lane;
  uint32_t scalar;
};

struct PhaseCode {
  std::vector<MInst> prologue;               // once a row, narrow: what is the same in the whole row
  std::vector<MInst> loop, tail, half, half_tail, narrow_tail;  // empty when no column needs work
  std::vector<Reduction> reductions;
  std::vector<ScalarMove> stores;            // to broadcast outputs, after the prologue
  bool sums = false;
};

struct Compiled {
  const Table* table = nullptr;
  int inputs = 0;
  std::vector<OperandSpec> operands;
  std::vector<PhaseCode> phases;
  std::vector<ScalarMove> scalar_loads;
  std::vector<uint32_t> constants;           // at the beginning of the scalars
  // Offsets from the Context. Slots: operands, then spills, then row temporaries.
  uint32_t slots = 0, scalars = 0, spills = 0, expanded = 0, temps = 0;
  int spill_count = 0, temp_count = 0;
  bool elementwise = false, stream = false;
};

// Bytes of one vector step of one operand at most (an i64 operand).
int64_t expanded_bytes(const Compiled& c);

}  // namespace ge::kernels::vector
