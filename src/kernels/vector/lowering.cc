// compile(): from virtual registers to one accumulator, spills, row temporaries and scalars.
//
// Values are computed depth first from what a phase must leave behind (reductions, stores, temporaries),
// so that a chain of operators never leaves the accumulator. A value that is the same in the whole row
// is computed once a row, in the phase's prologue, and is a scalar from then on. Linear in the size.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "kernels/isa.h"
#include "kernels/vector/compiled.h"
#include "kernels/vector/op_info.h"

namespace ge::kernels::vector {
namespace {

struct Code {
  uint8_t op;
  Form form;
  uint32_t p = 0, q = 0;
};

struct Value {
  Inst inst;
  int phase = -1;
  Lane lane = Lane::f32;
  bool uniform = false;   // the same in the whole row
  bool crosses = false;   // kept in a row temporary for later phases
  int scalar = -1;        // index in the scalars, of uniform values
  int temp = -1;
  // State within the phase being lowered.
  int uses = 0;           // still to come
  int spill = -1;
  bool counted = false;
  bool kept = false;      // its row temporary has been written
};

bool is_load(const Inst& i) { return i.op == Op::load || i.op == Op::load_i32; }

// The machine operation that loads storage into a lane; 0 if there is none.
uint8_t get_op(DType t, Lane lane) {
  bool f = lane == Lane::f32;
  switch (t) {
    case DType::f32: return f ? kGet : 0;
    case DType::f16: return f ? kGetF16 : 0;
    case DType::bf16: return f ? kGetBF16 : 0;
    case DType::i64: return f ? kGetI64 : 0;
    case DType::i32: return f ? kGetI32 : kGet;
    case DType::u8: return f ? kGetU8 : kGetIntU8;
    case DType::i8: return f ? kGetI8 : kGetIntI8;
    case DType::u16: return f ? kGetU16 : kGetIntU16;
    case DType::i16: return f ? kGetI16 : kGetIntI16;
    case DType::boolean: return f ? kGetBool : kGetIntBool;
    default: return 0;
  }
}

uint8_t put_op(DType t, Lane lane, bool stream) {
  if (lane == Lane::f32) {
    switch (t) {
      case DType::f32: return stream ? kPutStream : kPut;
      case DType::f16: return kPutF16;
      case DType::bf16: return kPutBF16;
      default: return 0;
    }
  }
  switch (t) {
    case DType::i32: return stream ? kPutStream : kPut;
    case DType::i64: return kPutI64;
    case DType::u8: case DType::i8: return kPut8;
    case DType::u16: case DType::i16: return kPut16;
    case DType::boolean: return kPutBool;
    default: return 0;
  }
}

class Lowering {
 public:
  Lowering(const Program& p, std::span<const OperandSpec> operands, const Table& table, bool stream)
      : p_(p), table_(table) {
    c_.table = &table;
    c_.inputs = p.inputs;
    c_.operands.assign(operands.begin(), operands.end());
    c_.stream = stream;
  }

  Result<std::shared_ptr<const Compiled>> run() {
    GE_TRY(lanes_, check(p_, kUnrolledOperands));
    if (c_.operands.size() != static_cast<size_t>(p_.inputs + p_.outputs))
      return error(code::kInternal, format("a vector program of {} operands got {}", p_.inputs + p_.outputs, c_.operands.size()));
    GE_RETURN_IF_ERROR(analyse());
    sink_stores();
    find_temps();
    lay_out_scalars();
    for (size_t k = 0; k < p_.phases.size(); ++k) lower_phase(static_cast<int>(k));
    lay_out();
    for (size_t k = 0; k < p_.phases.size(); ++k) link(static_cast<int>(k));
    return std::make_shared<const Compiled>(std::move(c_));
  }

 private:
  Value& value(Reg r) { return values_[r]; }
  const OperandSpec& output(const Inst& store) const { return c_.operands[p_.inputs + store.imm]; }

