#include <chrono>

#include "base/log.h"
#include "base/text.h"
#include "ir/attribute_fault.h"
#include "ir/verify.h"
#include "passes/order.h"
#include "passes/pass.h"
#include "tensor/pages.h"

namespace ge::passes {

// The order is a decision: products of bytes while their constants are bytes, then simplify until nothing changes,
// then fuse from the largest shapes to the smallest, then what remains becomes vector regions, and last the
// physical layout and the order.
std::vector<Pass> pipeline() {
  return {
      {"inline_branches", "the branch of an If that constants or sizes decide", inline_branches},
      {"expand", "operators that others say are written as these", expand},
      {"widen", "f16 between operators becomes f32", widen},
      {"quantized_moves", "moves of dequantised bytes move the bytes", quantized_moves},
      {"integer_products", "products of dequantised bytes become sums of bytes", integer_products},
      {"fold", "constants computed while compiling", fold},
      {"dce", "what nobody reads is dropped", dce},
      {"inline_branches_folded", "conditions that became constants", inline_branches},
      {"branch_ranks", "what follows branches of different ranks moves into them", branch_ranks},
      {"normal_form", "one way to write what means the same", normal_form},
      {"loop_invariants", "what is the same in each iteration of a Loop is made before it", loop_invariants},
      {"stacked_caches", "states that are stacks of caches are appended to as wholes", stacked_caches},
      {"narrow_caches", "states that are stored in 16 or 8 bits are appended to as they are stored", narrow_caches},
      {"updates", "rows that are put back into what a Loop carries are written where it lies", updates},
      {"sink_transposes", "Transposes go below elementwise nodes", sink_transposes},
      {"sink_squeezes", "axes of size 1 come and go below what follows a product", sink_squeezes},
      {"normal_form_sunk", "Transposes that met", normal_form},
      {"cse", "equal nodes become one", cse},
      {"fuse", "the fusion rules", fuse},
      {"fold_fused", "constants that fusions made", fold},
      {"winograd", "convolutions by minimal filtering", winograd},
      {"layout", "physical order of axes", layout},
      {"vector_regions", "elementwise and row nodes become vector programs", vector_regions},
      {"precision", "operands of products in bf16, where that is allowed and faster", precision},
      {"planar_parts", "many parts of a Concat that are one element wide lie as planes before they are put between one another", planar_parts},
      {"strips", "convolutions, pools and what is between them on large maps run a strip of rows at a time", strips},
      {"dce_last", "what the rewrites left over", dce},
      {"order", "nodes in an order that keeps the peak of memory low", order},
      {"open_strips", "strips beside the wholes where sizes are open: each run takes what is faster for its sizes", open_strips},
      {"bodies", "all passes on nested graphs", bodies},
  };
}

namespace {

// What a pass has read of the model's file leaves memory.
void rest_all(const ir::Graph& g) {
  for (size_t i = 0; i < g.value_capacity(); ++i)
    if (auto& c = g.value(ir::ValueId{static_cast<int32_t>(i)}).constant) ge::rest(*c);
}

}  // namespace

Status run_pipeline(ir::Graph& g, PassContext& context) {
  GE_RETURN_IF_ERROR(infer(g));
  for (auto& pass : pipeline()) {
    std::string name(pass.name);
    if (context.options.disabled.count(name)) continue;
    auto start = std::chrono::steady_clock::now();
    bool any = false;
    // Simplifying passes feed one another; a bound keeps a rule that undoes another from hanging us.
    int rounds = name.starts_with("normal_form") || name.starts_with("inline_branches") || name == "fold" ? 4 : 1;
    for (int i = 0; i < rounds; ++i) {
      auto changed = pass.run(g, context);
      if (!changed.ok()) return Status(std::move(changed).take_error()).context("pass " + name);
      GE_RETURN_IF_ERROR(ir::take_attribute_fault());
      if (!*changed) break;
      any = true;
      GE_RETURN_IF_ERROR(infer(g).context("inference after pass " + name));
    }
    if (context.options.verify) GE_RETURN_IF_ERROR(ir::verify(g).context("after pass " + name));
    if (any) rest_all(g);
    if (any && context.options.dump) context.options.dump(g, name);
    double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    context.times.push_back({name, ms, any});
    if (context.options.stop_after == name) break;
  }
  return ok();
}

}  // namespace ge::passes
