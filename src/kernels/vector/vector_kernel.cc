// "vector.program": a vector program over whole tensors.
//   in[0..n-1], out[0..m-1]: any rank and strides; everything broadcasts to one common shape as in numpy.
//   ints: [row_axes]: how many trailing axes of the common shape form the row. 0: elementwise only, the
//     kernel chooses the row. Outputs have the common shape; with row_axes >= 1 an output may have size 1
//     in all of the row's axes (then what is stored must be the same in the whole row).
//   blob: encode(program), inputs and outputs in the order of in and out.
// An output may be the memory of an input of the same sizes, strides and element size.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "kernels/kernel.h"
#include "kernels/vector/block_copy.h"
#include "kernels/vector/geometry.h"
#include "kernels/vector/program.h"
#include "kernels/vector/short_rows.h"

namespace ge::kernels::vector {
namespace {

constexpr int64_t kBlockElements = 8192;       // of a unit of work, about
constexpr int64_t kBufferedElements = 2048;    // the same where operands are copied to dense buffers
constexpr int64_t kCopyBytes = 1 << 20;        // of one buffer that holds rows for a transposing copy, about
constexpr int64_t kStreamBytes = 32 << 20;     // outputs from this size on bypass the cache
constexpr double kChunkCycles = 60000;

enum class Access : uint8_t {
  direct,    // the tile reads or writes the view
  copied,    // through a dense buffer, block by block
  repeated,  // an input that does not move along rows: copied once for all blocks of rows
};

struct Plan {
  std::shared_ptr<const ShortRows> short_rows;   // does all of it, if there
  Geometry g;
  std::shared_ptr<const Compiled> compiled;
  std::vector<Access> access;
  std::vector<int64_t> element;     // bytes, for each operand
  std::vector<int64_t> buffer;      // offset in the scratch, for each operand
  int64_t tile_rows = 1;            // size of the axis that makes the rows of tiles
  int64_t block_rows = 1, block_cols = 1, row_blocks = 1, col_blocks = 1, units = 0;
  int64_t chunks = 0, scratch = 0;
  size_t inputs = 0;
  bool joined = false;              // the rows of a tile are one long row