  // Lanes, uniformity and types of storage.
  Status analyse() {
    values_.resize(lanes_.size());
    roots_.resize(p_.phases.size());
    for (size_t k = 0; k < p_.phases.size(); ++k) {
      for (const Inst& i : p_.phases[k]) {
        if (i.op == Op::store) {
          const Value& v = value(i.a);
          if (!put_op(output(i).dtype, v.lane, false))
            return error(code::kInternal, format("a vector program stores {} lanes as {}",
                                                 v.lane == Lane::f32 ? "f32" : "i32", ge::name(output(i).dtype)));
          if (output(i).broadcast && !v.uniform)
            return error(code::kInternal, format("output {} of a vector program has one value a row, but is given many", i.imm));
          roots_[k].push_back(i);
          continue;
        }
        Value& v = value(i.dst);
        v.inst = i;
        v.phase = static_cast<int>(k);
        v.lane = lanes_[i.dst];
        if (is_reduction(i.op)) roots_[k].push_back(i);
        if (is_load(i) && !get_op(c_.operands[i.imm].dtype, v.lane))
          return error(code::kInternal, format("a vector program loads {} as {}", ge::name(c_.operands[i.imm].dtype),
                                               v.lane == Lane::f32 ? "f32" : "i32"));
        v.uniform = is_reduction(i.op) || (is_load(i) ? c_.operands[i.imm].broadcast : true);
        for (Reg r : {i.a, i.b, i.c})
          if (r != kNoReg && !is_reduction(i.op)) v.uniform = v.uniform && value(r).uniform;
      }
    }
    return ok();
  }

  // An output may be the memory of an input: whole rows are stored in the last phase that computes
  // columns, when nothing is left to load in a later phase.
  void sink_stores() {
    for (size_t k = 0; k + 1 < roots_.size(); ++k) {
      auto moves = [&](const Inst& i) { return i.op == Op::store && !output(i).broadcast; };
      auto from = std::stable_partition(roots_[k].begin(), roots_[k].end(), [&](const Inst& i) { return !moves(i); });
      std::vector<Inst> moved(from, roots_[k].end());
      roots_[k].erase(from, roots_[k].end());
      size_t to = k;
      for (size_t j = k + 1; j < roots_.size(); ++j)
        for (const Inst& i : roots_[j])
          if (is_reduction(i.op) || moves(i)) to = j;
      roots_[to].insert(roots_[to].end(), moved.begin(), moved.end());
    }
  }

  // Loads are done again in each phase, and so is what is cheap to compute from loads and scalars.
  bool computed_again(const Value& v) {
    if (is_load(v.inst)) return true;
    const OpInfo* info = op_info(v.inst.op);
    if (info->cycles > 2) return false;
    int loads = 0;
    for (Reg r : {v.inst.a, v.inst.b, v.inst.c}) {
      if (r == kNoReg || value(r).uniform) continue;
      if (!is_load(value(r).inst) || ++loads > 1) return false;
    }
    return true;
  }

  // Marks what phase k reads of earlier phases. Depth first over what phase k computes.
  void find_temps() {
    for (size_t k = 0; k < roots_.size(); ++k) {
      std::vector<Reg> stack;
      std::vector<bool> seen(values_.size(), false);
      for (const Inst& i : roots_[k]) stack.push_back(i.a);
      while (!stack.empty()) {
        Reg r = stack.back();
        stack.pop_back();
        Value& v = value(r);
        if (seen[r] || v.uniform) continue;
        seen[r] = true;
        if (v.phase < static_cast<int>(k) && !computed_again(v)) {
          if (!v.crosses) {
            v.crosses = true;
            v.temp = c_.temp_count++;
            temps_.push_back(r);
          }
          continue;
        }
        for (Reg a : {v.inst.a, v.inst.b, v.inst.c})
          if (a != kNoReg) stack.push_back(a);
      }
      // A temporary must itself be computed in its phase, which may need older temporaries.
      if (k + 1 == roots_.size()) close_temps();
    }
  }
  void close_temps() {
    for (size_t n = 0; n < temps_.size(); ++n) {
      int phase = value(temps_[n]).phase;
      std::vector<Reg> stack;
      std::vector<bool> seen(values_.size(), false);
      const Inst& t = value(temps_[n]).inst;
      for (Reg a : {t.a, t.b, t.c})
        if (a != kNoReg) stack.push_back(a);
      while (!stack.empty()) {
        Reg r = stack.back();
        stack.pop_back();
        Value& v = value(r);
        if (v.uniform || seen[r] || (v.crosses && v.phase < phase)) continue;
        seen[r] = true;
        if (v.phase < phase && !computed_again(v)) {
          v.crosses = true;
          v.temp = c_.temp_count++;
          temps_.push_back(r);
          continue;
        }
        for (Reg a : {v.inst.a, v.inst.b, v.inst.c})
          if (a != kNoReg) stack.push_back(a);
      }
    }
  }

