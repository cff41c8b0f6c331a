#include "driver/verify.h"

#include <cmath>
#include <map>

#include "driver/run.h"
#include "om/writer.h"

namespace ge {
namespace {

// ones: integers are 1, which is a valid index, length and mask wherever random ones are not.
Result<std::vector<Tensor>> seeded_run(const om::Package& p, bool ones = false) {
  GE_TRY(auto m, runtime::Model::open(om::to_bytes(p), {1, false, false}));
  GE_TRY(auto inputs, seeded_inputs(*m, {}));
  for (auto& t : inputs) {
    if (!ones || (!is_integer(t.dtype()) && t.dtype() != DType::boolean)) continue;
    auto* data = static_cast<unsigned char*>(static_cast<void*>(t.mutable_data()));
    const int64_t size = size_of(t.dtype());
    for (int64_t i = 0; i < t.count() * size; ++i) data[i] = i % size == 0;
  }
  return run(*m, inputs);
}

bool all_finite(const std::vector<Tensor>& outputs) {
  for (auto& output : outputs) {
    const Tensor t = output.reals();
    for (int64_t i = 0; i < t.count(); ++i)
      if (!std::isfinite(t.at(i))) return false;
  }
  return true;
}

double worst(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double out = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) out = std::max(out, difference_of(a[i], b[i]).relative());
  return out;
}

}  // namespace

double Difference::relative() const { return scale > 0 ? largest / scale : largest; }

Difference difference_of(const Tensor& first, const Tensor& second) {
  if (first.dtype() != second.dtype() || first.dims() != second.dims()) return {INFINITY, 0, second.count()};
  const Tensor a = first.reals(), b = second.reals();
  Difference d;
  for (int64_t k = 0; k < a.count(); ++k) {
    double x = a.at(k), y = b.at(k);
    if (std::isfinite(y)) d.scale = std::max(d.scale, std::abs(y));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ++d.count;
    d.largest = std::isfinite(x - y) ? std::max(d.largest, std::abs(x - y)) : INFINITY;
  }
  return d;
}

Result<double> difference_of(const om::Package& a, const om::Package& b) {
  GE_TRY(auto y, seeded_run(b));
  const bool ones = !all_finite(y);
  if (ones) {
    GE_TRY(y, seeded_run(b, true));
  }
  GE_TRY(auto x, seeded_run(a, ones));
  return worst(x, y);
}

Result<std::vector<RuleVerdict>> verify_rules(const std::map<std::string, double>& eps, const std::vector<passes::Fused>& fused,
                                              const std::function<Result<om::Package>(const Exclusions&)>& compile, Exclusions& off) {
  std::vector<RuleVerdict> out;
  for (auto& [rule, limit] : eps) {
    std::vector<std::string> anchors;
    bool fired = false;
    for (auto& f : fused)
      if (f.rule == rule) {
        fired = true;
        if (!f.anchor.empty()) anchors.push_back(f.anchor);
      }
    if (!fired) continue;
    Exclusions without = off;
    without.rules.insert(rule);
    GE_TRY(auto plain_package, compile(without));
    GE_TRY(auto plain, seeded_run(plain_package));
    auto difference = [&](const Exclusions& x) -> Result<double> {
      GE_TRY(auto p, compile(x));
      GE_TRY(auto y, seeded_run(p));
      return worst(y, plain);
    };
    RuleVerdict v{rule, limit, 0, {}};
    GE_TRY(v.difference, difference(off));
    if (v.difference > limit) {
      for (auto& anchor : anchors) {
        Exclusions alone = off;
        for (auto& other : anchors)
          if (other != anchor) alone.places.insert({rule, other});
        GE_TRY(double d, difference(alone));
        if (d > limit) v.off_at.push_back(anchor);
      }
      for (auto& anchor : v.off_at) off.places.insert({rule, anchor});
      double rest = limit + 1;
      if (!v.off_at.empty()) {
        GE_TRY(rest, difference(off));
      }
      if (rest > limit) {
        off.rules.insert(rule);
        v.off_at = {"everywhere"};
      }
    }
    out.push_back(std::move(v));
  }
  return out;
}

}  // namespace ge
