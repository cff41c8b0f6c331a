// The instructions of the machine (machine.h) on the SIMD vocabulary of the namespace around; included
// once for each instruction set, between its target pragmas, hence no guard.
//
// Code<0, 1, ... N-1> holds the instructions for an accumulator of N vectors. They must compile to
// straight code with a jump at the end: no accumulator may touch the stack (check with objdump after a
// change: no frame in Code<...>::binary and the like).

// --- operators: f() on one vector ----------------------------------------------------------------

#define GE_UNARY(Name, expression) \
  struct Name {                    \
    GE_SIMD V f(V a) { return expression; } \
  };
#define GE_BINARY(Name, expression) \
  struct Name {                     \
    GE_SIMD V f(V a, V b) { return expression; } \
  };
#define GE_TERNARY(Name, expression) \
  struct Name {                      \
    GE_SIMD V f(V a, V b, V c) { return expression; } \
  };

GE_SIMD V flag(M m) { return as_f(ones(m)); }
// NaN when either operand is NaN.
GE_SIMD V nan_min(V a, V b) { return sel(nan(a), a, hw_min(a, b)); }
GE_SIMD V nan_max(V a, V b) { return sel(nan(a), a, hw_max(a, b)); }
GE_SIMD V inf() { return set(__builtin_inff()); }
// The quotient rounded down, given the truncated one.
GE_SIMD I floor_mod(I a, I b) {
  I r = a - idiv(a, b) * b;
  M fix = ilt(r ^ b, iset(0));
  r = isel(fix, isel(nonzero(r), r + b, r), r);
  return isel(nonzero(b), r, iset(0));
}

// Long functions are called, not inlined into every form of their instruction.
#undef GE_FAR
#define GE_FAR static __attribute__((noinline))
GE_FAR V far_pow(V a, V b) { return pow(a, b); }
GE_FAR V far_fmod(V a, V b) { return fmod(a, b); }
GE_FAR V far_idiv(V a, V b) { return as_f(idiv(as_i(a), as_i(b))); }
GE_FAR V far_imod(V a, V b) { return as_f(floor_mod(as_i(a), as_i(b))); }
GE_FAR V far_irem(V a, V b) {
  return as_f(isel(nonzero(as_i(b)), as_i(a) - idiv(as_i(a), as_i(b)) * as_i(b), iset(0)));
}