  void lay_out_scalars() {
    int next = 0;
    for (Value& v : values_) {
      if (v.inst.op != Op::constant && v.inst.op != Op::constant_i32) continue;
      v.scalar = next++;
      c_.constants.push_back(v.inst.imm);
    }
    for (Value& v : values_)
      if (v.phase >= 0 && v.uniform && v.scalar < 0) v.scalar = next++;
    scalar_count_ = next;
    c_.slots = sizeof(Context);
  }

  // --- one phase ---

  // Offsets of slots and scalars are known only when all phases are lowered: until link(), p and q are
  // these tagged numbers.
  enum Kind : uint32_t { kOperand = 1u << 28, kSpillSlot = 2u << 28, kTempSlot = 3u << 28, kScalarAt = 4u << 28, kLanesAt = 5u << 28 };

  uint32_t operand_slot(int k) const { return kOperand + static_cast<uint32_t>(k); }
  uint32_t scalar(const Value& v) const { return kScalarAt + static_cast<uint32_t>(v.scalar); }

  struct Lowered {
    std::vector<Code> prologue, body;
    std::vector<std::pair<Op, const Value*>> reductions;
  };

  void lower_phase(int k) {
    phase_ = k;
    out_ = &lowered_.emplace_back();
    acc_ = kNoReg;
    for (Value& v : values_) v.uses = 0, v.spill = -1, v.counted = v.kept = false;
    free_.clear();
    spills_ = 0;
    prologue();
    std::vector<Inst> stores, others;
    for (const Inst& i : roots_[k]) {
      if (i.op != Op::store) others.push_back(i);
      else if (!output(i).broadcast) stores.push_back(i);
    }
    std::vector<Reg> temps;
    for (Reg r : temps_)
      if (value(r).phase == k) temps.push_back(r);
    for (const Inst& i : others) count(i.a);
    for (const Inst& i : stores) count(i.a);
    for (Reg r : temps) count(r);
    for (Reg r : temps) {
      if (!value(r).kept) eval(r), force_spill(r);
      done(r);
    }
    for (const Inst& i : others) reduce(i);
    // All loads come before the first store.
    for (size_t n = 0; n + 1 < stores.size(); ++n) {
      const Value& v = value(stores[n].a);
      if (v.uniform || in_temp(v) || v.spill >= 0) continue;
      eval(stores[n].a);
      force_spill(stores[n].a);
    }
    for (size_t n = stores.size(); n-- > 0;) store(stores[n]);
    c_.spill_count = std::max(c_.spill_count, spills_);
  }

  void reduce(const Inst& i) {
    eval(i.a);
    done(i.a);
    uint32_t lanes = kLanesAt + static_cast<uint32_t>(reduction_count_++);
    emit(static_cast<uint8_t>(i.op), Form::acc, lanes);
    out_->reductions.emplace_back(i.op, &value(i.dst));
  }

  void store(const Inst& i) {
    eval(i.a);
    done(i.a);
    const OperandSpec& o = output(i);
    emit(put_op(o.dtype, value(i.a).lane, c_.stream), Form::av, operand_slot(p_.inputs + static_cast<int>(i.imm)));
  }

