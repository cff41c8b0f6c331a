// What com.microsoft's attention operators share: masks as numbers that are added to the scores.
#pragma once

#include "ops/rewrite.h"

namespace ge::ops {

struct MaskInputs {
  ValueId mask;                        // [B, T], [B, S, T], or lengths: [B], or ends and starts: [2 B]; may be absent
  ValueId bias;                        // of the scores, [B or 1, heads or 1, S, T]; may be absent
  ValueId batch, total;                // B and T, scalars i64
  double hidden = -10000;              // added where the mask is 0
};
// One sum for the scores; none if there are none. The mask's rank is known.
Result<ValueId> added_to_scores(UpgradeContext& c, const MaskInputs& m);
// v[:, ..., from:to] of the axis.
ValueId cut(UpgradeContext& c, ValueId v, int64_t from, int64_t to, int64_t axis);

}  // namespace ge::ops