GE_UNARY(Neg, as_f(as_i(a) ^ INT32_MIN))
GE_UNARY(Abs, vabs(a))
GE_UNARY(Sqrt, vsqrt(a))
GE_UNARY(Rsqrt, set(1.0f) / vsqrt(a))
GE_UNARY(Reciprocal, set(1.0f) / a)
GE_UNARY(Exp, exp(a))
GE_UNARY(Log, log(a))
GE_UNARY(Erf, erf(a))
GE_UNARY(Tanh, tanh(a))
GE_UNARY(Sigmoid, sigmoid(a))
GE_UNARY(Sin, sin(a))
GE_UNARY(Cos, cos(a))
GE_UNARY(Floor, vfloor(a))
GE_UNARY(Ceil, vceil(a))
GE_UNARY(Round, vround(a))
GE_UNARY(Trunc, vtrunc(a))
GE_UNARY(Sign, sel(lt(set(0.0f), a), set(1.0f), sel(lt(a, set(0.0f)), set(-1.0f), a)))
GE_UNARY(Relu, hw_max(set(0.0f), a))
GE_UNARY(Softplus, softplus(a))
GE_UNARY(Silu, a * sigmoid(a))
GE_UNARY(Gelu, gelu(a))
GE_UNARY(GeluTanh, gelu_tanh(a))
GE_UNARY(Mish, mish(a))
GE_UNARY(Expm1, expm1(a))
GE_UNARY(Square, a * a)
GE_BINARY(Add, a + b)
GE_BINARY(Sub, a - b)
GE_BINARY(Mul, a * b)
GE_BINARY(Div, a / b)
GE_BINARY(Min, nan_min(a, b))
GE_BINARY(Max, nan_max(a, b))
GE_BINARY(Pow, far_pow(a, b))
GE_BINARY(Fmod, far_fmod(a, b))
GE_BINARY(Leaky, sel(lt(a, set(0.0f)), a * b, a))
GE_BINARY(Elu, sel(lt(set(0.0f), a), a, b * expm1(hw_min(set(0.0f), a))))
GE_TERNARY(Fma, fma(a, b, c))
GE_TERNARY(Clip, hw_min(c, hw_max(b, a)))
GE_BINARY(Lt, flag(lt(a, b)))
GE_BINARY(Le, flag(le(a, b)))
GE_BINARY(Eq, flag(eq(a, b)))
GE_BINARY(Ne, flag(ne(a, b)))
GE_BINARY(Gt, flag(lt(b, a)))
GE_BINARY(Ge, flag(le(b, a)))
GE_UNARY(IsNan, flag(nan(a)))
GE_UNARY(IsInf, flag(eq(vabs(a), inf())))
GE_UNARY(IsPosInf, flag(eq(a, inf())))
GE_UNARY(IsNegInf, flag(eq(a, -inf())))
GE_UNARY(ToI32, as_f(cvt_trunc(a)))
GE_UNARY(ToF32, cvt_f(as_i(a)))
GE_UNARY(Ineg, as_f((I)-(U)as_i(a)))
GE_UNARY(Iabs, as_f(isel(ilt(as_i(a), iset(0)), (I)-(U)as_i(a), as_i(a))))
GE_UNARY(Isign, as_f(ones(ilt(iset(0), as_i(a))) - ones(ilt(as_i(a), iset(0)))))
GE_UNARY(Inot, as_f(~as_i(a)))
GE_UNARY(Lnot, flag(ieq(as_i(a), iset(0))))
GE_UNARY(ToBool, flag(nonzero(as_i(a))))
GE_BINARY(Iadd, as_f((I)((U)as_i(a) + (U)as_i(b))))
GE_BINARY(Isub, as_f((I)((U)as_i(a) - (U)as_i(b))))
GE_BINARY(Imul, as_f((I)((U)as_i(a) * (U)as_i(b))))
GE_BINARY(Idiv, far_idiv(a, b))
GE_BINARY(Imod, far_imod(a, b))
GE_BINARY(Irem, far_irem(a, b))
GE_BINARY(Imin, as_f(imin(as_i(a), as_i(b))))
GE_BINARY(Imax, as_f(imax(as_i(a), as_i(b))))
GE_BINARY(Iand, as_f(as_i(a) & as_i(b)))
GE_BINARY(Ior, as_f(as_i(a) | as_i(b)))
GE_BINARY(Ixor, as_f(as_i(a) ^ as_i(b)))
GE_BINARY(Ishl, as_f(shl(as_i(a), as_i(b))))
GE_BINARY(Ishr, as_f(shr(as_i(a), as_i(b))))
GE_BINARY(Ilt, flag(ilt(as_i(a), as_i(b))))
GE_BINARY(Ile, flag(ile(as_i(a), as_i(b))))
GE_BINARY(Ieq, flag(ieq(as_i(a), as_i(b))))
GE_BINARY(Ine, flag(ine(as_i(a), as_i(b))))
GE_BINARY(Igt, flag(ilt(as_i(b), as_i(a))))
GE_BINARY(Ige, flag(ile(as_i(b), as_i(a))))
GE_TERNARY(Select, sel(nonzero(as_i(a)), b, c))