  int64_t buffer_rows(size_t k) const { return access[k] == Access::repeated && !joined ? 1 : block_rows; }
  int64_t row_step(size_t k) const { return g.outer.empty() ? 0 : g.outer.back().steps[k]; }
};


// The row of operand k as it lies: one axis, dense.
bool dense_row(const Plan& p, size_t k) {
  return p.g.row.size() == 1 && (p.g.row_size == 1 || p.g.row[0].steps[k] == p.element[k]);
}
bool dense_rows(const Plan& p, size_t k) {
  return dense_row(p, k) && (p.tile_rows == 1 || p.row_step(k) == p.element[k] * p.g.row_size);
}

// Short rows of an elementwise program are worth joining to long ones, through dense buffers for the
// operands that are not dense over rows, when those are few or cheap to copy.
bool joins_rows(const Plan& p) {
  if (p.tile_rows == 1 || p.g.row_size > 256) return false;
  bool outputs_dense = true, others_repeat = true;
  for (size_t k = 0; k < p.element.size(); ++k) {
    if (dense_rows(p, k)) continue;
    if (k >= p.inputs) outputs_dense = false;
    else if (p.row_step(k) != 0) others_repeat = false;
  }
  if (p.g.row_size < 8) return true;
  return outputs_dense && (others_repeat || p.g.row_size < 48);
}

void choose_access(Plan& p, bool elementwise) {
  bool join = elementwise && joins_rows(p);
  p.access.assign(p.element.size(), Access::direct);
  bool copies = false;
  for (size_t k = 0; k < p.element.size(); ++k) {
    bool direct = join ? dense_rows(p, k) : p.g.single[k] || dense_row(p, k);
    if (direct) continue;
    bool repeats = k < p.inputs && p.row_step(k) == 0;
    p.access[k] = repeats ? Access::repeated : Access::copied;
    copies = true;
  }
  p.joined = join;
  if (join) std::fill(p.g.single.begin(), p.g.single.end(), false);
  int64_t elements = copies ? kBufferedElements : kBlockElements;
  p.block_cols = elementwise ? std::min(p.g.row_size, elements) : p.g.row_size;
  p.block_rows = std::clamp<int64_t>(elements / std::max<int64_t>(p.block_cols, 1), 1, p.tile_rows);
  // Copies that turn columns into rows want a cache line of rows.
  if (copies && !join) {
    int64_t fits = kCopyBytes / std::max<int64_t>(p.block_cols * 4, 1);
    p.block_rows = std::clamp<int64_t>(std::clamp<int64_t>(fits, p.block_rows, 16), 1, p.tile_rows);
  }
  p.row_blocks = ceil_div(p.tile_rows, p.block_rows);
  p.col_blocks = p.block_cols ? ceil_div(p.g.row_size, p.block_cols) : 1;
  p.units = p.row_blocks * p.col_blocks;
  for (size_t a = 0; a + 1 < p.g.outer.size(); ++a) p.units *= p.g.outer[a].size;
}

void choose_chunks(Plan& p, double cycles_per_element) {
  double bytes = 0;
  for (int64_t e : p.element) bytes += static_cast<double>(e);
  double copies = 0;
  for (Access a : p.access) copies += a == Access::direct ? 0 : 1.5;
  double each = std::max(cycles_per_element, bytes / 10) + copies;
  double total = static_cast<double>(p.g.rows) * (static_cast<double>(p.g.row_size) * each + 20);
  int64_t n = static_cast<int64_t>(std::min(total / kChunkCycles, 512.0));
  n = std::min(n, p.units);
  p.chunks = n < 2 ? 1 : n / 2 * 2;
}

void lay_out(Plan& p) {
  int64_t at = round64(scratch_bytes(*p.compiled, p.block_cols));  // joined rows have no temporaries
  p.buffer.assign(p.element.size(), 0);
  for (size_t k = 0; k < p.element.size(); ++k) {
    if (p.access[k] == Access::direct) continue;
    p.buffer[k] = at;
    at += round64(p.buffer_rows(k) * p.block_cols * p.element[k]);
  }
  p.scratch = at;
}

bool streams(const Plan& p) {
  bool large = false;
  for (size_t k = p.inputs; k < p.element.size(); ++k) {
    if (p.access[k] != Access::direct) return false;
    large |= p.g.rows * p.g.row_size >= kStreamBytes / p.element[k];
  }
  return large;
}

Result<Work> prepare(const Call& call) {
  GE_TRY(Program program, decode(call.blob));
  if (call.in.size() != program.inputs || call.out.size() != program.outputs || call.out.empty())
    return error(code::kParse, format("vector.program: {} inputs and {} outputs for a program of {} and {}", call.in.size(),
                                      call.out.size(), program.inputs, program.outputs));
  if (call.ints.size() != 1) return error(code::kParse, "vector.program: expects one number, the count of row axes");
  bool reduces = program.phases.size() > 1;
  for (const auto& phase : program.phases)
    for (const Inst& i : phase) reduces |= is_reduction(i.op);
  if (reduces && call.ints[0] == 0) return error(code::kParse, "vector.program: a program with row reductions needs row axes");

  for (auto* views : {&call.in, &call.out})
    for (const View& v : *views)
      if (size_of(v.dtype) <= 0) return error(code::kParse, "vector.program: an operand is absent");
  auto p = std::make_shared<Plan>();
  auto* before = static_cast<const Plan*>(call.state);   // of the same task for other sizes
  GE_TRY(p->g, make_geometry(call.in, call.out, call.ints[0]));
  p->inputs = call.in.size();
  for (const View& v : call.in) p->element.push_back(size_of(v.dtype));
  for (const View& v : call.out) p->element.push_back(size_of(v.dtype));
  auto specs = [&] {
    std::vector<OperandSpec> s;
    for (size_t k = 0; k < p->element.size(); ++k)
      s.push_back({k < p->inputs ? call.in[k].dtype : call.out[k - p->inputs].dtype, static_cast<bool>(p->g.single[k])});
    return s;
  };
  bool row_values = std::find(p->g.single.begin() + static_cast<int64_t>(p->inputs), p->g.single.end(), true) != p->g.single.end();
  Work w;
  if (p->g.rows == 0 || (p->g.row_size == 0 && !row_values)) {
    GE_TRY(p->compiled, compile(program, specs()));
    w.chunks = 0;
    return w;
  }
  if (reduces && (p->short_rows = ShortRows::plan(program, p->g, call, before ? before->short_rows.get() : nullptr))) {
    w.chunks = p->short_rows->chunks();
    w.scratch = p->short_rows->scratch();
    w.state = std::move(p);
    return w;
  }
  p->tile_rows = p->g.outer.empty() ? 1 : p->g.outer.back().size;
  choose_access(*p, call.ints[0] == 0);
  const CompileOptions options{.stream = streams(*p)};
  if (before && before->compiled && fits(*before->compiled, specs(), options)) p->compiled = before->compiled;
  else {
    GE_TRY(p->compiled, compile(program, specs(), options));
  }
  lay_out(*p);
  choose_chunks(*p, cycles_per_element(program));
  w.chunks = p->chunks;
  w.scratch = p->scratch;
  w.state = std::move(p);
  return w;
}

// One chunk: a run of units. A unit is a block of rows and columns at one place of the outer axes.
class Chunk {
 public:
  Chunk(const Plan& p, const Call& call) : p_(p), scratch_(call.scratch) {
    for (size_t k = 0; k < p.element.size(); ++k) base_[k] = k < p.inputs ? call.in[k].data : call.out[k - p.inputs].data;
  }

