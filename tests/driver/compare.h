// A graph compiled in two ways and run on the same seeded inputs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "driver/compile.h"
#include "driver/run.h"
#include "om/writer.h"

namespace ge {

// Through the bytes of a file, as a user's model goes.
inline Result<std::shared_ptr<runtime::Model>> open_compiled(const Compiled& c, int threads = 2) {
  return runtime::Model::open(om::to_bytes(c.package), {threads, true, false});
}

// The largest difference over the largest finite value; infinity where NaN or inf stand elsewhere.
inline double difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return std::numeric_limits<double>::infinity();
  double worst = 0, scale = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    double x = a.at(i), y = b.at(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) {
      if (std::isfinite(y)) scale = std::max(scale, std::abs(y));
      continue;
    }
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    worst = std::max(worst, std::abs(x - y));
    scale = std::max(scale, std::abs(y));
  }
  return scale > 0 ? worst / scale : worst;
}

// Both run on the same inputs and agree within `tolerance` of the scale; integers are equal.
inline ::testing::AssertionResult agree(const Compiled& a, const Compiled& b, const std::map<std::string, int64_t>& sizes, double tolerance, uint64_t seed = 1) {
  auto ma = open_compiled(a), mb = open_compiled(b);
  if (!ma.ok()) return ::testing::AssertionFailure() << ma.error().text();
  if (!mb.ok()) return ::testing::AssertionFailure() << mb.error().text();
  auto inputs = seeded_inputs(**ma, sizes, 4, seed);
  if (!inputs.ok()) return ::testing::AssertionFailure() << inputs.error().text();
  auto ya = run(**ma, *inputs), yb = run(**mb, *inputs);
  if (!ya.ok()) return ::testing::AssertionFailure() << "first: " << ya.error().text();
  if (!yb.ok()) return ::testing::AssertionFailure() << "second: " << yb.error().text();
  for (size_t i = 0; i < ya->size(); ++i) {
    double d = difference((*ya)[i], (*yb)[i]);
    bool exact = !is_float((*ya)[i].dtype());
    if (!(d <= (exact ? 0 : tolerance))) return ::testing::AssertionFailure() << "output " << i << " differs by " << d;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace ge
