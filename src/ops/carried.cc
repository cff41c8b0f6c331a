#include "ops/carried.h"

#include "base/text.h"
#include "ops/infer.h"
#include "ops/sequence.h"

namespace ge::ops {
namespace {

constexpr int kMaxRounds = 40;   // each gives up one size or one number of axes

ir::TypeKind optional_of(ir::TypeKind k) { return k == ir::TypeKind::sequence ? ir::TypeKind::optional_sequence : k == ir::TypeKind::tensor ? ir::TypeKind::optional : k; }

std::string changing_symbol(const Graph& inner, size_t value, size_t axis) {
  return format("{}carried{}.d{}", inner.scope, value, axis);
}

// Widens what goes in so that what came out fits too; true when that changed it.
Result<bool> widen(InferContext& c, Graph& inner, size_t i, Type& in, const Type& out) {
  // An optional goes on as one that is there.
  bool there = in.kind != out.kind && optional_of(out.kind) == in.kind;
  if (in.dtype != out.dtype || (in.kind != out.kind && !there))
    return c.fail(format("value {} begins as {} and goes on as {}", i, text(in), text(out)));
  if (in.kind != ir::TypeKind::tensor) {
    Type both = either_element(in, out);
    bool changed = !(both == in);
    in = std::move(both);
    return changed;
  }
  if (!in.ranked) return false;
  if (!out.ranked || in.rank() != out.rank()) {
    in.ranked = false;
    in.dims.clear();
    return true;
  }
  bool changed = false;
  for (size_t k = 0; k < in.dims.size(); ++k) {
    Dim wide = Dim::symbol(changing_symbol(inner, i, k));
    if (in.dims[k] == out.dims[k] || in.dims[k] == wide) continue;
    inner.symbols.emplace(std::string(wide.symbol_name()), ir::SymbolInfo{});
    in.dims[k] = wide;
    changed = true;
  }
  return changed;
}

}  // namespace

Status infer_carried(InferContext& c, Border& border, Graph& inner, size_t count, size_t first, size_t from,
                     size_t first_out, std::vector<Type>& types) {
  auto input = [&](size_t i) -> Type& { return inner.value(inner.inputs[first + i]).type; };
  auto changes = [&](size_t i, size_t k) { return input(i).dims[k] == Dim::symbol(changing_symbol(inner, i, k)); };
  auto some_changes = [&](size_t i) {
    for (size_t k = 0; k < input(i).dims.size(); ++k)
      if (changes(i, k)) return true;
    return false;
  };
  std::vector<size_t> order;   // names of sizes that stay are those of inputs that have them
  for (bool last : {false, true})
    for (size_t i = 0; i < count; ++i)
      if (some_changes(i) == last) order.push_back(i);
  for (size_t i : order) {
    ValueId outer = c.node.inputs[from + i];
    if (!outer) return c.fail(format("input {} is missing", from + i));
    Type begin = border.enter(c.graph.value(outer).type, first + i);
    // A size that was found to change stays so.
    for (size_t k = 0; k < begin.dims.size() && begin.kind == ir::TypeKind::tensor; ++k)
      if (input(i).ranked && input(i).rank() == begin.rank() && changes(i, k)) begin.dims[k] = input(i).dims[k];
    input(i) = std::move(begin);
  }
  for (int round = 0;; ++round) {
    GE_RETURN_IF_ERROR(infer(inner).context(format("the graph of {}", c.node.name)));
    bool changed = false;
    for (size_t i = 0; i < count; ++i) {
      GE_TRY(bool one, widen(c, inner, i, input(i), inner.value(inner.outputs[first_out + i]).type));
      changed |= one;
    }
    if (!changed) break;
    if (round == kMaxRounds) return c.fail("the types of its values do not settle");
  }
  for (size_t i = 0; i < count; ++i) {
    Type t = c.graph.value(c.node.inputs[from + i]).type;
    if (t.kind != ir::TypeKind::tensor) {
      t = input(i);
      // What began as an optional comes out as what its graph gives.
      auto& given = inner.value(inner.outputs[first_out + i]).type;
      if (given.kind == ir::TypeKind::tensor) t = element_of(t, [&](size_t k) { return c.fresh(format("v{}.d{}", i, k)); });
      else t.kind = given.kind;
    } else if (!input(i).ranked) {
      t.ranked = false;
      t.dims.clear();
    } else {
      for (size_t k = 0; k < t.dims.size(); ++k)
        if (input(i).dims[k] == Dim::symbol(changing_symbol(inner, i, k))) t.dims[k] = c.fresh(format("v{}.d{}", i, k));
    }
    types.push_back(std::move(t));
  }
  return ok();
}

}  // namespace ge::ops
