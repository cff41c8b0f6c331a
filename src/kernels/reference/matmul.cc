// ref.MatMul and ref.Gemm: plain products, every numeric dtype, any strides; sums in double, integers in
// 64 bits, wrapping. matmul.typed: the same for f64 and integers, a row of sums at a time.
//
// ref.MatMul, matmul.typed: in A [batch..., M, K] or [K], B [batch..., K, N] or [K], out as numpy's matmul.
// ref.Gemm: in A, B, C or absent (C broadcasts to out); ints [transA, transB], floats [alpha, beta].
#include <type_traits>

#include "kernels/reference/access.h"

namespace ge::kernels::reference {
namespace {

// out[batch, m, n] = sum over k. Strides of absent axes are 0.
struct Product {
  View batch;                        // the batch axes of out
  int64_t dims[kMaxRank], strides_a[kMaxRank], strides_b[kMaxRank], strides_o[kMaxRank];
  int lead = 0;
  int64_t m = 1, n = 1, k = 0, batches = 1;
  int64_t am = 0, ak = 0, bk = 0, bn = 0, om = 0, on = 0;

  void offsets(int64_t index, int64_t& a, int64_t& b, int64_t& o) const {
    a = b = o = 0;
    for (int i = lead; i-- > 0;) {
      int64_t digit = index % dims[i];
      index /= dims[i];
      a += digit * strides_a[i], b += digit * strides_b[i], o += digit * strides_o[i];
    }
  }
};

bool number(DType t) { return plain_float(t) || plain_integer(t); }

// Fills p from numpy's matmul of checked views.
Status matmul_shape(const Call& c, std::string_view kernel, Product& p) {
  GE_RETURN_IF_ERROR(check_call(c, kernel, 2, 1));
  const View &a = c.in[0], &b = c.in[1], &o = c.out[0];
  if (!number(a.dtype) || b.dtype != a.dtype || o.dtype != a.dtype) return bad(kernel, "operands of different or wrong types");
  if (a.rank < 1 || b.rank < 1) return bad(kernel, "an operand is a scalar");
  p.k = a.dim(-1), p.ak = a.stride(-1);
  if (a.rank > 1) p.m = a.dim(-2), p.am = a.stride(-2);
  p.bk = b.stride(b.rank > 1 ? -2 : -1);
  if (b.rank > 1) p.n = b.dim(-1), p.bn = b.stride(-1);
  if (b.dim(b.rank > 1 ? -2 : -1) != p.k) return bad(kernel, "inner sizes differ");
  int lead_a = std::max(a.rank - 2, 0), lead_b = std::max(b.rank - 2, 0);
  p.lead = std::max(lead_a, lead_b);
  int expect = p.lead + (a.rank > 1) + (b.rank > 1);
  if (o.rank != expect) return bad(kernel, "wrong rank of output");
  for (int i = 0; i < p.lead; ++i) {
    int ia = i - (p.lead - lead_a), ib = i - (p.lead - lead_b);
    int64_t da = ia < 0 ? 1 : a.dims[ia], db = ib < 0 ? 1 : b.dims[ib];
    p.dims[i] = da == 1 ? db : da;
    if ((db != 1 && db != p.dims[i]) || o.dims[i] != p.dims[i]) return bad(kernel, "batch sizes do not fit");
    p.strides_a[i] = da == 1 ? 0 : a.strides[ia];
    p.strides_b[i] = db == 1 ? 0 : b.strides[ib];
    p.strides_o[i] = o.strides[i];
    p.batches *= p.dims[i];
  }
  int axis = p.lead;
  if (a.rank > 1) {
    if (o.dims[axis] != p.m) return bad(kernel, "wrong size of output");
    p.om = o.strides[axis++];
  }
  if (b.rank > 1) {
    if (o.dims[axis] != p.n) return bad(kernel, "wrong size of output");
    p.on = o.strides[axis];
  }
  return ok();
}

// Units are rows of the output: batches * m.
int64_t row_chunks(const Product& p, double cycles) {
  return cut(p.batches * p.m, static_cast<double>(p.n) * (static_cast<double>(p.k) * cycles + 10));
}

double dot_float(const View& a, int64_t ia, const View& b, int64_t ib, const Product& p) {
  double s = 0;
  for (int64_t k = 0; k < p.k; ++k) s += load(a, ia + k * p.ak) * load(b, ib + k * p.bk);
  return s;
}
int64_t dot_int(const View& a, int64_t ia, const View& b, int64_t ib, const Product& p) {
  uint64_t s = 0;
  for (int64_t k = 0; k < p.k; ++k)
    s += static_cast<uint64_t>(load_int(a, ia + k * p.ak)) * static_cast<uint64_t>(load_int(b, ib + k * p.bk));
  return static_cast<int64_t>(s);
}

Result<Work> prepare_matmul(const Call& c) {
  Product p;
  GE_RETURN_IF_ERROR(matmul_shape(c, "ref.MatMul", p));
  Work w;
  w.chunks = p.n == 0 ? 0 : row_chunks(p, 4);
  return w;
}

Status run_matmul(const Call& c, int64_t chunk) {
  Product p;
  GE_RETURN_IF_ERROR(matmul_shape(c, "ref.MatMul", p));
  Span s = slice(p.batches * p.m, chunk, row_chunks(p, 4));
  for (int64_t r = s.begin; r < s.end; ++r) {
    int64_t a, b, o;
    p.offsets(r / p.m, a, b, o);
    a += r % p.m * p.am, o += r % p.m * p.om;
    for (int64_t j = 0; j < p.n; ++j) {
      int64_t ib = b + j * p.bn, io = o + j * p.on;
      if (is_float(c.in[0].dtype)) store(c.out[0], io, dot_float(c.in[0], a, c.in[1], ib, p));
      else store_int(c.out[0], io, dot_int(c.in[0], a, c.in[1], ib, p));
    }
  }
  return ok();
}

Status gemm_shape(const Call& c, Product& p) {
  constexpr std::string_view kName = "ref.Gemm";
  GE_RETURN_IF_ERROR(check_call(c, kName, 2, 1, 2, 2));
  const View &a = c.in[0], &b = c.in[1], &o = c.out[0];
  if (!number(a.dtype) || b.dtype != a.dtype || o.dtype != a.dtype) return bad(kName, "operands of different or wrong types");
  if (a.rank != 2 || b.rank != 2 || o.rank != 2) return bad(kName, "operands must be matrices");
  int ta = c.ints[0] != 0, tb = c.ints[1] != 0;
  p.m = a.dims[ta], p.am = a.strides[ta], p.k = a.dims[1 - ta], p.ak = a.strides[1 - ta];
  p.n = b.dims[1 - tb], p.bn = b.strides[1 - tb], p.bk = b.strides[tb];
  p.om = o.strides[0], p.on = o.strides[1];
  if (b.dims[tb] != p.k) return bad(kName, "inner sizes differ");
  if (o.dims[0] != p.m || o.dims[1] != p.n) return bad(kName, "wrong size of output");
  if (present(c, 2) && (c.in[2].dtype != a.dtype || !broadcasts_to(c.in[2], o))) return bad(kName, "C does not broadcast to the output");
  return ok();
}

Result<Work> prepare_gemm(const Call& c) {
  Product p;
  GE_RETURN_IF_ERROR(gemm_shape(c, p));
  Work w;
  w.chunks = p.n == 0 ? 0 : row_chunks(p, 4);
  return w;
}

Status run_gemm(const Call& c, int64_t chunk) {
  Product p;
  GE_RETURN_IF_ERROR(gemm_shape(c, p));
  double alpha = c.floats[0], beta = c.floats[1];
  int64_t cm = 0, cn = 0;
  if (present(c, 2)) {
    const View& v = c.in[2];
    if (v.rank > 1 && v.dims[0] != 1) cm = v.strides[0];
    if (v.rank > 0 && v.dim(-1) != 1) cn = v.stride(-1);
  }
  bool exact = !is_float(c.in[0].dtype) && alpha == 1 && beta == 1;
  Span s = slice(p.m, chunk, row_chunks(p, 4));
  for (int64_t i = s.begin; i < s.end; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      int64_t ia = i * p.am, ib = j * p.bn, io = i * p.om + j * p.on, ic = i * cm + j * cn;
      if (exact) {
        uint64_t x = static_cast<uint64_t>(dot_int(c.in[0], ia, c.in[1], ib, p));
        if (present(c, 2)) x += static_cast<uint64_t>(load_int(c.in[2], ic));
        store_int(c.out[0], io, static_cast<int64_t>(x));
      } else {
        double x = alpha * dot_float(c.in[0], ia, c.in[1], ib, p);
        if (present(c, 2)) x += beta * load(c.in[2], ic);
        store(c.out[0], io, x);
      }
    }
  return ok();
}

// --- matmul.typed ---

Result<Work> prepare_typed(const Call& c) {
  Product p;
  GE_RETURN_IF_ERROR(matmul_shape(c, "matmul.typed", p));
  DType t = c.in[0].dtype;
  if (bits(t) < 32) return bad("matmul.typed", "takes types of 32 and 64 bits");
  Work w;
  w.chunks = p.n == 0 ? 0 : row_chunks(p, 0.5);
  return w;
}

// Sums of one row in place in the output: it is zeroed, then row k of B times a[k] is added. Integers
// are computed unsigned, so that overflow wraps.
template <class T>
void typed_rows(const Call& c, const Product& p, Span s) {
  const T *a = c.in[0].as<T>(), *b = c.in[1].as<T>();
  T* o = c.out[0].as<T>();
  for (int64_t r = s.begin; r < s.end; ++r) {
    int64_t ia, ib, io;
    p.offsets(r / p.m, ia, ib, io);
    const T* row_a = a + ia + r % p.m * p.am;
    T* row = o + io + r % p.m * p.om;
    for (int64_t j = 0; j < p.n; ++j) row[j * p.on] = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const T x = row_a[k * p.ak];
      const T* row_b = b + ib + k * p.bk;
      if (p.bn == 1 && p.on == 1)
        for (int64_t j = 0; j < p.n; ++j) row[j] = static_cast<T>(row[j] + x * row_b[j]);
      else
        for (int64_t j = 0; j < p.n; ++j) row[j * p.on] = static_cast<T>(row[j * p.on] + x * row_b[j * p.bn]);
    }
  }
}

Status run_typed(const Call& c, int64_t chunk) {
  Product p;
  GE_RETURN_IF_ERROR(matmul_shape(c, "matmul.typed", p));
  Span s = slice(p.batches * p.m, chunk, row_chunks(p, 0.5));
  DType t = c.in[0].dtype;
  if (t == DType::f32) typed_rows<float>(c, p, s);
  else if (t == DType::f64) typed_rows<double>(c, p, s);
  else if (bits(t) == 64) typed_rows<uint64_t>(c, p, s);
  else typed_rows<uint32_t>(c, p, s);
  return ok();
}

const Register r1({.name = "ref.MatMul", .unit = Unit::cube, .prepare = prepare_matmul, .run = run_matmul});
const Register r2({.name = "ref.Gemm", .unit = Unit::cube, .prepare = prepare_gemm, .run = run_gemm});
const Register r3({.name = "matmul.typed", .unit = Unit::cube, .prepare = prepare_typed, .run = run_typed});

}  // namespace
}  // namespace ge::kernels::reference