  // Values that are the same in the whole row, in program order, each to its scalar.
  void prologue() {
    Reg last = kNoReg;
    auto& code = out_->prologue;
    for (const Inst& i : p_.phases[static_cast<size_t>(phase_)]) {
      if (i.op == Op::store || is_load(i) || is_reduction(i.op) || !arity(i.op) || !value(i.dst).uniform) continue;
      if (i.a != last) code.push_back({kGet, Form::as, scalar(value(i.a))});
      int n = arity(i.op);
      Form form = n == 1 ? Form::acc : n == 2 ? Form::as : Form::ass;
      code.push_back({static_cast<uint8_t>(i.op), form, n > 1 ? scalar(value(i.b)) : 0, n > 2 ? scalar(value(i.c)) : 0});
      code.push_back({kPutScalar, Form::as, scalar(value(i.dst))});
      last = i.dst;
    }
  }

  // Uses in this phase, over everything that it computes.
  void count(Reg root) {
    std::vector<Reg> stack{root};
    while (!stack.empty()) {
      Reg r = stack.back();
      stack.pop_back();
      Value& v = value(r);
      ++v.uses;
      if (v.counted || !evaluated(v)) continue;
      v.counted = true;
      for (Reg a : {v.inst.a, v.inst.b, v.inst.c})
        if (a != kNoReg) stack.push_back(a);
    }
  }
  bool old_temp(const Value& v) const { return v.crosses && v.phase < phase_; }
  bool in_temp(const Value& v) const { return old_temp(v) || v.kept; }
  // Computed by an operator in this phase (against scalars, temporaries and loads).
  bool evaluated(const Value& v) const { return !v.uniform && !is_load(v.inst) && !old_temp(v); }
  bool foldable(const Value& v) const {
    return is_load(v.inst) && get_op(c_.operands[v.inst.imm].dtype, v.lane) == kGet;
  }

  // Whether an instruction can read v without it being in the accumulator.
  bool addressable(const Value& v) const { return v.uniform || in_temp(v) || v.spill >= 0 || foldable(v); }

  uint32_t address(const Value& v) const {
    if (v.uniform) return scalar(v);
    if (v.spill >= 0) return kSpillSlot + static_cast<uint32_t>(v.spill);
    if (in_temp(v)) return kTempSlot + static_cast<uint32_t>(v.temp);
    return operand_slot(static_cast<int>(v.inst.imm));
  }

  void emit(uint8_t op, Form form, uint32_t p = 0, uint32_t q = 0) { out_->body.push_back({op, form, p, q}); }

  void force_spill(Reg r) {  // r is in the accumulator
    Value& v = value(r);
    if (v.spill >= 0 || v.kept) return;
    if (v.crosses && v.phase == phase_) {
      v.kept = true;
      emit(kSpill, Form::av, kTempSlot + static_cast<uint32_t>(v.temp));
      return;
    }
    if (free_.empty()) free_.push_back(spills_++);
    v.spill = free_.back();
    free_.pop_back();
    emit(kSpill, Form::av, kSpillSlot + static_cast<uint32_t>(v.spill));
  }
  // The accumulator is about to be overwritten.
  void save() {
    if (acc_ != kNoReg && value(acc_).uses > 0 && !addressable(value(acc_))) force_spill(acc_);
  }
  void done(Reg r) {
    Value& v = value(r);
    if (--v.uses == 0 && v.spill >= 0) {
      free_.push_back(v.spill);
      v.spill = -1;
    }
  }

  // Brings v into the accumulator.
  void eval(Reg r) {
    if (acc_ == r) return;
    Value& v = value(r);
    if (addressable(v) || is_load(v.inst)) {
      save();
      bool s = v.uniform;
      uint8_t op = addressable(v) ? static_cast<uint8_t>(kGet) : get_op(c_.operands[v.inst.imm].dtype, v.lane);
      emit(op, s ? Form::as : Form::av, addressable(v) ? address(v) : operand_slot(static_cast<int>(v.inst.imm)));
      acc_ = r;
      return;
    }
    apply(r);
    acc_ = r;
  }

