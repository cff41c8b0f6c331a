// Linear projections x W alpha + b with constant weights, for rules that multiply weights while compiling.
#pragma once

#include "passes/fusions/cube_group.h"

namespace ge::passes {

bool is_product(const ir::Node& n);   // MatMul, Gemm or ge.MatMul

struct Projection {
  ir::NodeId node;
  ir::ValueId x;
  const Tensor* w = nullptr;
  bool transposed = false;        // w is [N, K]
  double alpha = 1;
  std::vector<float> bias;        // [N]; empty: none
  int64_t k() const { return w->dims()[transposed ? 1 : 0]; }
  int64_t n() const { return w->dims()[transposed ? 0 : 1]; }
};

// What stands in the way of a projection that comes close.
struct Obstacle {
  std::string why;
  ir::NodeId node;
  std::string help = "";   // what would help, or empty
};
// What would help where n stands behind a product that a rule wants to end with a projection, or "".
std::string way_out(const ir::Node& n);
// Who else reads v, which only `reader` should.
Obstacle read_elsewhere(const ir::Graph& g, ir::ValueId v, ir::NodeId reader);
// The projection that makes v: a product with constant f32 weights of rank 2, a constant bias or none, and nothing
// after it; nullopt else.
std::optional<Projection> projection(const ir::Graph& g, ir::ValueId v, Obstacle& obstacle);

// alpha * a b, or alpha * a b' with `b_transposed`, of row-major a [m, k], summed in double; f32 [m, n].
Tensor product_of_weights(const Projection& a, const Projection& b, bool b_transposed);
// alpha of b times: bias of a [k] times b [k, n] (or b' with `b_transposed`), plus `more` [n]; both may be empty.
std::vector<float> bias_through(const Projection& a, const Projection& b, bool b_transposed, const std::vector<float>& more);

}  // namespace ge::passes
