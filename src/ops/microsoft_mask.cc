#include "ops/microsoft_mask.h"

#include "base/text.h"

namespace ge::ops {
namespace {

// Keys that count, [B, 1, 1, T], of lengths [B] or of ends and starts [2 B].
ValueId within_lengths(UpgradeContext& c, const MaskInputs& m) {
  ValueId key = make_node(c, "Range", {number(c, 0), m.total, number(c, 1)});
  ValueId ends = make_node(c, "Cast", {m.mask}, {{"to", static_cast<int64_t>(DType::i64)}});
  ValueId batch = make_node(c, "Unsqueeze", {m.batch, c.constant_ints({0})});
  auto column = [&](ValueId v, ValueId from, ValueId to) {
    return make_node(c, "Reshape", {make_node(c, "Slice", {v, from, to, c.constant_ints({0})}), c.constant_ints({-1, 1, 1, 1})});
  };
  // Which of the two it is may show only when it runs: starts of 0 behind lengths change nothing.
  ValueId starts = make_node(c, "Concat", {ends, make_node(c, "Expand", {number(c, 0), batch})}, {{"axis", int64_t{0}}});
  ValueId begun = make_node(c, "GreaterOrEqual", {key, column(starts, batch, make_node(c, "Add", {batch, batch}))});
  return make_node(c, "And", {begun, make_node(c, "Less", {key, column(ends, c.constant_ints({0}), batch)})});
}

}  // namespace

ValueId cut(UpgradeContext& c, ValueId v, int64_t from, int64_t to, int64_t axis) {
  return make_node(c, "Slice", {v, c.constant_ints({from}), c.constant_ints({to}), c.constant_ints({axis})});
}

Result<ValueId> added_to_scores(UpgradeContext& c, const MaskInputs& m) {
  if (!m.mask) return m.bias;
  const auto rank = c.graph.value(m.mask).type.rank();
  if (rank < 1 || rank > 3) return upgrade_error(c, format("a mask of {} axes is not supported", rank));
  ValueId keep;
  if (rank == 1) {
    keep = within_lengths(c, m);
  } else {
    keep = make_node(c, "Cast", {m.mask}, {{"to", static_cast<int64_t>(DType::boolean)}});
    keep = make_node(c, "Unsqueeze", {keep, c.constant_ints(rank == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1})});
  }
  ValueId numbers = make_node(c, "Where", {keep, c.constant_float(0), c.constant_float(static_cast<float>(m.hidden))});
  if (!m.bias) return numbers;
  return make_node(c, "Add", {m.bias, make_node(c, "CastLike", {numbers, m.bias})});
}

}  // namespace ge::ops