// Storage to lanes, for instructions get<>: kSize bytes an element, load and load_tail to a V.
struct Raw {
  static constexpr int kSize = 4;
  GE_SIMD V load(const void* p) { return GE_SIMD_NS::load(p); }
  GE_SIMD V load_tail(const void* p, Tail t, int) { return GE_SIMD_NS::load_tail(p, t); }
  GE_SIMD void store(void* p, V a) { GE_SIMD_NS::store(p, a); }
  GE_SIMD void store_tail(void* p, Tail t, int, V a) { GE_SIMD_NS::store_tail(p, t, a); }
};
struct Streamed : Raw {
  GE_SIMD void store(void* p, V a) {
    if (reinterpret_cast<uintptr_t>(p) % sizeof(V) == 0) return GE_SIMD_NS::stream(p, a);
    GE_SIMD_NS::store(p, a);
  }
};
template <class S, int kBytes>
struct AsFloat {  // f32 lanes in 16-bit storage
  static constexpr int kSize = kBytes;
  GE_SIMD V load(const void* p) { return S::load(p); }
  GE_SIMD V load_tail(const void* p, Tail t, int n) { return S::load_tail(p, t, n); }
  GE_SIMD void store(void* p, V a) { S::store(p, a); }
  GE_SIMD void store_tail(void* p, Tail t, int n, V a) { S::store_tail(p, t, n, a); }
};
template <class S, int kBytes>
struct AsInt {  // i32 lanes in integer storage
  static constexpr int kSize = kBytes;
  GE_SIMD V load(const void* p) { return as_f(S::load(p)); }
  GE_SIMD V load_tail(const void* p, Tail t, int n) { return as_f(S::load_tail(p, t, n)); }
  GE_SIMD void store(void* p, V a) { S::store(p, as_i(a)); }
  GE_SIMD void store_tail(void* p, Tail t, int n, V a) { S::store_tail(p, t, n, as_i(a)); }
};
template <class R>
struct ToFloat {  // integer storage to f32 lanes
  static constexpr int kSize = R::kSize;
  GE_SIMD V load(const void* p) { return cvt_f(as_i(R::load(p))); }
  GE_SIMD V load_tail(const void* p, Tail t, int n) { return cvt_f(as_i(R::load_tail(p, t, n))); }
};
struct Bool {
  static constexpr int kSize = 1;
  GE_SIMD V load(const void* p) { return flag(nonzero(Int8<false>::load(p))); }
  GE_SIMD V load_tail(const void* p, Tail t, int n) { return flag(nonzero(Int8<false>::load_tail(p, t, n))); }
  GE_SIMD void store(void* p, V a) { Int8<false>::store(p, ones(nonzero(as_i(a)))); }
  GE_SIMD void store_tail(void* p, Tail t, int n, V a) { Int8<false>::store_tail(p, t, n, ones(nonzero(as_i(a)))); }
};
struct LongFloat {
  static constexpr int kSize = 8;
  GE_SIMD V load(const void* p) { return Int64::load_f(p); }
  GE_SIMD V load_tail(const void* p, Tail t, int n) { return Int64::load_f_tail(p, t, n); }
};

// Row reductions: how lanes combine, and what a missing lane counts as.
struct SumF : Add {
  GE_SIMD V identity() { return set(0.0f); }
};
struct ProdF : Mul {
  GE_SIMD V identity() { return set(1.0f); }
};
struct MaxF : Max {
  GE_SIMD V identity() { return -inf(); }
};
struct MinF : Min {
  GE_SIMD V identity() { return inf(); }
};
struct SumI : Iadd {
  GE_SIMD V identity() { return set(0.0f); }
};
struct MaxI : Imax {
  GE_SIMD V identity() { return as_f(iset(INT32_MIN)); }
};
struct MinI : Imin {
  GE_SIMD V identity() { return as_f(iset(INT32_MAX)); }
};

// --- instructions --------------------------------------------------------------------------------

template <class T>
GE_SIMD T* at(Context* c, uint32_t offset) {
  return reinterpret_cast<T*>(reinterpret_cast<char*>(c) + offset);
}
GE_SIMD char* address(Context* c, uint32_t offset, int64_t i, int size) {
  const Slot* s = at<const Slot>(c, offset);
  return reinterpret_cast<char*>(s->data) + (i * size & s->mask);
}
GE_SIMD Tail tail_of(Context* c, int j) {
  Tail t;
  std::memcpy(&t, c->tails + j * sizeof(Tail), sizeof t);
  return t;
}

// Whether vector j of the last step is whole. Masked accesses are slow, and a masked load waits for stores to the
// same memory, so they are kept for the one vector that needs them.
GE_SIMD bool whole(Context* c, int j) { return c->tail >= (j + 1) * kLanes; }

// An operand's vector j: from memory, from memory where lanes exist, or a scalar.
struct Vec {
  const char* p;
  GE_SIMD Vec get(Context* c, uint32_t offset, int64_t i) { return {address(c, offset, i, 4)}; }
  GE_SIMD V at_(const Vec& x, Context*, int j) { return load(x.p + j * sizeof(V)); }
};
struct PartVec {
  const char* p;
  GE_SIMD PartVec get(Context* c, uint32_t offset, int64_t i) { return {address(c, offset, i, 4)}; }
  GE_SIMD V at_(const PartVec& x, Context* c, int j) {
    if (whole(c, j)) return load(x.p + j * sizeof(V));
    return load_tail(x.p + j * sizeof(V), tail_of(c, j));
  }
};
struct Scalar {
  V v;
  GE_SIMD Scalar get(Context* c, uint32_t offset, int64_t) { return {set(*at<const float>(c, offset))}; }
  GE_SIMD V at_(const Scalar& x, Context*, int) { return x.v; }
};

