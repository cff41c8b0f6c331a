#include "kernels/vector/program.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "kernels/vector/op_info.h"

namespace ge::kernels::vector {
namespace {

Error bad(size_t phase, size_t index, const Inst& inst, std::string why) {
  return error(code::kParse, format("vector program, phase {}, instruction {} ({}): {}", phase, index,
                                    name(inst.op), why));
}

// One pass over a program with the state that the rules need.
class Checker {
 public:
  Checker(const Program& p, int most) : p_(p), most_(most) {}

  Status run() {
    if (p_.phases.empty() || p_.phases.size() > kMaxPhases)
      return error(code::kParse, format("vector program: {} phases, expected 1 to {}", p_.phases.size(), kMaxPhases));
    if (p_.inputs + p_.outputs > most_)
      return error(code::kParse, format("vector program: more than {} operands", most_));
    size_t total = 0;
    for (const auto& phase : p_.phases) total += phase.size();
    if (total > kMaxInsts)
      return error(code::kParse, format("vector program: {} instructions, at most {}", total, kMaxInsts));
    stored_.assign(p_.outputs, false);
    for (phase_ = 0; phase_ < p_.phases.size(); ++phase_)
      for (size_t i = 0; i < p_.phases[phase_].size(); ++i) GE_RETURN_IF_ERROR(one(i));
    for (size_t k = 0; k < stored_.size(); ++k)
      if (!stored_[k]) return error(code::kParse, format("vector program: output {} is never stored", k));
    return ok();
  }

  std::vector<Lane> lanes() && { return std::move(lanes_); }

 private:
  Status one(size_t i) {
    const Inst& inst = p_.phases[phase_][i];
    const OpInfo* info = op_info(inst.op);
    if (!info) return bad(phase_, i, inst, format("unknown operator {}", static_cast<int>(inst.op)));
    std::array<Reg, 3> args{inst.a, inst.b, inst.c};
    size_t count = info->sig.size() - 1;
    Lane x = Lane::f32;  // what "x" stands for: the last operand decides
    for (size_t k = 0; k < 3; ++k) {
      if (k >= count) {
        if (args[k] != kNoReg) return bad(phase_, i, inst, "too many operands");
        continue;
      }
      if (args[k] >= defined_.size() || !defined_[args[k]]) return bad(phase_, i, inst, "a register is used before it is assigned");
      if (reduced_in_[args[k]] == static_cast<int>(phase_)) return bad(phase_, i, inst, "a row reduction is used in its own phase");
    }
    if (count && info->sig[count] == 'x') x = lanes_[args[count - 1]];
    for (size_t k = 0; k < count; ++k) {
      char s = info->sig[k + 1];
      Lane want = s == 'x' ? x : s == 'i' ? Lane::i32 : Lane::f32;
      if (lanes_[args[k]] != want) return bad(phase_, i, inst, format("operand {} has the wrong lane", k));
    }
    GE_RETURN_IF_ERROR(immediate(i, inst));
    char r = info->sig[0];
    if (r == '-') return inst.dst == kNoReg ? ok() : Status(bad(phase_, i, inst, "has no result"));
    return define(i, inst, r == 'x' ? x : r == 'i' ? Lane::i32 : Lane::f32);
  }

  Status immediate(size_t i, const Inst& inst) {
    switch (inst.op) {
      case Op::load: case Op::load_i32:
        if (inst.imm >= p_.inputs) return bad(phase_, i, inst, format("no input {}", inst.imm));
        return ok();
      case Op::store:
        if (inst.imm >= p_.outputs) return bad(phase_, i, inst, format("no output {}", inst.imm));
        if (stored_[inst.imm]) return bad(phase_, i, inst, format("output {} is stored twice", inst.imm));
        stored_[inst.imm] = true;
        return ok();
      case Op::constant: case Op::constant_i32: return ok();
      default: return inst.imm ? Status(bad(phase_, i, inst, "takes no immediate")) : ok();
    }
  }

  Status define(size_t i, const Inst& inst, Lane lane) {
    if (inst.dst >= kMaxRegs) return bad(phase_, i, inst, "register number too large");
    if (inst.dst >= defined_.size()) {
      defined_.resize(inst.dst + 1, false);
      lanes_.resize(inst.dst + 1, Lane::f32);
      reduced_in_.resize(inst.dst + 1, -1);
    }
    if (defined_[inst.dst]) return bad(phase_, i, inst, "a register is assigned twice");
    defined_[inst.dst] = true;
    lanes_[inst.dst] = lane;
    if (is_reduction(inst.op)) reduced_in_[inst.dst] = static_cast<int>(phase_);
    return ok();
  }

  const Program& p_;
  int most_;
  size_t phase_ = 0;
  std::vector<bool> stored_, defined_;
  std::vector<Lane> lanes_;
  std::vector<int> reduced_in_;
};

}  // namespace

std::string_view name(Op op) {
  const OpInfo* i = op_info(op);
  return i ? i->name : std::string_view();
}

int arity(Op op) {
  const OpInfo* i = op_info(op);
  return i ? static_cast<int>(i->sig.size()) - 1 : 0;
}

bool is_reduction(Op op) { return op >= Op::row_sum && op <= Op::row_imin && op_info(op); }

Result<std::vector<Lane>> check(const Program& p, int most) {
  Checker c(p, most);
  GE_RETURN_IF_ERROR(c.run());
  return std::move(c).lanes();
}

double cycles_per_element(const Program& p) {
  double cycles = 0;
  for (const auto& phase : p.phases)
    for (const Inst& i : phase)
      if (const OpInfo* o = op_info(i.op)) cycles += o->cycles + 0.4;
  return cycles / 16;
}

}  // namespace ge::kernels::vector
