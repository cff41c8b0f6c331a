// Rows for reference kernels: an index space cut into its outer axes and the axes that form a row.
#pragma once

#include "kernels/reference/access.h"

namespace ge::kernels::reference {

// Offsets of up to N views at (outer index, row index); every view has the space's rank, or is broadcast to
// it from the right.
template <int N>
struct Rows {
  Walker<N> outer, row;

  // Axis a belongs to the row where bit a of `row_axes` is set.
  Rows(const View& space, uint32_t row_axes) : outer(space), row(space) {
    for (int a = 0; a < space.rank; ++a) (row_axes >> a & 1 ? outer : row).dims[a] = 1;
  }
  void follow(int n, const View& v) { outer.follow(n, v), row.follow(n, v); }
  int64_t outer_count() const { return outer.count(); }
  int64_t row_count() const { return row.count(); }
  // f(offsets of the N views) for each element of the current row.
  template <class F>
  void each(F f) {
    row.seek(0);
    for (int64_t i = 0, n = row.count(); i < n; ++i, row.next()) {
      int64_t at[N];
      for (int k = 0; k < N; ++k) at[k] = outer.offset[k] + row.offset[k];
      f(i, at);
    }
  }
};

inline uint32_t axes_from(int first, int last) { return ((1u << last) - 1) & ~((1u << first) - 1); }

}  // namespace ge::kernels::reference
