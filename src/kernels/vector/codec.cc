// The text form of vector programs, for dumps and goldens, and the binary form, for .om files.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "kernels/vector/op_info.h"
#include "kernels/vector/program.h"

namespace ge::kernels::vector {
namespace {

std::string float_text(uint32_t bits) {
  float f = std::bit_cast<float>(bits);
  if (!std::isfinite(f)) return format("0x{:08x}", bits);
  char buffer[32];
  auto r = std::to_chars(buffer, buffer + sizeof buffer, f);
  return std::string(buffer, r.ptr);
}

// Operand counts as the instructions imply them.
std::pair<int, int> used(const Program& p) {
  uint32_t in = 0, out = 0;
  for (const auto& phase : p.phases) {
    for (const Inst& i : phase) {
      if (i.op == Op::load || i.op == Op::load_i32) in = std::max(in, i.imm + 1);
      if (i.op == Op::store) out = std::max(out, i.imm + 1);
    }
  }
  return {static_cast<int>(std::min(in, 65535u)), static_cast<int>(std::min(out, 65535u))};
}

std::string inst_text(const Inst& i) {
  if (i.op == Op::store) return format("store {} v{}", i.imm, i.a);
  std::string s = format("v{} = {}", i.dst, name(i.op));
  switch (i.op) {
    case Op::load: case Op::load_i32: return s + format(" {}", i.imm);
    case Op::constant: return s + " " + float_text(i.imm);
    case Op::constant_i32: return s + format(" {}", static_cast<int32_t>(i.imm));
    default: break;
  }
  for (Reg r : {i.a, i.b, i.c})
    if (r != kNoReg) s += format(" v{}", r);
  return s;
}

template <class T>
bool number(std::string_view word, T* value) {
  auto r = std::from_chars(word.data(), word.data() + word.size(), *value);
  return r.ec == std::errc() && r.ptr == word.data() + word.size();
}

bool float_bits(std::string_view word, uint32_t* bits) {
  if (word.starts_with("0x")) {
    word.remove_prefix(2);
    auto r = std::from_chars(word.data(), word.data() + word.size(), *bits, 16);
    return r.ec == std::errc() && r.ptr == word.data() + word.size();
  }
  float f;
  if (!number(word, &f)) return false;
  *bits = std::bit_cast<uint32_t>(f);
  return true;
}

bool reg(std::string_view word, Reg* r) {
  if (!word.starts_with('v')) return false;
  word.remove_prefix(1);
  return number(word, r) && *r != kNoReg;
}

Op op_named(std::string_view word) {
  for (const OpInfo& o : kOps)
    if (o.name == word) return o.op;
  return Op::none;
}

std::vector<std::string_view> words(std::string_view s) {
  std::vector<std::string_view> out;
  while (true) {
    size_t a = s.find_first_not_of(" \t\r\n=");
    if (a == s.npos) return out;
    size_t b = std::min(s.find_first_of(" \t\r\n=", a), s.size());
    out.push_back(s.substr(a, b - a));
    s.remove_prefix(b);
  }
}

bool parse_inst(std::string_view statement, Inst* i) {
  auto w = words(statement);
  size_t at = 0;
  if (w.size() < 2) return false;
  if (w[0] == "store") {
    i->op = Op::store;
    return w.size() == 3 && number(w[1], &i->imm) && reg(w[2], &i->a);
  }
  if (!reg(w[at++], &i->dst)) return false;
  i->op = op_named(w[at++]);
  if (i->op == Op::none || i->op == Op::store) return false;
  switch (i->op) {
    case Op::load: case Op::load_i32: return w.size() == 3 && number(w[2], &i->imm);
    case Op::constant: return w.size() == 3 && float_bits(w[2], &i->imm);
    case Op::constant_i32: {
      int32_t v;
      if (w.size() != 3 || !number(w[2], &v)) return false;
      i->imm = static_cast<uint32_t>(v);
      return true;
    }
    default: break;
  }
  size_t n = static_cast<size_t>(arity(i->op));
  if (w.size() != at + n) return false;
  Reg* to[] = {&i->a, &i->b, &i->c};
  for (size_t k = 0; k < n; ++k)
    if (!reg(w[at + k], to[k])) return false;
  return true;
}

constexpr uint32_t kMagic = 0x31505647;  // "GVP1"

class Writer {
 public:
  void put(uint32_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(v >> 8 * i & 255));
  }
  std::vector<std::byte> out;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> b) : bytes_(b) {}
  uint32_t get(int n) {
    if (bytes_.size() < static_cast<size_t>(n)) {
      failed = true;
      return 0;
    }
    uint32_t v = 0;
    for (int i = 0; i < n; ++i) v |= static_cast<uint32_t>(bytes_[static_cast<size_t>(i)]) << 8 * i;
    bytes_ = bytes_.subspan(static_cast<size_t>(n));
    return v;
  }
  bool done() const { return bytes_.empty(); }
  bool failed = false;

