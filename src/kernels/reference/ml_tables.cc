// Look-ups and layouts of ai.onnx.ml, on any number type.
// ref.LabelEncoder: in [x, keys [n], values [n], default (one element)], out of x's shape: the value of the first key
//   that equals the element (NaN equals NaN), else the default. Integers compare as integers.
// ref.OneHotEncoder: in [x, categories [n] i64], out [x..., n] of 0 and 1; x is truncated to an integer. ints [zeros]:
//   whether an element may be in no category.
// ref.ArrayFeatureExtractor: in [x [..., n], index of count m], out [..., m] ([1, m] for a 1-D x): those of the last axis.
// ref.FeatureVectorizer: in [x_i [N, n_i] or [N]...], out [N, sum of ints]: the first ints[i] features of each, or zeros
//   where it has fewer.
#include "kernels/move/check.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kLabel = "ref.LabelEncoder", kHot = "ref.OneHotEncoder", kExtract = "ref.ArrayFeatureExtractor",
                           kVector = "ref.FeatureVectorizer";

Result<Work> prepare_label(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kLabel, 4, 1));
  const View &x = c.in[0], &keys = c.in[1], &values = c.in[2], &y = c.out[0];
  if (!plain_numeric(x.dtype) || !plain_numeric(keys.dtype) || !plain_numeric(y.dtype) || values.dtype != y.dtype || c.in[3].dtype != y.dtype)
    return bad(kLabel, "takes numbers");
  if (keys.rank != 1 || values.rank != 1 || keys.dims[0] != values.dims[0] || c.in[3].count() != 1 || !same_dims(x, y)) return bad(kLabel, "wrong shapes");
  Work w;
  w.chunks = cut(y.count(), 10 + 4.0 * static_cast<double>(std::min<int64_t>(keys.dims[0], 1 << 20)));
  return w;
}
Status run_label(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &keys = c.in[1], &values = c.in[2], &y = c.out[0];
  bool whole = !plain_float(x.dtype) && !plain_float(keys.dtype), whole_out = !plain_float(y.dtype);
  Span s = slice(y.count(), chunk, cut(y.count(), 10 + 4.0 * static_cast<double>(std::min<int64_t>(keys.dims[0], 1 << 20))));
  for (int64_t i = s.begin; i < s.end; ++i) {
    int64_t from = place_linear(x, 0, x.rank, i), to = place_linear(y, 0, y.rank, i), k = 0;
    auto equal = [&](int64_t at) {
      if (whole) return load_int(x, from) == load_int(keys, at);
      double a = load(x, from), b = load(keys, at);
      return a == b || (a != a && b != b);
    };
    while (k < keys.dims[0] && !equal(k * keys.strides[0])) ++k;
    const View& source = k < keys.dims[0] ? values : c.in[3];
    int64_t at = k < keys.dims[0] ? k * values.strides[0] : 0;
    if (whole_out) store_int(y, to, load_int(source, at));
    else store(y, to, load(source, at));
  }
  return ok();
}

Result<Work> prepare_hot(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kHot, 2, 1, 1));
  const View &x = c.in[0], &cats = c.in[1], &y = c.out[0];
  if (!plain_numeric(x.dtype) || cats.dtype != DType::i64 || !plain_float(y.dtype)) return bad(kHot, "wrong types");
  if (cats.rank != 1 || y.rank != x.rank + 1 || !std::equal(x.dims, x.dims + x.rank, y.dims) || y.dims[x.rank] != cats.dims[0])
    return bad(kHot, "wrong shapes");
  return Work{};
}
Status run_hot(const Call& c, int64_t) {
  const View &x = c.in[0], &cats = c.in[1], &y = c.out[0];
  for (int64_t i = 0, n = x.count(); i < n; ++i) {
    int64_t v = load_int(x, place_linear(x, 0, x.rank, i)), to = place_linear(y, 0, x.rank, i);
    bool known = false;
    for (int64_t k = 0; k < cats.dims[0]; ++k) {
      bool is = load_int(cats, k * cats.strides[0]) == v;
      known = known || is;
      store(y, to + k * y.strides[x.rank], is);
    }
    if (!known && !c.ints[0]) return error(code::kRunFailed, format("OneHotEncoder: {} is none of the categories", v));
  }
  return ok();
}

