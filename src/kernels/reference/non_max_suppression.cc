#include "kernels/reference/non_max_suppression.h"

#include <algorithm>

namespace ge::kernels::reference {
namespace {

struct Box {
  float y0, x0, y1, x1;
  float area() const { return (y1 - y0) * (x1 - x0); }
};

Box box_at(const float* p, bool centers) {
  if (centers) return {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2};
  return {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]), std::max(p[1], p[3])};
}

bool overlaps(const Box& a, const Box& b, float limit) {
  float height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0), width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
  if (!(height > 0) || !(width > 0)) return false;
  float both = height * width, either = a.area() + b.area() - both;
  if (!(a.area() > 0) || !(b.area() > 0) || !(either > 0)) return false;
  return both / either > limit;
}

}  // namespace

std::vector<int64_t> non_max_suppression(const Suppression& s, const float* boxes, const float* scores) {
  std::vector<int64_t> out, order;
  std::vector<Box> kept;
  for (int64_t b = 0; b < s.batches; ++b)
    for (int64_t c = 0; c < s.classes; ++c) {
      const float* score = scores + (b * s.classes + c) * s.boxes;
      order.clear();
      // A score that is no number is above nothing.
      for (int64_t i = 0; i < s.boxes; ++i)
        if (s.least_score ? score[i] > *s.least_score : score[i] == score[i]) order.push_back(i);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t k) { return score[i] > score[k]; });
      kept.clear();
      for (int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= s.most) break;
        Box box = box_at(boxes + (b * s.boxes + i) * 4, s.centers);
        if (std::any_of(kept.begin(), kept.end(), [&](auto& k) { return overlaps(box, k, s.overlap); })) continue;
        kept.push_back(box);
        out.insert(out.end(), {b, c, i});
      }
    }
  return out;
}

}  // namespace ge::kernels::reference