#define GE_ARGS const MInst *ip, Context *c, int64_t i, Acc<J>... a
#define GE_NEXT(...) GE_TAIL_CALL reinterpret_cast<Fn>(ip[1].fn)(ip + 1, c, i, __VA_ARGS__)

template <size_t>
using Acc = V;

template <class Seq>
struct Code;
template <size_t... J>
struct Code<std::index_sequence<J...>> {
  static constexpr int kVectors = sizeof...(J), kStep = kVectors * kLanes;
  using Fn = void (*)(const MInst*, Context*, int64_t, Acc<J>...);

  template <class F>
  static void unary(GE_ARGS) {
    GE_NEXT(F::f(a)...);
  }
  template <class F, class P>
  static void acc_p(GE_ARGS) {
    auto p = P::get(c, ip->p, i);
    GE_NEXT(F::f(a, P::at_(p, c, J))...);
  }
  template <class F, class P>
  static void p_acc(GE_ARGS) {
    auto p = P::get(c, ip->p, i);
    GE_NEXT(F::f(P::at_(p, c, J), a)...);
  }
  template <class F, class P, class Q>
  static void acc_p_q(GE_ARGS) {
    auto p = P::get(c, ip->p, i);
    auto q = Q::get(c, ip->q, i);
    GE_NEXT(F::f(a, P::at_(p, c, J), Q::at_(q, c, J))...);
  }
  template <class F, class P, class Q>
  static void p_acc_q(GE_ARGS) {
    auto p = P::get(c, ip->p, i);
    auto q = Q::get(c, ip->q, i);
    GE_NEXT(F::f(P::at_(p, c, J), a, Q::at_(q, c, J))...);
  }
  template <class F, class P, class Q>
  static void p_q_acc(GE_ARGS) {
    auto p = P::get(c, ip->p, i);
    auto q = Q::get(c, ip->q, i);
    GE_NEXT(F::f(P::at_(p, c, J), Q::at_(q, c, J), a)...);
  }

  template <class P>
  static void get(const MInst* ip, Context* c, int64_t i, Acc<J>...) {
    auto p = P::get(c, ip->p, i);
    GE_NEXT(P::at_(p, c, J)...);
  }
  template <class S, bool kTail>
  static void get_as(const MInst* ip, Context* c, int64_t i, Acc<J>...) {
    const char* p = address(c, ip->p, i, S::kSize);
    constexpr int kBytes = S::kSize * kLanes;
    if constexpr (kTail) {
      GE_NEXT((whole(c, J) ? S::load(p + J * kBytes) : S::load_tail(p + J * kBytes, tail_of(c, J), c->tail - static_cast<int>(J) * kLanes))...);
    } else {
      GE_NEXT(S::load(p + J * kBytes)...);
    }
  }
  template <class S, bool kTail>
  static void put_as(GE_ARGS) {
    char* p = address(c, ip->p, i, S::kSize);
    constexpr int kBytes = S::kSize * kLanes;
    if constexpr (kTail) {
      ((whole(c, J) ? S::store(p + J * kBytes, a) : S::store_tail(p + J * kBytes, tail_of(c, J), c->tail - static_cast<int>(J) * kLanes, a)), ...);
    } else {
      (S::store(p + J * kBytes, a), ...);
    }
    GE_NEXT(a...);
  }
  static void put_scalar(GE_ARGS) {
    const V all[] = {a...};
    *at<float>(c, ip->p) = first(all[0]);
    GE_NEXT(a...);
  }
  template <class F, bool kTail>
  static void reduce(GE_ARGS) {
    char* lanes = at<char>(c, ip->p) + (i * 4 & (kSumLanes * 4 - 1));
    (store(lanes + J * sizeof(V), F::f(load(lanes + J * sizeof(V)), kept<F, kTail>(c, J, a))), ...);
    GE_NEXT(a...);
  }
  template <class F, bool kTail>
  GE_SIMD V kept(Context* c, int j, V a) {
    if constexpr (kTail) return sel(lanes_of(tail_of(c, j)), a, F::identity());
    return a;
  }