Result<Work> prepare_extract(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kExtract, 2, 1));
  const View &x = c.in[0], &index = c.in[1], &y = c.out[0];
  if (!plain_numeric(x.dtype) || y.dtype != x.dtype || !move::is_index(index.dtype)) return bad(kExtract, "wrong types");
  if (x.rank < 1 || y.rank != std::max(x.rank, 2) || y.dims[y.rank - 1] != index.count()) return bad(kExtract, "wrong shapes");
  for (int a = 0; a + 1 < y.rank; ++a)
    if (y.dims[a] != (x.rank == 1 ? 1 : x.dims[a])) return bad(kExtract, "wrong shapes");
  return Work{};
}
Status run_extract(const Call& c, int64_t) {
  const View &x = c.in[0], &index = c.in[1], &y = c.out[0];
  int64_t rows = count_axes(x, 0, x.rank - 1), size = x.dims[x.rank - 1];
  bool whole = !plain_float(x.dtype);
  for (int64_t m = 0, n = index.count(); m < n; ++m) {
    int64_t k = move::load_index(index, place_linear(index, 0, index.rank, m));
    if (k < 0 || k >= size) return error(code::kRunFailed, format("ArrayFeatureExtractor: index {} is outside 0..{}", k, size - 1));
    for (int64_t r = 0; r < rows; ++r) {
      int64_t from = place_linear(x, 0, x.rank - 1, r) + k * x.strides[x.rank - 1];
      int64_t to = place_linear(y, 0, y.rank - 1, r) + m * y.strides[y.rank - 1];
      if (whole) store_int(y, to, load_int(x, from));
      else store(y, to, load(x, from));
    }
  }
  return ok();
}

Result<Work> prepare_vector(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kVector, 1, 1));
  const View& y = c.out[0];
  if (c.ints.size() != c.in.size() || !plain_float(y.dtype) || y.rank != 2) return bad(kVector, "wrong output or parameters");
  int64_t left = y.dims[1];
  for (size_t i = 0; i < c.in.size(); ++i) {
    if (!present(c, i) || !plain_numeric(c.in[i].dtype) || c.in[i].rank < 1 || c.in[i].rank > 2 || c.in[i].dims[0] != y.dims[0])
      return bad(kVector, format("input {} does not fit", i));
    if (c.ints[i] < 0 || c.ints[i] > left) return bad(kVector, "wrong width of output");
    left -= c.ints[i];
  }
  return left ? Result<Work>(bad(kVector, "wrong width of output")) : Result<Work>(Work{});
}
Status run_vector(const Call& c, int64_t) {
  const View& y = c.out[0];
  int64_t first = 0;
  for (size_t i = 0; i < c.in.size(); first += c.ints[i++]) {
    const View& x = c.in[i];
    int64_t width = x.rank == 2 ? x.dims[1] : 1, step = x.rank == 2 ? x.strides[1] : 0;
    for (int64_t n = 0; n < y.dims[0]; ++n)
      for (int64_t k = 0; k < c.ints[i]; ++k)
        store(y, place(y, n, first + k), k < width ? load(x, n * x.strides[0] + k * step) : 0);
  }
  return ok();
}

const Register r1({.name = kLabel, .prepare = prepare_label, .run = run_label});
const Register r2({.name = kHot, .prepare = prepare_hot, .run = run_hot});
const Register r3({.name = kExtract, .prepare = prepare_extract, .run = run_extract});
const Register r4({.name = kVector, .prepare = prepare_vector, .run = run_vector});

}  // namespace
}  // namespace ge::kernels::reference
