// move.copy: in 0 (any strides, broadcast 0 and negative included) to out 0 of the same sizes; types of
// equal bytes. No parameters.
#include "kernels/move/copy.h"

#include <algorithm>

#include "kernels/move/check.h"
#include "kernels/move/element_size.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.copy";
constexpr int64_t kPieceBytes = 64 << 10;
constexpr int64_t kSmallBytes = 4 << 10;
constexpr int64_t kTile = 16;  // elements; with 4 bytes a tile's side is a cache line

void add_outer_axis(Nest& n) {
  for (int i = n.rank; i > 0; --i) {
    n.dims[i] = n.dims[i - 1];
    for (int k = 0; k < n.operands; ++k) n.steps[k][i] = n.steps[k][i - 1];
  }
  ++n.rank;
  n.dims[0] = 1;
  for (int k = 0; k < n.operands; ++k) n.steps[k][0] = 0;
}

void move_axis_to_end(Nest& n, int axis) {
  for (int i = axis; i + 1 < n.rank; ++i) {
    std::swap(n.dims[i], n.dims[i + 1]);
    for (int k = 0; k < n.operands; ++k) std::swap(n.steps[k][i], n.steps[k][i + 1]);
  }
}

int64_t outer_count(const Nest& n, int outer_rank) {
  int64_t c = 1;
  for (int i = 0; i < outer_rank; ++i) c *= n.dims[i];
  return c;
}

// The axis, other than the last, along which the input is contiguous; -1 if tiles do not pay.
int tile_axis(const Nest& n, int64_t bytes) {
  int last = n.rank - 1;
  if (n.steps[1][last] != bytes || n.dims[last] < 4) return -1;
  for (int i = 0; i < last; ++i)
    if (n.steps[0][i] == bytes && n.dims[i] >= 4) return i;
  return -1;
}

void plan_tiles(CopyPlan& p, int axis) {
  Nest& n = p.nest;
  // Last two axes become a (contiguous in the input), b (contiguous in the output).
  move_axis_to_end(n, axis);
  move_axis_to_end(n, n.rank - 2);
  int64_t na = n.dims[n.rank - 2], nb = n.dims[n.rank - 1];
  int64_t side = std::max(kTile, 64 / p.element);
  p.block_a = 2 * side;
  p.block_b = std::clamp<int64_t>(kPieceBytes / (p.element * p.block_a) / kTile * kTile, kTile, (nb + kTile - 1) / kTile * kTile);
  while (p.block_a < na && 2 * p.block_a * p.block_b * p.element <= kPieceBytes) p.block_a *= 2;
  p.blocks_a = (na + p.block_a - 1) / p.block_a;
  p.blocks_b = (nb + p.block_b - 1) / p.block_b;
  p.units = outer_count(n, n.rank - 2) * p.blocks_a * p.blocks_b;
  p.unit_bytes = std::min(p.block_a, na) * std::min(p.block_b, nb) * p.element;
}

// Rows of both sides lie far apart: without this every line is waited for, one after the other.
template <bool kWrite>
inline void prefetch_lines(const std::byte* p, int64_t pitch, int64_t rows, int64_t bytes) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + r * pitch + i, kWrite);
}

void run_tiles(const CopyPlan& p, const std::byte* from, std::byte* to, int64_t begin, int64_t end) {
  const Nest& n = p.nest;
  int outer = n.rank - 2;
  int64_t na = n.dims[outer], nb = n.dims[outer + 1];
  int64_t from_pitch = n.steps[0][outer + 1], to_pitch = n.steps[1][outer];
  int64_t per_outer = p.blocks_a * p.blocks_b;
  Walker w(n, outer, begin / per_outer);
  int64_t inside = begin % per_outer;
  if (per_outer == 1 && na * nb * p.element <= kSmallBytes) {  // in the cache, or on the way there
    for (int64_t u = begin; u < end; ++u, w.next())
      transpose_tile(from + w.at[0], from_pitch, to + w.at[1], to_pitch, na, nb, p.element);
    return;
  }
  for (int64_t u = begin; u < end; ++u) {
    int64_t a0 = inside / p.blocks_b * p.block_a, b0 = inside % p.blocks_b * p.block_b;
    int64_t a1 = std::min(na, a0 + p.block_a), b1 = std::min(nb, b0 + p.block_b);
    int64_t side = std::max(kTile, 64 / p.element);
    for (int64_t b = b0; b < b1; b += side) {
      prefetch_lines<false>(from + w.at[0] + a0 * p.element + (b + side) * from_pitch, from_pitch, std::min(side, b1 - b - side), (a1 - a0) * p.element);
      prefetch_lines<true>(to + w.at[1] + a0 * to_pitch + (b + side) * p.element, to_pitch, b + side < b1 ? a1 - a0 : 0, side * p.element);
      for (int64_t a = a0; a < a1; a += side)
        transpose_tile(from + w.at[0] + a * p.element + b * from_pitch, from_pitch,
                       to + w.at[1] + a * to_pitch + b * p.element, to_pitch, std::min(side, a1 - a),
                       std::min(side, b1 - b), p.element);
    }
    if (++inside == per_outer) inside = 0, w.next();
  }
}

struct Plane {
  const std::byte* from;
  std::byte* to;
  int64_t rows, from_pitch, to_pitch;  // pitches in bytes
  int64_t n, from_step, to_step;       // along a row
};

template <class T, int kN>
void strided_short(const Plane& q) {
  for (int64_t r = 0; r < q.rows; ++r) {
    const std::byte* p = q.from + r * q.from_pitch;
    std::byte* t = q.to + r * q.to_pitch;
    T v[kN];
    for (int i = 0; i < kN; ++i) v[i] = load<T>(p + i * q.from_step);
    for (int i = 0; i < kN; ++i) store(t + i * q.to_step, v[i]);
  }
}