  static void loop(GE_ARGS) {
    i += kStep;
    if (i >= c->end) return;
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    ip = c->start - 1;
    GE_NEXT(a...);
#else
    (void)ip, ((void)a, ...);  // run() continues: without tail calls the stack would grow with the row
#endif
  }
  static void stop(const MInst*, Context*, int64_t, Acc<J>...) {}

  static void run(const MInst* code, Context* c, int64_t i) {
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    reinterpret_cast<Fn>(code->fn)(code, c, i, (static_cast<void>(J), V{})...);
    leave();
#else
    do {
      reinterpret_cast<Fn>(code->fn)(code, c, i, (static_cast<void>(J), V{})...);
      i += kStep;
    } while (i < c->end);
    leave();
#endif
  }

  // --- the table ---
  static void put(Table::Functions& t, int op, Form form, Fn fn) {
    t[op][static_cast<int>(form)] = reinterpret_cast<void (*)()>(fn);
  }
  template <class F>
  static void add1(Table::Functions& t, Op op) {
    put(t, static_cast<int>(op), Form::acc, unary<F>);
  }
  template <class P, class F>
  static void add2(Table::Functions& t, Op op) {
    int o = static_cast<int>(op);
    put(t, o, Form::av, acc_p<F, P>);
    put(t, o, Form::as, acc_p<F, Scalar>);
    put(t, o, Form::va, p_acc<F, P>);
    put(t, o, Form::sa, p_acc<F, Scalar>);
  }
  template <class P, class F>
  static void add3(Table::Functions& t, Op op) {
    int o = static_cast<int>(op);
    put(t, o, Form::avv, acc_p_q<F, P, P>);
    put(t, o, Form::avs, acc_p_q<F, P, Scalar>);
    put(t, o, Form::asv, acc_p_q<F, Scalar, P>);
    put(t, o, Form::ass, acc_p_q<F, Scalar, Scalar>);
    put(t, o, Form::vav, p_acc_q<F, P, P>);
    put(t, o, Form::vas, p_acc_q<F, P, Scalar>);
    put(t, o, Form::sav, p_acc_q<F, Scalar, P>);
    put(t, o, Form::sas, p_acc_q<F, Scalar, Scalar>);
    put(t, o, Form::vva, p_q_acc<F, P, P>);
    put(t, o, Form::vsa, p_q_acc<F, P, Scalar>);
    put(t, o, Form::sva, p_q_acc<F, Scalar, P>);
    put(t, o, Form::ssa, p_q_acc<F, Scalar, Scalar>);
  }
  template <bool kTail>
  static void add_memory(Table::Functions& t) {
    put(t, kGet, Form::as, get<Scalar>);
    put(t, kGet, Form::av, get_as<Raw, kTail>);
    put(t, kGetF16, Form::av, get_as<AsFloat<F16, 2>, kTail>);
    put(t, kGetBF16, Form::av, get_as<AsFloat<BF16, 2>, kTail>);
    put(t, kGetI32, Form::av, get_as<ToFloat<Raw>, kTail>);
    put(t, kGetI64, Form::av, get_as<LongFloat, kTail>);
    put(t, kGetU8, Form::av, get_as<ToFloat<AsInt<Int8<false>, 1>>, kTail>);
    put(t, kGetI8, Form::av, get_as<ToFloat<AsInt<Int8<true>, 1>>, kTail>);
    put(t, kGetU16, Form::av, get_as<ToFloat<AsInt<Int16<false>, 2>>, kTail>);
    put(t, kGetI16, Form::av, get_as<ToFloat<AsInt<Int16<true>, 2>>, kTail>);
    put(t, kGetBool, Form::av, get_as<ToFloat<Bool>, kTail>);
    put(t, kGetIntU8, Form::av, get_as<AsInt<Int8<false>, 1>, kTail>);
    put(t, kGetIntI8, Form::av, get_as<AsInt<Int8<true>, 1>, kTail>);
    put(t, kGetIntU16, Form::av, get_as<AsInt<Int16<false>, 2>, kTail>);
    put(t, kGetIntI16, Form::av, get_as<AsInt<Int16<true>, 2>, kTail>);
    put(t, kGetIntBool, Form::av, get_as<Bool, kTail>);
    put(t, kPut, Form::av, put_as<Raw, kTail>);
    put(t, kPutStream, Form::av, put_as<Streamed, kTail>);
    put(t, kPutF16, Form::av, put_as<AsFloat<F16, 2>, kTail>);
    put(t, kPutBF16, Form::av, put_as<AsFloat<BF16, 2>, kTail>);
    put(t, kPutI64, Form::av, put_as<AsInt<Int64, 8>, kTail>);
    put(t, kPut8, Form::av, put_as<AsInt<Int8<false>, 1>, kTail>);
    put(t, kPut16, Form::av, put_as<AsInt<Int16<false>, 2>, kTail>);
    put(t, kPutBool, Form::av, put_as<Bool, kTail>);
    put(t, kSpill, Form::av, put_as<Raw, false>);
    put(t, kPutScalar, Form::as, put_scalar);
    put(t, kLoop, Form::acc, loop);
    put(t, kReturn, Form::acc, stop);
  }
  template <bool kTail>
  static void add_reductions(Table::Functions& t) {
    auto add = [&](Op op, Fn fn) { put(t, static_cast<int>(op), Form::acc, fn); };
    add(Op::row_sum, reduce<SumF, kTail>);
    add(Op::row_mean, reduce<SumF, kTail>);
    add(Op::row_max, reduce<MaxF, kTail>);
    add(Op::row_min, reduce<MinF, kTail>);
    add(Op::row_prod, reduce<ProdF, kTail>);
    add(Op::row_isum, reduce<SumI, kTail>);
    add(Op::row_imax, reduce<MaxI, kTail>);
    add(Op::row_imin, reduce<MinI, kTail>);
  }
  static void add_unary(Table::Functions& t) {
    add1<Neg>(t, Op::neg), add1<Abs>(t, Op::abs), add1<Sqrt>(t, Op::sqrt), add1<Rsqrt>(t, Op::rsqrt);
    add1<Reciprocal>(t, Op::reciprocal), add1<Exp>(t, Op::exp), add1<Log>(t, Op::log), add1<Erf>(t, Op::erf);
    add1<Tanh>(t, Op::tanh), add1<Sigmoid>(t, Op::sigmoid), add1<Sin>(t, Op::sin), add1<Cos>(t, Op::cos);
    add1<Floor>(t, Op::floor), add1<Ceil>(t, Op::ceil), add1<Round>(t, Op::round), add1<Trunc>(t, Op::trunc);
    add1<Sign>(t, Op::sign), add1<Relu>(t, Op::relu), add1<Softplus>(t, Op::softplus), add1<Silu>(t, Op::silu);
    add1<Gelu>(t, Op::gelu), add1<GeluTanh>(t, Op::gelu_tanh), add1<Mish>(t, Op::mish);
    add1<Expm1>(t, Op::expm1), add1<Square>(t, Op::square);
    add1<IsNan>(t, Op::is_nan), add1<IsInf>(t, Op::is_inf), add1<IsPosInf>(t, Op::is_pos_inf);
    add1<IsNegInf>(t, Op::is_neg_inf), add1<ToI32>(t, Op::to_i32), add1<ToF32>(t, Op::to_f32);
    add1<Ineg>(t, Op::ineg), add1<Iabs>(t, Op::iabs), add1<Isign>(t, Op::isign), add1<Inot>(t, Op::inot);
    add1<Lnot>(t, Op::lnot), add1<ToBool>(t, Op::to_bool);
  }
  template <class P>
  static void add_binary(Table::Functions& t) {
    add2<P, Add>(t, Op::add), add2<P, Sub>(t, Op::sub), add2<P, Mul>(t, Op::mul), add2<P, Div>(t, Op::div);
    add2<P, Min>(t, Op::min), add2<P, Max>(t, Op::max), add2<P, Pow>(t, Op::pow), add2<P, Fmod>(t, Op::fmod);
    add2<P, Leaky>(t, Op::leaky), add2<P, Elu>(t, Op::elu);
    add2<P, Lt>(t, Op::lt), add2<P, Le>(t, Op::le), add2<P, Eq>(t, Op::eq), add2<P, Ne>(t, Op::ne);
    add2<P, Gt>(t, Op::gt), add2<P, Ge>(t, Op::ge);
    add2<P, Iadd>(t, Op::iadd), add2<P, Isub>(t, Op::isub), add2<P, Imul>(t, Op::imul);
    add2<P, Idiv>(t, Op::idiv), add2<P, Imod>(t, Op::imod), add2<P, Irem>(t, Op::irem);
    add2<P, Imin>(t, Op::imin), add2<P, Imax>(t, Op::imax), add2<P, Iand>(t, Op::iand);
    add2<P, Ior>(t, Op::ior), add2<P, Ixor>(t, Op::ixor), add2<P, Ishl>(t, Op::ishl), add2<P, Ishr>(t, Op::ishr);
    add2<P, Ilt>(t, Op::ilt), add2<P, Ile>(t, Op::ile), add2<P, Ieq>(t, Op::ieq), add2<P, Ine>(t, Op::ine);
    add2<P, Igt>(t, Op::igt), add2<P, Ige>(t, Op::ige);
    add3<P, Fma>(t, Op::fma), add3<P, Clip>(t, Op::clip), add3<P, Select>(t, Op::select);
  }
  static void fill_tables(Table::Functions& whole, Table::Functions& part) {
    add_unary(whole), add_unary(part);
    add_binary<Vec>(whole), add_binary<PartVec>(part);
    add_memory<false>(whole), add_memory<true>(part);
    add_reductions<false>(whole), add_reductions<true>(part);
  }
};

