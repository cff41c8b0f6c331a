// The layer shapes of the sweep against oneDNN, and what the two sides have in common.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ge::sweep {

enum class Kind { matmul, conv, depthwise };
inline constexpr const char* kKindNames[] = {"matmul", "conv", "depthwise"};

// matmul: [batch, m, k] x [batch, k, n] + bias (bias only without a batch).
// Convolution of one image: c x height x width to m channels, bias and ReLU; groups is 1, or c = m when depthwise.
struct Case {
  const char* model;  // the first of the models that have this shape
  Kind kind;
  int64_t batch = 1, m = 0, n = 0, k = 0;
  int64_t c = 0, height = 0, width = 0, kernel = 0, stride = 1, pad = 0;

  int64_t out(int64_t in) const { return (in + 2 * pad - kernel) / stride + 1; }
  int64_t groups() const { return kind == Kind::depthwise ? c : 1; }
  std::vector<int64_t> a_dims() const;     // A, or x as [1, c, height, width]
  std::vector<int64_t> b_dims() const;     // B, or weights as [m, c / groups, kernel, kernel]
  std::vector<int64_t> c_dims() const;     // the output
  bool has_bias() const { return kind != Kind::matmul || batch == 1; }
  int64_t bias_count() const { return kind == Kind::matmul ? n : m; }
  double operations() const;
  std::string name() const;
};

std::vector<Case> cases();

// Row-major operands of a case; convolutions in the order of ONNX (NCHW, MCHW).
struct Operands {
  std::vector<float> a, b, bias;
};

// One of the two contestants, its operands packed and laid out as it likes best.
class Side {
 public:
  virtual ~Side() = default;
  virtual void run() = 0;
  virtual std::vector<float> output() = 0;  // of the last run, row-major
};

std::unique_ptr<Side> ge_side(const Case& c, const Operands& o);
std::unique_ptr<Side> onednn_side(const Case& c, const Operands& o);
void limit_onednn();  // to one thread and to the instruction set that GE uses; before the first onednn_side()

}  // namespace ge::sweep
