// Boxes that remain when those that overlap better ones are left out. No kernel: how many there are only running
// tells, so the runtime calls it for a task that makes its output itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ge::kernels::reference {

struct Suppression {
  int64_t batches = 0, classes = 0, boxes = 0;
  int64_t most = 0;                  // of each class of each batch
  float overlap = 0;                 // boxes that share more than this (area of both over area of either) go
  std::optional<float> least_score;  // scores must be above it
  bool centers = false;              // boxes are (x centre, y centre, width, height), else two corners (y, x, y, x)
};

// boxes [batches, boxes, 4], scores [batches, classes, boxes]; gives triples (batch, class, box), the best first.
std::vector<int64_t> non_max_suppression(const Suppression& s, const float* boxes, const float* scores);

}  // namespace ge::kernels::reference