// --- reductions' ends ----------------------------------------------------------------------------

static void fill_lanes(float* lanes, float value, int n) {
  for (int j = 0; j < n; j += kLanes) store(lanes + j, set(value));
}

template <class F>
static float fold_lanes(const float* in, int n) {
  // Lane l with lane l + half, for half = 64, 32, ... 1. Halves that hold only the identity change
  // nothing, so short rows begin lower.
  alignas(64) float x[kSumLanes];
  int half = kSumLanes / 2;
  while (half >= n && half >= kLanes) half /= 2;
  if (half < kLanes) {
    store(x, load(in));
  } else {
    for (int j = 0; j < half; j += kLanes) store(x + j, F::f(load(in + j), load(in + j + half)));
    for (half /= 2; half >= kLanes; half /= 2)
      for (int j = 0; j < half; j += kLanes) store(x + j, F::f(load(x + j), load(x + j + half)));
  }
  // Within one vector: rotate by half through memory-free shuffles.
  V v = load(x);
  for (int h = kLanes / 2; h >= 1; h /= 2) {
    I index;
    for (int l = 0; l < kLanes; ++l) index[l] = l ^ h;
    v = F::f(v, shuffle(v, index));
  }
  return first(v);
}

static float fold(Op op, const float* lanes, int n) {
  switch (op) {
    case Op::row_max: return fold_lanes<MaxF>(lanes, n);
    case Op::row_min: return fold_lanes<MinF>(lanes, n);
    case Op::row_prod: return fold_lanes<ProdF>(lanes, n);
    case Op::row_isum: return fold_lanes<SumI>(lanes, n);
    case Op::row_imax: return fold_lanes<MaxI>(lanes, n);
    case Op::row_imin: return fold_lanes<MinI>(lanes, n);
    default: return fold_lanes<SumF>(lanes, n);
  }
}