template <class T>
void strided_plane(const Plane& q) {
  constexpr int64_t kSize = sizeof(T);
  if (q.n == 2) return strided_short<T, 2>(q);
  if (q.n == 3) return strided_short<T, 3>(q);
  if (q.n == 4) return strided_short<T, 4>(q);
  for (int64_t r = 0; r < q.rows; ++r) {
    const std::byte* p = q.from + r * q.from_pitch;
    std::byte* t = q.to + r * q.to_pitch;
    if (q.from_step == 0 && q.to_step == kSize) {
      T v = load<T>(p);
      for (int64_t i = 0; i < q.n; ++i) store(t + i * kSize, v);
    } else if (q.to_step == kSize) {
      for (int64_t i = 0; i < q.n; ++i) store(t + i * kSize, load<T>(p + i * q.from_step));
    } else {
      for (int64_t i = 0; i < q.n; ++i) store(t + i * q.to_step, load<T>(p + i * q.from_step));
    }
  }
}

void run_plane(const CopyPlan& p, const Plane& q) {
  if (p.kind == CopyPlan::Kind::rows) {
    for (int64_t r = 0; r < q.rows; ++r) copy_row(q.to + r * q.to_pitch, q.from + r * q.from_pitch, q.n);
  } else {
    with_element(p.element, [&](auto tag) { strided_plane<decltype(tag)>(q); });
  }
}

void run_rows(const CopyPlan& p, const std::byte* from, std::byte* to, int64_t begin, int64_t end) {
  const Nest& n = p.nest;
  int row_axis = n.rank - 2;
  int64_t len = n.dims[n.rank - 1], step0 = n.steps[0][n.rank - 1], step1 = n.steps[1][n.rank - 1];
  if (p.pieces > 1) {
    Walker w(n, n.rank - 1, begin / p.pieces);
    int64_t k = begin % p.pieces;
    for (int64_t u = begin; u < end; ++u) {
      int64_t i = k * p.piece;
      run_plane(p, {from + w.at[0] + i * step0, to + w.at[1] + i * step1, 1, 0, 0, std::min(p.piece, len - i), step0, step1});
      if (++k == p.pieces) k = 0, w.next();
    }
    return;
  }
  int64_t per = n.dims[row_axis];
  Walker w(n, row_axis, begin / per);
  int64_t r = begin % per;
  for (int64_t u = begin; u < end;) {
    int64_t rows = std::min(per - r, end - u);
    int64_t pitch0 = n.steps[0][row_axis], pitch1 = n.steps[1][row_axis];
    run_plane(p, {from + w.at[0] + r * pitch0, to + w.at[1] + r * pitch1, rows, pitch0, pitch1, len, step0, step1});
    u += rows;
    r = 0;
    w.next();
  }
}


Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 1, 1));
  if (!same_dims(c.in[0], c.out[0]))
    return bad_call(kName, format("an input {} does not fit the place {} that it has in the output", dims_text(c.in[0]), dims_text(c.out[0])));
  if (size_of(c.in[0].dtype) != size_of(c.out[0].dtype)) return bad_call(kName, "element sizes differ");
  View views[] = {c.in[0], c.out[0]};
  auto plan = std::make_shared<CopyPlan>(plan_copy(Nest::of(views), size_of(c.in[0].dtype)));
  Work w;
  w.chunks = plan->chunks();
  w.state = std::move(plan);
  return w;
}

Status run(const Call& c, int64_t chunk) {
  run_copy_chunk(*static_cast<const CopyPlan*>(c.state), c.in[0].data, c.out[0].data, chunk);
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace

CopyPlan plan_copy(Nest nest, int64_t bytes) {
  nest.simplify();
  nest.sort_for(1);
  nest.simplify();
  CopyPlan p;
  p.element = bytes;
  if (nest.count() == 0) return p;
  int last = nest.rank - 1;
  bool contiguous = nest.rank > 0 && nest.steps[0][last] == bytes && nest.steps[1][last] == bytes;
  int64_t row = contiguous ? nest.dims[last] * bytes : 0;
  if (nest.rank > 1 && (row == 2 || row == 4 || row == 8 || row == 16)) {
    // A short row moves as one wider element.
    p.element = row;
    --nest.rank;
    contiguous = false;
  }
  while (nest.rank < 2) add_outer_axis(nest);
  p.nest = nest;
  if (contiguous) {
    last = p.nest.rank - 1;
    p.kind = CopyPlan::Kind::rows;
    p.element = 1;
    p.nest.dims[last] = row;
    p.nest.steps[0][last] = p.nest.steps[1][last] = 1;
  } else if (int axis = tile_axis(p.nest, p.element); axis >= 0) {
    p.kind = CopyPlan::Kind::tiles;
    plan_tiles(p, axis);
    return p;
  } else {
    p.kind = CopyPlan::Kind::strided;
  }
  int64_t len = p.nest.dims[p.nest.rank - 1];
  p.piece = std::min(len, kPieceBytes / p.element);
  p.pieces = (len + p.piece - 1) / p.piece;
  p.units = outer_count(p.nest, p.nest.rank - 1) * p.pieces;
  p.unit_bytes = p.piece * p.element;
  return p;
}

void run_copy(const CopyPlan& p, const std::byte* from, std::byte* to, int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (p.kind == CopyPlan::Kind::tiles) run_tiles(p, from, to, begin, end);
  else run_rows(p, from, to, begin, end);
}

}  // namespace ge::kernels::move
