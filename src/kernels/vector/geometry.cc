#include "kernels/vector/geometry.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace ge::kernels::vector {
namespace {

constexpr int64_t kMaxCount = int64_t{1} << 46;  // elements; keeps every product of sizes and strides exact
constexpr int64_t kMaxStride = int64_t{1} << 56;

Error bad(std::string why) { return error(code::kParse, "vector.program: " + std::move(why)); }

class Builder {
 public:
  Builder(std::span<const View> in, std::span<const View> out) : inputs_(in.size()) {
    views_.assign(in.begin(), in.end());
    views_.insert(views_.end(), out.begin(), out.end());
  }

  Result<Geometry> run(int64_t row_axes) {
    for (const View& v : views_) {
      if (v.rank < 0 || v.rank > kMaxRank || (v.rank && (!v.dims || !v.strides))) return bad("an operand without a shape");
      rank_ = std::max(rank_, v.rank);
    }
    if (row_axes < 0 || row_axes > rank_) return bad(format("{} row axes of {}", row_axes, rank_));
    GE_RETURN_IF_ERROR(common());
    row_axes_ = static_cast<int>(row_axes);
    GE_RETURN_IF_ERROR(outputs());
    collect();
    return std::move(g_);
  }

 private:
  // The axis of v that stands under common axis a, or -1.
  static int own_axis(const View& v, int a, int rank) { return a - (rank - v.rank) >= 0 ? a - (rank - v.rank) : -1; }

  Status common() {
    dims_.assign(static_cast<size_t>(rank_), 1);
    int64_t count = 1;
    for (int a = 0; a < rank_; ++a) {
      int64_t& d = dims_[static_cast<size_t>(a)];
      for (const View& v : views_) {
        int own = own_axis(v, a, rank_);
        if (own < 0 || v.dims[own] == 1) continue;
        int64_t n = v.dims[own];
        if (n < 0 || n > kMaxCount || (d != 1 && d != n)) return bad(format("sizes {} and {} do not broadcast", d, n));
        if (magnitude(v.strides[own]) > static_cast<uint64_t>(kMaxStride / std::max<int64_t>(n, 1) / 8)) return bad("a stride that is too large");
        d = n;
      }
      if (d && count > kMaxCount / d) return bad("too many elements");
      if (d) count *= d;
    }
    return ok();
  }

  int64_t stride(const View& v, int a) const {  // in bytes
    int own = own_axis(v, a, rank_);
    return own < 0 || v.dims[own] == 1 ? 0 : v.strides[own] * size_of(v.dtype);
  }
  int64_t size(const View& v, int a) const {
    int own = own_axis(v, a, rank_);
    return own < 0 ? 1 : v.dims[own];
  }

  // Outputs cover the common shape; in the axes of the row they may have size 1 throughout.
  Status outputs() {
    int first = rank_ - row_axes_;
    for (int a = first; a < rank_; ++a) g_.row_size *= dims_[static_cast<size_t>(a)];
    g_.single.assign(views_.size(), false);
    for (size_t k = 0; k < views_.size(); ++k) {
      const View& v = views_[k];
      int64_t own = 1;
      for (int a = first; a < rank_; ++a) own *= size(v, a);
      bool one = row_axes_ && own == 1 && g_.row_size != 1;
      g_.single[k] = one;
      if (k < inputs_) continue;
      for (int a = 0; a < rank_; ++a) {
        if (a >= first && one) continue;
        int64_t d = dims_[static_cast<size_t>(a)];
        if (size(v, a) != d) return bad(format("output {} does not have the common shape", k - inputs_));
        // Row-major strides of an empty tensor may be 0.
        bool empty = std::find(dims_.begin(), dims_.end(), 0) != dims_.end();
        if (d > 1 && stride(v, a) == 0 && !empty) return bad(format("output {} has a stride of 0", k - inputs_));
      }
    }
    return ok();
  }

  void collect() {
    std::vector<Axis> outer, row;
    for (int a = 0; a < rank_; ++a) {
      int64_t d = dims_[static_cast<size_t>(a)];
      if (d == 1) continue;
      Axis x{d, {}};
      for (const View& v : views_) x.steps.push_back(stride(v, a));
      (a < rank_ - row_axes_ ? outer : row).push_back(std::move(x));
    }
    g_.outer = merge(std::move(outer));
    g_.row = merge(std::move(row));
    if (!row_axes_ && !g_.outer.empty()) {
      g_.row.push_back(std::move(g_.outer.back()));
      g_.outer.pop_back();
      g_.row_size = g_.row[0].size;
    }
    if (g_.row.empty()) g_.row.push_back({1, std::vector<int64_t>(views_.size(), 0)});
    for (const Axis& x : g_.outer) g_.rows *= x.size;
    if (row_axes_) return;
    // An output covers the row; its strides say nothing where it is empty.
    for (size_t k = 0; k < inputs_; ++k) g_.single[k] = g_.row_size != 1 && g_.row[0].steps[k] == 0;
  }

  // The stride that orders an axis: that of the first output that moves along it, else of any operand.
  int64_t order(const Axis& x) const {
    for (size_t k = inputs_; k < views_.size(); ++k)
      if (x.steps[k]) return std::abs(x.steps[k]);
    int64_t most = 0;
    for (int64_t s : x.steps) most = std::max(most, std::abs(s));
    return most;
  }

  std::vector<Axis> merge(std::vector<Axis> axes) const {
    std::stable_sort(axes.begin(), axes.end(), [&](const Axis& a, const Axis& b) { return order(a) > order(b); });
    std::vector<Axis> out;
    for (Axis& x : axes) {
      bool joins = !out.empty();
      for (size_t k = 0; joins && k < views_.size(); ++k) joins = out.back().steps[k] == x.steps[k] * x.size;
      if (joins) {
        x.size *= out.back().size;
        out.back() = std::move(x);
      } else {
        out.push_back(std::move(x));
      }
    }
    return out;
  }

  std::vector<View> views_;
  size_t inputs_;
  int rank_ = 0, row_axes_ = 0;
  std::vector<int64_t> dims_;
  Geometry g_;
};

}  // namespace

Result<Geometry> make_geometry(std::span<const View> in, std::span<const View> out, int64_t row_axes) {
  return Builder(in, out).run(row_axes);
}

}  // namespace ge::kernels::vector