using Wide = Code<std::make_index_sequence<GE_WIDE_VECTORS>>;
using Half = Code<std::make_index_sequence<GE_WIDE_VECTORS / 2>>;
using Narrow1 = Code<std::make_index_sequence<1>>;

static void set_tails(Context* c, int count) {
  c->tail = count;
  for (int j = 0; j < GE_WIDE_VECTORS; ++j) {
    Tail t = tail(count - j * kLanes);
    std::memcpy(c->tails + j * sizeof(Tail), &t, sizeof t);
  }
}

static Table make_table() {
  Table t{};
  t.wide_lanes = Wide::kStep;
  t.half_lanes = Half::kStep;
  t.narrow_lanes = Narrow1::kStep;
  Wide::fill_tables(t.wide, t.wide_tail);
  Half::fill_tables(t.half, t.half_tail);
  Narrow1::fill_tables(t.narrow, t.narrow_tail);
  t.run_wide = Wide::run;
  t.run_half = Half::run;
  t.run_narrow = Narrow1::run;
  t.set_tails = set_tails;
  t.fill = fill_lanes;
  t.fold = fold;
  return t;
}

#undef GE_UNARY
#undef GE_BINARY
#undef GE_TERNARY
#undef GE_FAR
#undef GE_ARGS
#undef GE_NEXT