 private:
  std::span<const std::byte> bytes_;
};

bool has_imm(Op op) {
  return op == Op::load || op == Op::load_i32 || op == Op::store || op == Op::constant || op == Op::constant_i32;
}

}  // namespace

std::string print(const Program& p) {
  std::string s;
  if (auto [in, out] = used(p); in != p.inputs || out != p.outputs) s = format("io {} {}; ", p.inputs, p.outputs);
  for (size_t k = 0; k < p.phases.size(); ++k) {
    if (k) s += " | ";
    for (size_t i = 0; i < p.phases[k].size(); ++i) {
      if (i) s += "; ";
      s += inst_text(p.phases[k][i]);
    }
  }
  return s;
}

Result<Program> parse(std::string_view text) {
  Program p;
  int inputs = -1, outputs = -1;
  bool first = true;
  for (const std::string& phase_text : split(text, '|')) {
    if (p.phases.size() == kMaxPhases) return error(code::kParse, "vector program: too many phases");
    auto& phase = p.phases.emplace_back();
    for (const std::string& raw : split(phase_text, ';')) {
      std::string_view statement = trim(raw);
      auto w = words(statement);
      if (w.empty()) continue;
      if (std::exchange(first, false) && w[0] == "io") {
        if (w.size() != 3 || !number(w[1], &inputs) || !number(w[2], &outputs) || inputs < 0 || outputs < 0 ||
            inputs > kMaxOperands || outputs > kMaxOperands)
          return error(code::kParse, format("vector program: cannot read \"{}\"", statement));
        continue;
      }
      Inst i;
      if (!parse_inst(statement, &i)) return error(code::kParse, format("vector program: cannot read \"{}\"", statement));
      phase.push_back(i);
    }
  }
  auto [in, out] = used(p);
  p.inputs = static_cast<uint16_t>(std::max(in, inputs));
  p.outputs = static_cast<uint16_t>(std::max(out, outputs));
  if (auto lanes = check(p); !lanes.ok()) return std::move(lanes).take_error();
  return p;
}

std::vector<std::byte> encode(const Program& p) {
  Writer w;
  w.put(kMagic, 4);
  w.put(p.inputs, 2);
  w.put(p.outputs, 2);
  w.put(static_cast<uint32_t>(p.phases.size()), 2);
  for (const auto& phase : p.phases) {
    w.put(static_cast<uint32_t>(phase.size()), 2);
    for (const Inst& i : phase) {
      w.put(static_cast<uint32_t>(i.op), 1);
      if (i.op != Op::store) w.put(i.dst, 2);
      const Reg args[] = {i.a, i.b, i.c};
      for (int k = 0; k < arity(i.op); ++k) w.put(args[k], 2);
      if (has_imm(i.op)) w.put(i.imm, 4);
    }
  }
  return std::move(w.out);
}

Result<Program> decode(std::span<const std::byte> bytes) {
  Reader r(bytes);
  Program p;
  if (r.get(4) != kMagic) return error(code::kParse, "vector program: wrong magic number");
  p.inputs = static_cast<uint16_t>(r.get(2));
  p.outputs = static_cast<uint16_t>(r.get(2));
  uint32_t phases = r.get(2);
  if (phases > kMaxPhases) return error(code::kParse, "vector program: too many phases");
  for (uint32_t k = 0; k < phases && !r.failed; ++k) {
    auto& phase = p.phases.emplace_back();
    uint32_t count = r.get(2);
    if (count > kMaxInsts) return error(code::kParse, "vector program: too many instructions");
    for (uint32_t n = 0; n < count && !r.failed; ++n) {
      Inst i;
      i.op = static_cast<Op>(r.get(1));
      if (!op_info(i.op)) return error(code::kParse, "vector program: unknown operator");
      if (i.op != Op::store) i.dst = static_cast<Reg>(r.get(2));
      Reg* args[] = {&i.a, &i.b, &i.c};
      for (int a = 0; a < arity(i.op); ++a) *args[a] = static_cast<Reg>(r.get(2));
      if (has_imm(i.op)) i.imm = r.get(4);
      phase.push_back(i);
    }
  }
  if (r.failed || !r.done()) return error(code::kParse, "vector program: wrong length");
  if (auto lanes = check(p); !lanes.ok()) return std::move(lanes).take_error();
  return p;
}

}  // namespace ge::kernels::vector
