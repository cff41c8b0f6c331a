// The meaning of vector programs, one element at a time: what tests compare compiled code with. Operators
// that round once are computed here; the elementary functions, whose errors math_test bounds against
// double, are taken from one-instruction programs, so that whole programs can be compared bit for bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <vector>

#include "kernels/isa.h"
#include "kernels/vector/op_info.h"
#include "kernels/vector/program.h"
#include "tensor/half.h"

namespace ge::kernels::vector::testing {

using Row = std::vector<uint32_t>;  // bits of lanes

inline float as_f(uint32_t x) { return std::bit_cast<float>(x); }
inline uint32_t bits(float x) { return std::bit_cast<uint32_t>(x); }

template <class T>
T read(const std::byte* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

inline uint32_t load_element(const std::byte* p, DType t, Lane lane) {
  auto of = [&](auto x) { return lane == Lane::f32 ? bits(static_cast<float>(x)) : static_cast<uint32_t>(static_cast<int32_t>(x)); };
  switch (t) {
    case DType::f32: return read<uint32_t>(p);
    case DType::f16: return bits(f16_to_f32(read<uint16_t>(p)));
    case DType::bf16: return bits(bf16_to_f32(read<uint16_t>(p)));
    case DType::i32: return of(read<int32_t>(p));
    case DType::i64: return of(read<int64_t>(p));
    case DType::u8: return of(read<uint8_t>(p));
    case DType::i8: return of(read<int8_t>(p));
    case DType::u16: return of(read<uint16_t>(p));
    case DType::i16: return of(read<int16_t>(p));
    default: return of(static_cast<int>(read<uint8_t>(p) != 0));
  }
}

inline void store_element(std::byte* p, DType t, uint32_t x) {
  auto put = [&](auto v) { std::memcpy(p, &v, sizeof v); };
  switch (t) {
    case DType::f32: case DType::i32: return put(x);
    case DType::f16: return put(f32_to_f16(as_f(x)));
    case DType::bf16: return put(f32_to_bf16(as_f(x)));
    case DType::i64: return put(static_cast<int64_t>(static_cast<int32_t>(x)));
    case DType::u8: case DType::i8: return put(static_cast<uint8_t>(x));
    case DType::u16: case DType::i16: return put(static_cast<uint16_t>(x));
    default: return put(static_cast<uint8_t>(x != 0));
  }
}

inline int32_t to_int(float a) {
  return a >= -0x1p31f && a < 0x1p31f ? static_cast<int32_t>(a) : std::numeric_limits<int32_t>::min();
}

inline float max_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : a > b ? a : b; }
inline float min_nan(float a, float b) { return std::isnan(a) || std::isnan(b) ? NAN : a < b ? a : b; }

// Whether a * b + c rounds once: everywhere but on the baseline of x86.
inline bool fuses() {
#if defined(__x86_64__)
  return isa() != Isa::portable;
#else
  return true;
#endif
}

// True, and the result, for operators that are exact or rounded once.
inline bool exact(Op op, uint32_t a, uint32_t b, uint32_t c, uint32_t* out) {
  float x = as_f(a), y = as_f(b), z = as_f(c);
  auto i = static_cast<int32_t>(a), j = static_cast<int32_t>(b);
  auto f = [&](float v) { return *out = bits(v), true; };
  auto n = [&](int64_t v) { return *out = static_cast<uint32_t>(v), true; };
  switch (op) {
    case Op::neg: return f(-x);
    case Op::abs: return f(std::fabs(x));
    case Op::sqrt: return f(std::sqrt(x));
    case Op::rsqrt: return f(1.0f / std::sqrt(x));
    case Op::reciprocal: return f(1.0f / x);
    case Op::floor: return f(std::floor(x));
    case Op::ceil: return f(std::ceil(x));
    case Op::round: return f(std::nearbyint(x));
    case Op::trunc: return f(std::trunc(x));
    case Op::sign: return f(x > 0 ? 1.0f : x < 0 ? -1.0f : x);
    case Op::relu: return f(x < 0 ? 0.0f : x);  // -0 stays
    case Op::square: return f(x * x);
    case Op::add: return f(x + y);
    case Op::sub: return f(x - y);
    case Op::mul: return f(x * y);
    case Op::div: return f(x / y);
    case Op::min: return f(min_nan(x, y));
    case Op::max: return f(max_nan(x, y));
    case Op::fmod: return f(std::fmod(x, y));
    case Op::leaky: return f(x < 0 ? x * y : x);
    case Op::fma: return f(fuses() ? std::fma(x, y, z) : x * y + z);
    case Op::clip: {
      float low = x < y ? y : x;
      return f(low > z ? z : low);
    }
    case Op::lt: return n(x < y);
    case Op::le: return n(x <= y);
    case Op::eq: return n(x == y);
    case Op::ne: return n(x != y);
    case Op::gt: return n(x > y);
    case Op::ge: return n(x >= y);
    case Op::is_nan: return n(std::isnan(x));
    case Op::is_inf: return n(std::isinf(x));
    case Op::is_pos_inf: return n(x == INFINITY);
    case Op::is_neg_inf: return n(x == -INFINITY);
    case Op::to_i32: return n(to_int(x));
    case Op::to_f32: return f(static_cast<float>(i));
    case Op::ineg: return n(-static_cast<int64_t>(i));
    case Op::iabs: return n(i < 0 ? -static_cast<int64_t>(i) : i);
    case Op::isign: return n((i > 0) - (i < 0));
    case Op::inot: return n(~i);
    case Op::lnot: return n(i == 0);
    case Op::to_bool: return n(i != 0);
    case Op::iadd: return n(static_cast<int64_t>(i) + j);
    case Op::isub: return n(static_cast<int64_t>(i) - j);
    case Op::imul: return n(static_cast<int64_t>(static_cast<uint64_t>(i) * static_cast<uint64_t>(j)));
    case Op::idiv: return n(j ? static_cast<int64_t>(i) / j : 0);
    case Op::irem: return n(j ? static_cast<int64_t>(i) % j : 0);
    case Op::imod: {
      int64_t r = j ? static_cast<int64_t>(i) % j : 0;
      return n(r && (r < 0) != (j < 0) ? r + j : r);
    }
    case Op::imin: return n(std::min(i, j));
    case Op::imax: return n(std::max(i, j));
    case Op::iand: return n(i & j);
    case Op::ior: return n(i | j);
    case Op::ixor: return n(i ^ j);
    case Op::ishl: return n(b > 31 ? 0 : static_cast<int64_t>(a << b));
    case Op::ishr: return n(b > 31 ? 0 : static_cast<int64_t>(a >> b));
    case Op::ilt: return n(i < j);
    case Op::ile: return n(i <= j);
    case Op::ieq: return n(i == j);
    case Op::ine: return n(i != j);
    case Op::igt: return n(i > j);
    case Op::ige: return n(i >= j);
    case Op::select: return *out = i ? b : c, true;
    default: return false;
  }
}

// A one-instruction program on rows of bits.
inline Row one_op(Op op, const Row& a, const Row& b) {
  static std::map<std::pair<Op, Isa>, std::shared_ptr<const Compiled>> cache;
  auto& compiled = cache[{op, isa()}];
  int n = arity(op);
  if (!compiled) {
    ProgramBuilder builder;
    builder.store(0, builder.op(op, builder.load(0), n > 1 ? builder.load(1) : kNoReg));
    compiled = *compile(*builder.finish(), std::vector<OperandSpec>(static_cast<size_t>(n) + 1));
  }
  Row out(a.size()), x = a, y = b;
  auto data = [](Row& r) { return reinterpret_cast<std::byte*>(r.data()); };
  std::vector<TileOperand> t{{data(x)}};
  if (n > 1) t.push_back({data(y)});
  t.push_back({data(out)});
  auto cols = static_cast<int64_t>(a.size());
  struct alignas(64) Line { std::byte b[64]; };
  std::vector<Line> scratch(static_cast<size_t>(scratch_bytes(*compiled, cols)) / 64 + 1);
  run_tile(*compiled, t.data(), 1, cols, scratch[0].b);
  return out;
}

inline Row apply(const Inst& inst, const std::vector<Row>& regs, size_t cols) {
  auto arg = [&](Reg r, size_t i) { return r == kNoReg ? 0 : regs[r][i]; };
  Row out(cols);
  uint32_t ignored;
  if (!exact(inst.op, 0, 0, 0, &ignored)) return one_op(inst.op, regs[inst.a], inst.b == kNoReg ? Row() : regs[inst.b]);
  for (size_t i = 0; i < cols; ++i) exact(inst.op, arg(inst.a, i), arg(inst.b, i), arg(inst.c, i), &out[i]);
  return out;
}

// The documented order: 128 lanes, folded every 8192 columns, then halves.
inline uint32_t reduce(Op op, const Row& row) {
  bool sum = op == Op::row_sum || op == Op::row_mean;
  auto join = [&](uint32_t a, uint32_t b) -> uint32_t {
    switch (op) {
      case Op::row_max: return bits(max_nan(as_f(a), as_f(b)));
      case Op::row_min: return bits(min_nan(as_f(a), as_f(b)));
      case Op::row_prod: return bits(as_f(a) * as_f(b));
      case Op::row_isum: return a + b;
      case Op::row_imax: return static_cast<uint32_t>(std::max(static_cast<int32_t>(a), static_cast<int32_t>(b)));
      case Op::row_imin: return static_cast<uint32_t>(std::min(static_cast<int32_t>(a), static_cast<int32_t>(b)));
      default: return bits(as_f(a) + as_f(b));
    }
  };
  uint32_t identity = op == Op::row_max    ? bits(-INFINITY)
                      : op == Op::row_min  ? bits(INFINITY)
                      : op == Op::row_prod ? bits(1)
                      : op == Op::row_imax ? 0x80000000u
                      : op == Op::row_imin ? 0x7fffffffu
                                           : 0;
  std::vector<uint32_t> lanes(128, identity), folded(128, 0);
  size_t whole = row.size() / 128 * 128;
  for (size_t i = 0; i < row.size(); ++i) {
    if (sum && row.size() > 8192 && i && i % 8192 == 0 && i <= whole)
      for (size_t l = 0; l < 128; ++l) folded[l] = join(folded[l], lanes[l]), lanes[l] = 0;
    lanes[i % 128] = join(lanes[i % 128], row[i]);
  }
  if (sum && row.size() > 8192)
    for (size_t l = 0; l < 128; ++l) lanes[l] = join(lanes[l], folded[l]);
  for (size_t half = 64; half; half /= 2)
    for (size_t l = 0; l < half; ++l) lanes[l] = join(lanes[l], lanes[l + half]);
  if (op == Op::row_mean) return bits(as_f(lanes[0]) / static_cast<float>(row.size()));
  return lanes[0];
}

// run_tile() by definition.
inline void run_scalar(const Program& p, const std::vector<OperandSpec>& specs, const TileOperand* t, int64_t rows, int64_t cols) {
  std::vector<Row> regs(check(p)->size());
  for (int64_t r = 0; r < rows; ++r) {
    auto n = static_cast<size_t>(cols);
    std::vector<std::pair<const Inst*, Row>> stores;
    for (const auto& phase : p.phases) {
      for (const Inst& i : phase) {
        if (i.op == Op::store) {
          stores.emplace_back(&i, regs[i.a]);
        } else if (i.op == Op::load || i.op == Op::load_i32) {
          const TileOperand& o = t[i.imm];
          DType type = specs[i.imm].dtype;
          Row row(std::max<size_t>(n, 1));
          for (size_t c = 0; c < std::max<size_t>(n, 1); ++c) {
            if (!n && o.col_stride) continue;
            row[c] = load_element(o.data + r * o.row_stride_bytes + static_cast<int64_t>(c) * o.col_stride * size_of(type), type,
                                  i.op == Op::load ? Lane::f32 : Lane::i32);
          }
          regs[i.dst] = row;
        } else if (i.op == Op::constant || i.op == Op::constant_i32) {
          regs[i.dst] = Row(std::max<size_t>(n, 1), i.imm);
        } else if (is_reduction(i.op)) {
          Row row(regs[i.a].begin(), regs[i.a].begin() + static_cast<long>(n));
          regs[i.dst] = Row(std::max<size_t>(n, 1), reduce(i.op, row));
        } else {
          regs[i.dst] = apply(i, regs, std::max<size_t>(n, 1));
        }
      }
    }
    for (auto& [s, row] : stores) {
      size_t k = static_cast<size_t>(p.inputs) + s->imm;
      int64_t count = specs[k].broadcast ? 1 : cols;
      for (int64_t c = 0; c < count; ++c)
        store_element(t[k].data + r * t[k].row_stride_bytes + c * size_of(specs[k].dtype), specs[k].dtype, row[static_cast<size_t>(c)]);
    }
  }
}

inline std::vector<Isa> isas() {
  std::vector<Isa> out;
  for (Isa i : {Isa::portable, Isa::avx2, Isa::avx512})
    if (i <= best_isa()) out.push_back(i);
  return out;
}

}  // namespace ge::kernels::vector::testing
