// ref.PairProbabilities: in [scores of pairs of classes [N, P]], out [N, C], P = C (C - 1) / 2. floats [slope of each
// pair, offset of each pair]. The pairs' logistic probabilities r_ij become those of the classes by the second method
// of Wu, Lin and Weng, Probability estimates for multi-class classification by pairwise coupling, JMLR 5 (2004).
#include <cmath>

#include "kernels/move/check.h"
#include "kernels/reference/place.h"

namespace ge::kernels::reference {
namespace {

constexpr std::string_view kName = "ref.PairProbabilities";
constexpr int64_t kMostClasses = 4096;

Result<Work> prepare(const Call& c) {
  GE_RETURN_IF_ERROR(check_call(c, kName, 1, 1, 0, 2));
  const View &x = c.in[0], &y = c.out[0];
  if (x.dtype != DType::f32 || y.dtype != DType::f32 || x.rank != 2 || y.rank != 2 || x.dims[0] != y.dims[0]) return bad(kName, "sizes or types do not fit");
  const int64_t classes = y.dims[1];
  if (classes < 2 || classes > kMostClasses || x.dims[1] != classes * (classes - 1) / 2 || static_cast<int64_t>(c.floats.size()) != 2 * x.dims[1])
    return bad(kName, "its pairs do not fit its classes");
  Work w;
  w.chunks = y.count() ? cut(y.dims[0], 100.0 * static_cast<double>(classes * classes)) : 0;
  return w;
}

struct Coupling {
  int64_t k;
  std::vector<double> q, qp, p;

  explicit Coupling(int64_t classes) : k(classes), q(static_cast<size_t>(k * k)), qp(static_cast<size_t>(k)), p(qp) {}
  double& at(int64_t i, int64_t j) { return q[static_cast<size_t>(i * k + j)]; }

  // r [k, k]: r_ij of row-major pairs.
  void solve(const std::vector<double>& r) {
    auto pair = [&](int64_t i, int64_t j) { return r[static_cast<size_t>(i * k + j)]; };
    for (int64_t t = 0; t < k; ++t) {
      p[static_cast<size_t>(t)] = 1.0 / static_cast<double>(k);
      at(t, t) = 0;
      for (int64_t j = 0; j < k; ++j) {
        if (j == t) continue;
        at(t, t) += pair(j, t) * pair(j, t);
        at(t, j) = -pair(j, t) * pair(t, j);
      }
    }
    const double close = 0.005 / static_cast<double>(k);
    for (int64_t step = 0; step < std::max<int64_t>(100, k); ++step) {
      double pqp = 0, apart = 0;
      for (int64_t t = 0; t < k; ++t) {
        double& sum = qp[static_cast<size_t>(t)] = 0;
        for (int64_t j = 0; j < k; ++j) sum += at(t, j) * p[static_cast<size_t>(j)];
        pqp += p[static_cast<size_t>(t)] * sum;
      }
      for (double v : qp) apart = std::max(apart, std::abs(v - pqp));
      if (!(apart >= close)) return;
      for (int64_t t = 0; t < k; ++t) pqp = improve(t, pqp);
    }
  }

 private:
  double improve(int64_t t, double pqp) {
    const double diff = (pqp - qp[static_cast<size_t>(t)]) / at(t, t);
    p[static_cast<size_t>(t)] += diff;
    pqp = (pqp + diff * (diff * at(t, t) + 2 * qp[static_cast<size_t>(t)])) / ((1 + diff) * (1 + diff));
    for (int64_t j = 0; j < k; ++j) {
      qp[static_cast<size_t>(j)] = (qp[static_cast<size_t>(j)] + diff * at(t, j)) / (1 + diff);
      p[static_cast<size_t>(j)] /= 1 + diff;
    }
    return pqp;
  }
};

Status run(const Call& c, int64_t chunk) {
  const View &x = c.in[0], &y = c.out[0];
  const int64_t k = y.dims[1];
  Span s = slice(y.dims[0], chunk, cut(y.dims[0], 100.0 * static_cast<double>(k * k)));
  Coupling coupling(k);
  std::vector<double> r(static_cast<size_t>(k * k));
  for (int64_t n = s.begin; n < s.end; ++n) {
    int64_t pair = 0;
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = i + 1; j < k; ++j, ++pair) {
        const double z = load(x, place(x, n, pair)) * c.floats[static_cast<size_t>(pair)] + c.floats[static_cast<size_t>(pair + x.dims[1])];
        const double p = std::clamp(1 - 1 / (1 + std::exp(-z)), 1e-7, 1 - 1e-7);
        r[static_cast<size_t>(i * k + j)] = p, r[static_cast<size_t>(j * k + i)] = 1 - p;
      }
    coupling.solve(r);
    for (int64_t t = 0; t < k; ++t) store(y, place(y, n, t), coupling.p[static_cast<size_t>(t)]);
  }
  return ok();
}

const Register registered({.name = kName, .prepare = prepare, .run = run});

}  // namespace
}  // namespace ge::kernels::reference