  void apply(Reg r) {
    const Inst i = value(r).inst;
    const Reg args[] = {i.a, i.b, i.c};
    int n = arity(i.op);
    int primary = choose(args, n);
    Op op = i.op;
    if (op == Op::mul && i.a == i.b) op = Op::square, n = 1;
    for (int k = 0; k < n; ++k) {
      if (k == primary || addressable(value(args[k])) || args[k] == args[primary]) continue;
      eval(args[k]);
      force_spill(args[k]);
    }
    eval(args[primary]);
    for (int k = 0; k < n; ++k)
      if (k != primary && !addressable(value(args[k]))) force_spill(args[k]);  // the primary once more
    uint32_t at[2] = {};
    bool s[2] = {};
    for (int k = 0, m = 0; k < n; ++k) {
      if (k == primary) continue;
      s[m] = value(args[k]).uniform;
      at[m++] = address(value(args[k]));
    }
    for (int k = 0; k < arity(i.op); ++k) done_after(args[k]);
    if (value(args[primary]).uses > 0 && !addressable(value(args[primary]))) force_spill(args[primary]);
    emit(static_cast<uint8_t>(op), form(n, primary, s[0], s[1]), at[0], at[1]);
    free_.insert(free_.end(), late_free_.begin(), late_free_.end());
    late_free_.clear();
  }
  // The instruction about to be emitted still reads the spill: it is free only after that.
  void done_after(Reg r) {
    Value& v = value(r);
    --v.uses;
    if (v.uses == 0 && v.spill >= 0) {
      late_free_.push_back(v.spill);
      v.spill = -1;
    }
  }

  // The operand that is to be in the accumulator.
  int choose(const Reg* args, int n) {
    int best = -1, best_rank = -1;
    for (int k = 0; k < n; ++k) {
      const Value& v = value(args[k]);
      // What is in the accumulator must be spilled anyway if another operand is yet to be computed.
      int rank = v.uniform ? 0 : addressable(v) ? 1 : args[k] == acc_ ? 2 : v.uses > 1 ? 3 : 4;
      if (rank > best_rank) best = k, best_rank = rank;
    }
    return best;
  }

  static Form form(int n, int primary, bool s0, bool s1) {
    if (n == 1) return Form::acc;
    if (n == 2) return primary == 0 ? (s0 ? Form::as : Form::av) : (s0 ? Form::sa : Form::va);
    constexpr Form forms[3][4] = {{Form::avv, Form::avs, Form::asv, Form::ass},
                                  {Form::vav, Form::vas, Form::sav, Form::sas},
                                  {Form::vva, Form::vsa, Form::sva, Form::ssa}};
    return forms[primary][(s0 ? 2 : 0) + (s1 ? 1 : 0)];
  }

  // --- addresses ---

  void lay_out() {
    auto take = [this](size_t bytes, size_t align) {
      size_t at = (end_ + align - 1) / align * align;
      end_ = at + bytes;
      return static_cast<uint32_t>(at);
    };
    size_t step = static_cast<size_t>(table_.wide_lanes) * sizeof(float);
    end_ = sizeof(Context);
    c_.slots = take(sizeof(Slot) * (c_.operands.size() + static_cast<size_t>(c_.spill_count + c_.temp_count)), 64);
    c_.scalars = take(sizeof(float) * static_cast<size_t>(scalar_count_), 64);
    lanes_at_ = take(sizeof(float) * kSumLanes * 2 * static_cast<size_t>(reduction_count_), 64);
    c_.spills = take(step * static_cast<size_t>(c_.spill_count), 64);
    c_.expanded = take(static_cast<size_t>(expanded_bytes(c_)) * static_cast<size_t>(c_.inputs), 64);
    c_.temps = take(0, 64);
  }