  void run(int64_t from, int64_t to) {
    for (int64_t u = from; u < to; ++u) {
      int64_t row_block = u % p_.row_blocks, rest = u / p_.row_blocks;
      int64_t col_block = rest % p_.col_blocks, outer = rest / p_.col_blocks;
      unit(outer, row_block, col_block, u == from || row_block == 0);
    }
  }

 private:
  // fresh: repeated inputs are not in their buffers yet.
  void unit(int64_t outer, int64_t row_block, int64_t col_block, bool fresh) {
    int64_t row = row_block * p_.block_rows, rows = std::min(p_.block_rows, p_.tile_rows - row);
    int64_t col = col_block * p_.block_cols, cols = std::min(p_.block_cols, p_.g.row_size - col);
    std::array<TileOperand, 64> tile;
    std::array<std::byte*, 64> place;
    for (size_t k = 0; k < p_.element.size(); ++k) {
      place[k] = base_[k] + offset(k, outer) + row * p_.row_step(k) + col * p_.g.row[0].steps[k] * (p_.g.row.size() == 1);
      if (p_.access[k] == Access::direct) {
        tile[k] = {place[k], p_.row_step(k), p_.g.single[k] ? 0 : 1};
        continue;
      }
      bool one_row = p_.access[k] == Access::repeated && !p_.joined;
      tile[k] = {scratch_ + p_.buffer[k], one_row ? 0 : cols * p_.element[k], 1};
      if (k < p_.inputs && p_.access[k] == Access::copied) copy(k, place[k], rows, cols, true);
      if (p_.access[k] == Access::repeated && fresh) copy(k, place[k], p_.buffer_rows(k), cols, true);
    }
    run_tile(*p_.compiled, tile.data(), rows, cols, scratch_);
    for (size_t k = p_.inputs; k < p_.element.size(); ++k)
      if (p_.access[k] != Access::direct) copy(k, place[k], rows, cols, false);
  }

  int64_t offset(size_t k, int64_t outer) const {
    int64_t at = 0;
    for (size_t a = p_.g.outer.size(); a-- > 1;) {
      const Axis& x = p_.g.outer[a - 1];
      at += outer % x.size * x.steps[k];
      outer /= x.size;
    }
    return at;
  }

  // Between the view at place and the operand's dense buffer, over all axes of the row.
  void copy(size_t k, std::byte* place, int64_t rows, int64_t cols, bool in) {
    const auto& axes = p_.g.row;
    int64_t inner = axes.size() == 1 ? cols : axes.back().size, count = inner ? cols / inner : 0;
    std::array<int64_t, kMaxRank> index{};
    std::byte* dense = scratch_ + p_.buffer[k];
    for (int64_t n = 0; n < count; ++n) {
      Block view{place, p_.row_step(k), axes.back().steps[k]};
      Block buffer{dense, cols * p_.element[k], p_.element[k]};
      copy_block(in ? buffer : view, in ? view : buffer, rows, inner, p_.element[k]);
      dense += inner * p_.element[k];
      for (size_t a = axes.size() - 1; a-- > 0;) {
        place += axes[a].steps[k];
        if (++index[a] < axes[a].size) break;
        place -= axes[a].steps[k] * axes[a].size;
        index[a] = 0;
      }
    }
  }

  const Plan& p_;
  std::byte* scratch_;
  std::array<std::byte*, 64> base_;
};

Status run(const Call& call, int64_t chunk) {
  const Plan& p = *static_cast<const Plan*>(call.state);
  if (p.short_rows) p.short_rows->run(call, chunk);
  else Chunk(p, call).run(p.units * chunk / p.chunks, p.units * (chunk + 1) / p.chunks);
  return ok();
}

const Register registered{Kernel{
    .name = "vector.program",
    .unit = Unit::vector,
    .prepare = prepare,
    .run = run,
    .in_place = 0xffffffffu,
}};

}  // namespace
}  // namespace ge::kernels::vector
