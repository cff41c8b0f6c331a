// move.append: a cache with new rows in it. in: past [B, H, P, D] or absent, new [B, H, S, D], first place of each batch
// entry's new rows [B] (i32 or i64); out [B, H, T, D]. Row j of the output is new row j - place where there is such a
// one, else row j of the past, else zeros. The past may be the first part of the output's memory: then it stays there,
// and only new rows are written. Any plain type, any strides.
#include <algorithm>
#include <cstring>

#include "kernels/move/check.h"
#include "kernels/move/copy.h"

namespace ge::kernels::move {
namespace {

constexpr std::string_view kName = "move.append";

struct Plan {
  int64_t heads = 0, past = 0, fresh = 0, total = 0, width = 0, bytes = 1, chunks = 0;
};

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 0, 3, 1, 1));
  if (!has_input(c, 1) || !has_input(c, 2)) return bad_call(kName, "new rows or their places are missing");
  const View &x = c.in[1], &y = c.out[0], &at = c.in[2];
  if (x.rank != 4 || y.rank != 4 || x.dtype != y.dtype || x.dims[0] != y.dims[0] || x.dims[1] != y.dims[1] || x.dims[3] != y.dims[3])
    return bad_call(kName, "new rows and output do not fit");
  if (has_input(c, 0)) {
    const View& past = c.in[0];
    if (past.rank != 4 || past.dtype != y.dtype || past.dims[0] != y.dims[0] || past.dims[1] != y.dims[1] || past.dims[3] != y.dims[3] || past.dims[2] > y.dims[2])
      return bad_call(kName, "past and output do not fit");
  }
  if (!is_index(at.dtype) || at.rank != 1 || at.dims[0] != y.dims[0]) return bad_call(kName, "not one place for each batch entry");
  auto p = std::make_shared<Plan>();
  p->heads = y.dims[0] * y.dims[1], p->width = y.dims[3], p->bytes = size_of(y.dtype);
  p->past = has_input(c, 0) ? c.in[0].dims[2] : 0, p->fresh = x.dims[2], p->total = y.dims[2];
  Work w;
  w.chunks = p->chunks = y.count() == 0 ? 0 : chunks_for(p->heads, p->total * p->width * p->bytes);
  w.state = std::move(p);
  return w;
}

void copy_rows(const Plan& p, const std::byte* from, int64_t from_row, int64_t from_step, std::byte* to, int64_t to_row, int64_t to_step, int64_t rows) {
  bool contiguous = (from_step == 1 && to_step == 1) || p.width == 1;
  if (contiguous && from_row == p.width && to_row == p.width) return static_cast<void>(std::memcpy(to, from, static_cast<size_t>(rows * p.width * p.bytes)));
  for (int64_t j = 0; j < rows; ++j, from += from_row * p.bytes, to += to_row * p.bytes) {
    if (contiguous) {
      copy_row(to, from, p.width * p.bytes);
      continue;
    }
    for (int64_t i = 0; i < p.width; ++i) std::memcpy(to + i * to_step * p.bytes, from + i * from_step * p.bytes, static_cast<size_t>(p.bytes));
  }
}

void clear_rows(const Plan& p, const View& y, std::byte* to, int64_t from, int64_t end) {
  for (int64_t j = from; j < end; ++j)
    for (int64_t i = 0; i < p.width; ++i) std::memset(to + (j * y.strides[2] + i * y.strides[3]) * p.bytes, 0, static_cast<size_t>(p.bytes));
}

Status run(const Call& c, int64_t chunk) {
  const Plan& p = *static_cast<const Plan*>(c.state);
  const View &x = c.in[1], &y = c.out[0], &at = c.in[2];
  const View* past = has_input(c, 0) ? &c.in[0] : nullptr;
  const bool there = past && past->data == y.data;
  Span own = chunk_span(p.heads, p.chunks, chunk);
  for (int64_t u = own.begin; u < own.end; ++u) {
    const int64_t b = u / y.dims[1], h = u % y.dims[1];
    const int64_t place = load_index(at, b * at.strides[0]);
    // Rows [first, last) are new; a place far outside leaves none.
    const int64_t first = std::clamp<int64_t>(place, 0, p.total);
    const int64_t last = place >= p.total || place <= -p.fresh ? first : std::clamp<int64_t>(place + p.fresh, first, p.total);
    std::byte* to = y.data + (b * y.strides[0] + h * y.strides[1]) * p.bytes;
    if (past && !there) {
      const std::byte* from = past->data + (b * past->strides[0] + h * past->strides[1]) * p.bytes;
      auto keep = [&](int64_t begin, int64_t end) {
        if (begin < end) copy_rows(p, from + begin * past->strides[2] * p.bytes, past->strides[2], past->strides[3], to + begin * y.strides[2] * p.bytes, y.strides[2], y.strides[3], end - begin);
      };
      keep(0, std::min(first, p.past));
      keep(last, p.past);
    }
    clear_rows(p, y, to, p.past, first);
    clear_rows(p, y, to, std::max(p.past, last), p.total);
    if (first < last)
      copy_rows(p, x.data + (b * x.strides[0] + h * x.strides[1] + (first - place) * x.strides[2]) * p.bytes, x.strides[2], x.strides[3],
                to + first * y.strides[2] * p.bytes, y.strides[2], y.strides[3], last - first);
  }
  return ok();
}

const Register r({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::move