  uint32_t resolve(uint32_t x) const {
    uint32_t n = x & 0xfffffffu, slot = sizeof(Slot);
    uint32_t operands = static_cast<uint32_t>(c_.operands.size()), spills = static_cast<uint32_t>(c_.spill_count);
    switch (x & 0xf0000000u) {
      case kOperand: return c_.slots + n * slot;
      case kSpillSlot: return c_.slots + (operands + n) * slot;
      case kTempSlot: return c_.slots + (operands + spills + n) * slot;
      case kScalarAt: return c_.scalars + n * 4;
      case kLanesAt: return lanes_at_ + n * 2 * kSumLanes * 4;
      default: return 0;
    }
  }

  std::vector<MInst> assemble(const std::vector<Code>& code, const Table::Functions& functions, uint8_t last) const {
    std::vector<MInst> out;
    if (code.empty()) return out;
    auto put = [&](const Code& c) {
      auto fn = functions[c.op][static_cast<int>(c.form)];
      GE_CHECK(fn, format("vector machine: no function for operation {} form {}", c.op, static_cast<int>(c.form)));
      out.push_back({fn, resolve(c.p), resolve(c.q)});
    };
    for (const Code& c : code) put(c);
    put({last, Form::acc});
    return out;
  }

  void link(int k) {
    const Lowered& l = lowered_[static_cast<size_t>(k)];
    PhaseCode& ph = c_.phases.emplace_back();
    ph.prologue = assemble(l.prologue, table_.narrow, kReturn);
    ph.loop = assemble(l.body, table_.wide, kLoop);
    ph.tail = assemble(l.body, table_.wide_tail, kReturn);
    ph.half = assemble(l.body, table_.half, kReturn);
    ph.half_tail = assemble(l.body, table_.half_tail, kReturn);
    ph.narrow_tail = assemble(l.body, table_.narrow_tail, kReturn);
    for (auto [op, v] : l.reductions) {
      uint32_t lanes = resolve(kLanesAt + static_cast<uint32_t>(linked_reductions_++));
      ph.reductions.push_back({op, lanes, lanes + kSumLanes * 4, resolve(scalar(*v))});
      ph.sums |= op == Op::row_sum || op == Op::row_mean;
    }
    for (const Inst& i : roots_[static_cast<size_t>(k)])
      if (i.op == Op::store && output(i).broadcast)
        ph.stores.push_back({p_.inputs + static_cast<int>(i.imm), value(i.a).lane, resolve(scalar(value(i.a)))});
    for (const Inst& i : p_.phases[static_cast<size_t>(k)])
      if (is_load(i) && value(i.dst).uniform)
        c_.scalar_loads.push_back({static_cast<int>(i.imm), value(i.dst).lane, resolve(scalar(value(i.dst)))});
    c_.elementwise = p_.phases.size() == 1 && ph.reductions.empty() && ph.stores.empty();
  }

  const Program& p_;
  const Table& table_;
  Compiled c_;
  std::vector<Lane> lanes_;
  std::vector<Value> values_;
  std::vector<std::vector<Inst>> roots_;
  std::vector<Reg> temps_;
  std::vector<Lowered> lowered_;
  Lowered* out_ = nullptr;
  int phase_ = 0, scalar_count_ = 0, reduction_count_ = 0, linked_reductions_ = 0, spills_ = 0;
  size_t end_ = 0;
  uint32_t lanes_at_ = 0;
  Reg acc_ = kNoReg;
  std::vector<int> free_, late_free_;
};

const Table& current_table() {
  if (isa() == Isa::avx512)
    if (const Table* t = avx512_table()) return *t;
  if (isa() >= Isa::avx2)
    if (const Table* t = avx2_table()) return *t;
  return portable_table();
}

}  // namespace

int64_t expanded_bytes(const Compiled& c) { return c.table->wide_lanes * 8; }

Result<std::shared_ptr<const Compiled>> compile(const Program& p, std::span<const OperandSpec> operands,
                                                CompileOptions options) {
  return Lowering(p, operands, current_table(), options.stream).run();
}

bool fits(const Compiled& c, std::span<const OperandSpec> operands, CompileOptions options) {
  return c.table == &current_table() && c.stream == options.stream && std::equal(c.operands.begin(), c.operands.end(), operands.begin(), operands.end());
}

}  // namespace ge::kernels::vector
