// ref.TreeEnsemble: in [x [N, F], nodes [n, 7] i64, splits [n] f64, leaves [m, 2] i64, leaf targets [w] i64, leaf weights [w]
// f64, roots [t] i64, set members [s] f64], out [N, targets]: of each row the weights of the leaves that it reaches, added
// (or averaged, least, largest) for each target. ints [aggregate: 0 average, 1 sum, 2 least, 3 largest], floats: one to add
// for each target, or none.
// A node is [feature, mode, yes, no, NaN goes to yes, first member, members]; yes, no and a root name a node, or with
// -1 - i leaf i: [first weight, weights]. Modes: 0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=, 6 member of the set. In double.
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.TreeEnsemble";
enum : size_t { kX = 0, kNodes, kSplits, kLeaves, kTargets, kWeights, kRoots, kMembers, kInputs };

// Units of work: rows; each costs a walk through every tree.
double unit_cost(const Call& c) { return 100.0 * static_cast<double>(std::min<int64_t>(c.in[kRoots].dims[0] + 1, 1 << 20)); }

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, kInputs, 1, 1));
  const View &x = c.in[kX], &y = c.out[0];
  if (!plain_numeric(x.dtype) || x.rank != 2 || !plain_float(y.dtype) || y.rank != 2 || y.dims[0] != x.dims[0]) return bad(kName, "wrong input or output");
  constexpr int64_t kWidth[] = {0, 7, 0, 2, 0, 0, 0, 0};
  constexpr bool kReal[] = {false, false, true, false, false, true, false, true};
  for (size_t i = kNodes; i < kInputs; ++i) {
    const View& v = c.in[i];
    if (v.dtype != (kReal[i] ? DType::f64 : DType::i64) || v.rank != (kWidth[i] ? 2 : 1) || (kWidth[i] && v.dims[1] != kWidth[i]) || !v.dense())
      return bad(kName, format("table {} has a wrong form", i));
  }
  if (c.in[kSplits].dims[0] != c.in[kNodes].dims[0] || c.in[kTargets].dims[0] != c.in[kWeights].dims[0]) return bad(kName, "tables do not fit");
  if (c.ints[0] < 0 || c.ints[0] > 3) return bad(kName, "unknown aggregate");
  if (!c.floats.empty() && static_cast<int64_t>(c.floats.size()) != y.dims[1]) return bad(kName, "not one base value for each target");
  Work w;
  w.chunks = y.count() ? cut(y.dims[0], unit_cost(c)) : 0;
  w.scratch = y.dims[1] * 16;
  return w;
}

Error damaged() { return error(code::kRunFailed, "TreeEnsemble: its tables are damaged"); }

bool decide(const Call& c, const int64_t* node, int64_t index, double v) {
  if (v != v) return node[4] != 0;
  double split = c.in[kSplits].as<double>()[index];
  switch (node[1]) {
    case 0: return v <= split;
    case 1: return v < split;
    case 2: return v >= split;
    case 3: return v > split;
    case 4: return v == split;
    case 5: return v != split;
    default: break;
  }
  const double* set = c.in[kMembers].as<double>() + node[5];
  return std::find(set, set + node[6], v) != set + node[6];
}

// The leaf that row n reaches from a root.
Result<int64_t> leaf_of(const Call& c, int64_t n, int64_t at) {
  const View &x = c.in[kX], &nodes = c.in[kNodes];
  for (int64_t steps = 0; at >= 0; ++steps) {
    // A tree has no way longer than its nodes are many.
    if (at >= nodes.dims[0] || steps >= nodes.dims[0]) return damaged();
    const int64_t* node = nodes.as<int64_t>() + at * 7;
    int64_t members = c.in[kMembers].dims[0];
    if (node[5] < 0 || node[6] < 0 || node[5] > members || node[6] > members - node[5]) return damaged();
    if (node[0] < 0 || node[0] >= x.dims[1])
      return error(code::kRunFailed, format("TreeEnsemble: feature {} of a node is not among the {} of the input", node[0], x.dims[1]));
    at = decide(c, node, at, load(x, place(x, n, node[0]))) ? node[2] : node[3];
  }
  if (-(at + 1) >= c.in[kLeaves].dims[0]) return damaged();
  return -(at + 1);
}

Status row(const Call& c, int64_t n, double* sum, double* hits) {
  const View& y = c.out[0];
  int64_t targets = y.dims[1], trees = c.in[kRoots].dims[0], weights = c.in[kWeights].dims[0];
  std::fill(sum, sum + targets, 0.0);
  std::fill(hits, hits + targets, 0.0);
  for (int64_t t = 0; t < trees; ++t) {
    GE_TRY(int64_t leaf, leaf_of(c, n, c.in[kRoots].as<int64_t>()[t]));
    const int64_t* range = c.in[kLeaves].as<int64_t>() + leaf * 2;
    if (range[0] < 0 || range[1] < 0 || range[0] > weights || range[1] > weights - range[0]) return damaged();
    for (int64_t i = range[0]; i < range[0] + range[1]; ++i) {
      int64_t target = c.in[kTargets].as<int64_t>()[i];
      double w = c.in[kWeights].as<double>()[i];
      if (target < 0 || target >= targets) return damaged();
      bool first = hits[target]++ == 0;
      if (c.ints[0] < 2) sum[target] += w;
      else sum[target] = first ? w : c.ints[0] == 2 ? std::min(sum[target], w) : std::max(sum[target], w);
    }
  }
  for (int64_t k = 0; k < targets; ++k) {
    double v = c.ints[0] == 0 && trees ? sum[k] / static_cast<double>(trees) : sum[k];
    store(y, place(y, n, k), v + (c.floats.empty() ? 0 : c.floats[static_cast<size_t>(k)]));
  }
  return ok();
}

Status run(const Call& c, int64_t chunk) {
  const View& y = c.out[0];
  auto* sum = reinterpret_cast<double*>(c.scratch);
  Span s = slice(y.dims[0], chunk, cut(y.dims[0], unit_cost(c)));
  for (int64_t n = s.begin; n < s.end; ++n) GE_RETURN_IF_ERROR(row(c, n, sum, sum + y.dims[1]));
  return ok();
}

const Register registered({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
