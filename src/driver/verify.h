// eps of fusion rules: the largest accepted max|fused - unfused| / max|unfused| over an output of the
// model, on one seeded run. Where a rule exceeds it, it is left off: at the places that exceed it alone, or
// everywhere when only their sum does.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "om/program.h"
#include "passes/trace.h"
#include "tensor/tensor.h"

namespace ge {

struct RuleVerdict {
  std::string rule;
  double eps = 0, difference = 0;
  std::vector<std::string> off_at;   // anchors; "everywhere" for the whole rule
};

struct Exclusions {
  std::set<std::string> rules;
  std::set<std::pair<std::string, std::string>> places;   // (rule, anchor)
};

// compile(exclusions) gives the package without them. `fused` is what the normal compilation fused.
Result<std::vector<RuleVerdict>> verify_rules(const std::map<std::string, double>& eps, const std::vector<passes::Fused>& fused,
                                              const std::function<Result<om::Package>(const Exclusions&)>& compile, Exclusions& off);

// How far tensor a is from b. NaN equals NaN; other types or sizes are infinitely far.
struct Difference {
  double largest = 0;   // max|a - b|
  double scale = 0;     // max|b| of its finite elements
  int64_t count = 0;    // elements that are not equal
  double relative() const;
};
Difference difference_of(const Tensor& a, const Tensor& b);

// max|a - b| / max|b|, the worst output of one seeded run of each; where b's outputs are not finite then, of a run
// whose integers are all 1.
Result<double> difference_of(const om::Package& a, const om::Package& b);

}  // namespace ge
