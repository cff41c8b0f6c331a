#include <algorithm>
#include <bit>

#include "base/text.h"
#include "kernels/vector/op_info.h"
#include "kernels/vector/program.h"

namespace ge::kernels::vector {

Reg ProgramBuilder::add(Inst inst) {
  auto key = std::tuple(inst.op, inst.a, inst.b, inst.c, inst.imm);
  if (auto it = seen_.find(key); it != seen_.end()) return it->second;
  // A value's phase: after every reduction that it needs.
  int phase = 0;
  for (Reg r : {inst.a, inst.b, inst.c})
    if (r < insts_.size()) phase = std::max(phase, insts_[r].phase + is_reduction(insts_[r].inst.op));
  inst.dst = static_cast<Reg>(std::min<size_t>(insts_.size(), kNoReg - 1));
  insts_.push_back({inst, phase});
  seen_.emplace(key, inst.dst);
  return inst.dst;
}

Reg ProgramBuilder::load(int input, Lane lane) {
  Inst i{.op = lane == Lane::f32 ? Op::load : Op::load_i32};
  i.imm = static_cast<uint32_t>(input);
  return add(i);
}

Reg ProgramBuilder::constant(float v) {
  Inst i{.op = Op::constant};
  i.imm = std::bit_cast<uint32_t>(v);
  return add(i);
}

Reg ProgramBuilder::constant_i32(int32_t v) {
  Inst i{.op = Op::constant_i32};
  i.imm = static_cast<uint32_t>(v);
  return add(i);
}

Reg ProgramBuilder::op(Op op, Reg a, Reg b, Reg c) {
  Inst i{.op = op};
  i.a = a, i.b = b, i.c = c;
  return add(i);
}

void ProgramBuilder::store(int output, Reg v) { stores_.emplace_back(output, v); }

std::vector<Reg> ProgramBuilder::append(const Program& p, std::span<const Reg> inputs) {
  std::vector<Reg> to(kMaxRegs, kNoReg), out(p.outputs, kNoReg);
  auto mapped = [&](Reg r) { return r < to.size() ? to[r] : kNoReg; };
  for (const auto& phase : p.phases) {
    for (Inst i : phase) {
      if (i.op == Op::store) {
        if (i.imm < out.size()) out[i.imm] = mapped(i.a);
        continue;
      }
      Reg dst = i.dst, r;
      if (i.op == Op::load || i.op == Op::load_i32) {
        r = i.imm < inputs.size() ? inputs[i.imm] : kNoReg;
      } else {
        i.a = mapped(i.a), i.b = mapped(i.b), i.c = mapped(i.c);
        r = add(i);
      }
      if (dst < to.size()) to[dst] = r;
    }
  }
  return out;
}

Reg ProgramBuilder::pow_constant(Reg a, float e) {
  if (e == 1) return a;
  if (e == 2) return op(Op::square, a);
  if (e == -1) return op(Op::reciprocal, a);
  if (e == 3) return op(Op::mul, op(Op::square, a), a);
  // sqrt differs from pow at -0 and -inf only: pow gives +0 and +inf.
  if (e == 0.5f || e == -0.5f) {
    Reg positive = op(Op::add, a, constant(0.0f));
    Reg root = op(e > 0 ? Op::sqrt : Op::rsqrt, positive);
    return op(Op::select, op(Op::is_neg_inf, a), constant(e > 0 ? __builtin_inff() : 0.0f), root);
  }
  return op(Op::pow, a, constant(e));
}

Reg ProgramBuilder::hard_sigmoid(Reg a, float alpha, float beta) {
  return op(Op::clip, op(Op::add, op(Op::mul, a, alpha), beta), constant(0.0f), constant(1.0f));
}

Result<Program> ProgramBuilder::finish(int inputs, int outputs, int most) const {
  if (insts_.size() > kMaxInsts)
    return error(code::kTooLarge, format("a vector program of {} instructions, at most {}", insts_.size(), kMaxInsts));
  std::vector<bool> live(insts_.size(), false);
  Program p;
  p.inputs = static_cast<uint16_t>(std::clamp(inputs, 0, most));
  p.outputs = static_cast<uint16_t>(std::clamp(outputs, 0, most));
  int last = 0;
  for (auto [output, r] : stores_) {
    if (r >= insts_.size() || output < 0 || output >= most)
      return error(code::kInternal, "a vector program stores an unknown register or output");
    live[r] = true;
    p.outputs = std::max<uint16_t>(p.outputs, static_cast<uint16_t>(output + 1));
  }
  for (size_t i = insts_.size(); i-- > 0;) {
    const Inst& inst = insts_[i].inst;
    if (!live[i]) continue;
    last = std::max(last, insts_[i].phase + is_reduction(inst.op));
    if ((inst.op == Op::load || inst.op == Op::load_i32) && inst.imm < static_cast<uint32_t>(most))
      p.inputs = std::max<uint16_t>(p.inputs, static_cast<uint16_t>(inst.imm + 1));
    for (Reg r : {inst.a, inst.b, inst.c})
      if (r < insts_.size()) live[r] = true;
  }
  p.phases.resize(last + 1);
  std::vector<Reg> number(insts_.size(), kNoReg);
  Reg next = 0;
  for (int phase = 0; phase <= last; ++phase) {
    for (size_t i = 0; i < insts_.size(); ++i) {
      if (!live[i] || insts_[i].phase != phase) continue;
      Inst inst = insts_[i].inst;
      for (Reg* r : {&inst.a, &inst.b, &inst.c})
        if (*r < number.size()) *r = number[*r];
      inst.dst = number[i] = next++;
      p.phases[phase].push_back(inst);
    }
    for (auto [output, r] : stores_) {
      if (insts_[r].phase + is_reduction(insts_[r].inst.op) != phase) continue;
      Inst s{.op = Op::store};
      s.a = number[r];
      s.imm = static_cast<uint32_t>(output);
      p.phases[phase].push_back(s);
    }
  }
  if (auto lanes = check(p, most); !lanes.ok()) return std::move(lanes).take_error();
  return p;
}

}  // namespace ge::kernels::vector
