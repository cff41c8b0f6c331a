// ref.Einsum: out = sum over products of its inputs. Every view is seen in one space of labels: an axis that
// an operand does not have is of size 1 there, and an axis of size 1 in out that is longer elsewhere is
// summed over. No parameters. Sums in double, integers in 64 bits, wrapping.
#include <vector>

#include "kernels/reference/access.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.Einsum";
constexpr size_t kMaxInputs = 16;

// The space of labels: the longest size of each axis.
struct Space {
  int rank = 0;
  int64_t kept[kMaxRank] = {}, summed[kMaxRank] = {};
};

Space space_of(const Call& c) {
  Space s;
  s.rank = c.out[0].rank;
  for (int a = 0; a < s.rank; ++a) {
    int64_t size = 1;
    for (auto& v : c.in)
      if (v.dims[a] != 1) size = v.dims[a];
    bool sum = c.out[0].dims[a] != size;
    s.kept[a] = sum ? 1 : size, s.summed[a] = sum ? size : 1;
  }
  return s;
}

View axes(const int64_t* dims, int rank) { return {nullptr, DType::none, rank, dims, dims}; }

int64_t chunks(const Space& s) {
  double sum = static_cast<double>(std::max<int64_t>(axes(s.summed, s.rank).count(), 1));
  return cut(axes(s.kept, s.rank).count(), 10 * sum);
}

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1));
  const View& y = c.out[0];
  if (c.in.size() > kMaxInputs) return bad(kName, "too many inputs");
  if (!plain_float(y.dtype) && !plain_integer(y.dtype)) return bad(kName, "takes numbers");
  int64_t count = 1;
  for (size_t i = 0; i < c.in.size(); ++i)
    if (!present(c, i) || c.in[i].dtype != y.dtype || c.in[i].rank != y.rank) return bad(kName, "an input is unlike the output");
  for (int a = 0; a < y.rank; ++a) {
    int64_t size = 1;
    for (auto& v : c.in) {
      if (v.dims[a] == 1) continue;
      if (size != 1 && size != v.dims[a]) return bad(kName, format("one label has the sizes {} and {}", size, v.dims[a]));
      size = v.dims[a];
    }
    if (y.dims[a] != size && y.dims[a] != 1) return bad(kName, "wrong size of output");
    if (size > 1 && count > kMaxCount / size) return bad(kName, "the space of labels is too large");
    count *= std::max<int64_t>(size, 1);
  }
  Work w;
  w.chunks = chunks(space_of(c));
  return w;
}

Status run(const Call& c, int64_t chunk) {
  const View& y = c.out[0];
  Space space = space_of(c);
  Walker<kMaxInputs + 1> outer(axes(space.kept, space.rank)), inner(axes(space.summed, space.rank));
  outer.follow(0, y);
  int n = static_cast<int>(c.in.size());
  for (int i = 0; i < n; ++i) outer.follow(i + 1, c.in[static_cast<size_t>(i)]), inner.follow(i + 1, c.in[static_cast<size_t>(i)]);
  int64_t terms = inner.count();
  Span s = slice(outer.count(), chunk, chunks(space));
  outer.seek(s.begin);
  for (int64_t o = s.begin; o < s.end; ++o, outer.next()) {
    double sum = 0;
    uint64_t whole = 0;
    inner.seek(0);
    for (int64_t t = 0; t < terms; ++t, inner.next()) {
      double product = 1;
      uint64_t product_int = 1;
      for (int i = 0; i < n; ++i) {
        int64_t at = outer.offset[i + 1] + inner.offset[i + 1];
        const View& v = c.in[static_cast<size_t>(i)];
        if (is_float(y.dtype)) product *= load(v, at);
        else product_int *= static_cast<uint64_t>(load_int(v, at));
      }
      sum += product, whole += product_int;
    }
    if (is_float(y.dtype)) store(y, outer.offset[0], sum);
    else store_int(y, outer.offset[0], static_cast<int64_t>(whole));
  }
  return ok();
}

const Register r({.name = kName, .unit = Unit::cube, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
