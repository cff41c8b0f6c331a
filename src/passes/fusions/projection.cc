#include "passes/fusions/projection.h"

#include <algorithm>

#include "base/text.h"

namespace ge::passes {
namespace {

// Clones for wider registers; the order of the sums, and so the result, is the same in all of them. What chooses one runs before
// ThreadSanitizer can.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__)
#define GE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GE_CLONES
#endif

GE_CLONES void add_scaled(double* sum, const double* row, double factor, int64_t n) {
  for (int64_t j = 0; j < n; ++j) sum[j] += factor * row[j];
}

constexpr int64_t kRows = 4, kBlock = 256;   // rows of sums at a time; a block of the right side lies in the second level cache

// sum [kRows, n] += left [kRows, k] right [k, n], each row so many numbers behind the one before.
GE_CLONES void add_products(double* sum, int64_t sum_step, const double* left, int64_t left_step, const double* right, int64_t right_step, int64_t k, int64_t n) {
  for (int64_t l = 0; l < k; ++l) {
    const double a = left[l], b = left[left_step + l], c = left[2 * left_step + l], d = left[3 * left_step + l];
    const double* row = right + l * right_step;
    double *s = sum, *t = sum + sum_step, *u = sum + 2 * sum_step, *v = sum + 3 * sum_step;
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) s[j] += a * row[j], t[j] += b * row[j], u[j] += c * row[j], v[j] += d * row[j];
  }
}

// Row-major [rows, columns] of the projection's weights, or transposed.
std::vector<double> matrix(const Projection& p, bool transposed) {
  auto& d = p.w->dims();
  int64_t rows = transposed ? p.n() : p.k(), columns = transposed ? p.k() : p.n();
  std::vector<double> out(static_cast<size_t>(rows * columns));
  bool swap = p.transposed != transposed;
  const float* w = p.w->as<float>();
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[static_cast<size_t>(i * columns + j)] = swap ? w[j * d[1] + i] : w[i * d[1] + j];
  return out;
}

}  // namespace

bool is_product(const ir::Node& n) { return n.op == "MatMul" || n.op == "Gemm" || n.op == "ge.MatMul"; }

std::string way_out(const ir::Node& n) {
  return n.op == "Add" ? "let it add one constant value for each column" : is_glue(n.op) ? format("move {} out of the way", n.op) : "";
}

Obstacle read_elsewhere(const ir::Graph& g, ir::ValueId v, ir::NodeId reader) {
  Verdict shared = read_by_others(g, v, [&](ir::NodeId id) { return id == reader; }, reader);
  ir::NodeId other = g.value(v).producer;
  for (auto& u : g.value(v).uses)
    if (u.node != reader) other = u.node;
  return {shared.why, other, shared.help};
}

std::optional<Projection> projection(const ir::Graph& g, ir::ValueId v, Obstacle& obstacle) {
  ir::NodeId id = g.value(v).producer;
  if (!id) return std::nullopt;
  auto& n = g.node(id);
  auto refuse = [&](std::string why, std::string help = "") {
    obstacle = {std::move(why), id, std::move(help)};
    return std::nullopt;
  };
  if (!is_product(n)) {
    bool behind = std::any_of(n.inputs.begin(), n.inputs.end(), [&](ir::ValueId in) { return in && g.value(in).producer && is_product(g.node(g.value(in).producer)); });
    return behind ? refuse(format("{} stands after a projection", n.op), way_out(n)) : std::nullopt;
  }
  CubeGroup group;
  Verdict read = read_group(g, id, group);
  if (!read) return refuse(read.why, read.help);
  auto& type = g.value(v).type;
  if (!g.is_constant(group.w) || g.value(group.w).type.rank() != 2 || g.value(group.w).type.dtype != DType::f32 || type.dtype != DType::f32) return std::nullopt;
  if (group.residual || group.has_act() || group.has_program() || group.attrs.count("transpose_a")) return refuse("it does more than project");
  Projection p;
  p.node = id;
  p.x = group.x;
  p.w = g.value(group.w).constant.get();
  p.transposed = group.attrs.count("transpose_b") > 0;
  if (auto it = group.attrs.find("alpha"); it != group.attrs.end()) p.alpha = std::get<double>(it->second);
  if (group.bias) {
    auto bias = per_channel(g, group.bias, type, type.rank() - 1);
    if (!bias) return refuse("the bias is not one constant value for each column", "make it a constant of that shape");
    p.bias = *bias;
  }
  return p;
}

Tensor product_of_weights(const Projection& a, const Projection& b, bool b_transposed) {
  auto left = matrix(a, false), right = matrix(b, b_transposed);
  int64_t m = a.k(), k = a.n(), n = b_transposed ? b.k() : b.n();
  Tensor out(DType::f32, {m, n});
  std::vector<double> sum(static_cast<size_t>(m * std::min(kBlock, n)));
  for (int64_t j0 = 0; j0 < n; j0 += kBlock) {
    const int64_t columns = std::min(kBlock, n - j0);
    std::fill(sum.begin(), sum.end(), 0.0);
    for (int64_t l0 = 0; l0 < k; l0 += kBlock) {
      const int64_t depth = std::min(kBlock, k - l0);
      const double* part = right.data() + l0 * n + j0;
      int64_t i = 0;
      for (; i + kRows <= m; i += kRows) add_products(sum.data() + i * columns, columns, left.data() + i * k + l0, k, part, n, depth, columns);
      for (; i < m; ++i)
        for (int64_t l = 0; l < depth; ++l) add_scaled(sum.data() + i * columns, part + l * n, left[static_cast<size_t>(i * k + l0 + l)], columns);
    }
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < columns; ++j) out.as<float>()[i * n + j0 + j] = static_cast<float>(sum[static_cast<size_t>(i * columns + j)] * a.alpha * b.alpha);
  }
  return out;
}

std::vector<float> bias_through(const Projection& a, const Projection& b, bool b_transposed, const std::vector<float>& more) {
  if (a.bias.empty()) return more;
  auto right = matrix(b, b_transposed);
  auto n = static_cast<size_t>(b_transposed ? b.k() : b.n());
  std::vector<double> sum(n);
  for (size_t l = 0; l < a.bias.size(); ++l) add_scaled(sum.data(), right.data() + l * n, a.bias[l], static_cast<int64_t>(n));
  std::vector<float> out(n);
  for (size_t j = 0; j < n; ++j) out[j] = static_cast<float>(sum[j] * b.alpha + (more.empty() ? 0.0 : more[j]));
  return out;
}

}  // namespace ge::passes
