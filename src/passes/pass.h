// A pass is one function from a Graph to a better Graph of the same meaning. The pipeline is a literal
// list (pipeline.cc); every pass can be switched off by name, is timed, and is followed by inference
// and, when asked for, verification.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "base/verdict.h"
#include "passes/trace.h"

namespace ge::passes {

// What the fusion_switch_file may ask of attention: only these numbers of heads, only this scale.
struct AttentionGuard {
  std::vector<int64_t> head_num;         // empty: any
  std::optional<double> scale;
};

// What may take operands in bf16 (pass precision). A name stands for a node of the model, a type for the type that
// the model's node has; what keeps f32 beats what may take bf16.
struct Precision {
  bool bf16 = false;                     // products, convolutions and attention may
  std::set<std::string> bf16_types, bf16_nodes;   // these may in any case
  std::set<std::string> f32_types, f32_nodes;     // these keep f32
  std::map<std::string, std::string> types;       // of the model's nodes, by name
  bool asked() const { return bf16 || !bf16_types.empty() || !bf16_nodes.empty(); }
};

struct PassOptions {
  std::set<std::string> disabled;        // names of passes and fusion rules
  std::set<std::pair<std::string, std::string>> disabled_at;  // (rule, anchor): off in one place
  std::set<std::string> scope;           // op types that may take part in fusions; empty: all
  AttentionGuard attention;
  bool fusion = true;
  bool verify = false;                   // check the graph after every pass
  std::string stop_after;                // name of a pass, or empty
  std::function<void(const ir::Graph&, const std::string& pass)> dump;  // called after passes that changed something
  Precision precision;
  double winograd_budget = 0.25;         // transformed weights may add so much of the model's weight bytes
  int64_t strip_rows = 0;                // 0: by cost; else all that can be cut is, into strips of so many rows
  int64_t fold_limit = int64_t(1) << 20; // folding may add at most so many bytes beyond what it removes
};

struct PassTime {
  std::string name;
  double ms;
  bool changed;
};

struct PassContext {
  const PassOptions& options;
  Trace& trace;
  std::vector<PassTime> times;
};

struct Pass {
  std::string_view name;
  std::string_view doc;
  Result<bool> (*run)(ir::Graph&, PassContext&);   // true: the graph changed
};

// May this node take part in a fusion? Glue (moves of data, products with a constant) always may.
Verdict in_scope(const PassOptions& o, const ir::Graph& g, ir::NodeId id);

// All passes in order.
std::vector<Pass> pipeline();
Status run_pipeline(ir::Graph& g, PassContext& context);

// The first input is the output: a sum with zeros, a product with ones, of the same type and sizes.
bool changes_nothing(const ir::Graph& g, const ir::Node& n);

// The passes. Types, sizes and known elements of every value:
Status infer(ir::Graph& g);
Result<bool> inline_branches(ir::Graph& g, PassContext& c);   // of an If that constants or sizes decide
void take_branch(ir::Graph& g, ir::NodeId id, bool condition, PassContext& c);   // in the place of the If
Result<bool> branch_ranks(ir::Graph& g, PassContext& c);  // what follows branches of different ranks moves in
// The node because of which every run of g fails (ge.Fail, also one in each branch of an If), or null.
const ir::Node* failing_node(const ir::Graph& g);
Result<bool> bodies(ir::Graph& g, PassContext& c);        // all passes on nested graphs
Result<bool> expand(ir::Graph& g, PassContext& c);        // operators that are written as others
Result<bool> widen(ir::Graph& g, PassContext& c);         // f16 between operators becomes f32
Result<bool> quantized_moves(ir::Graph& g, PassContext& c);   // moves of dequantised bytes
Result<bool> integer_products(ir::Graph& g, PassContext& c);  // of dequantised bytes
Result<bool> fold(ir::Graph& g, PassContext& c);          // constants computed while compiling
Result<bool> cse(ir::Graph& g, PassContext& c);           // equal nodes merged
Result<bool> dce(ir::Graph& g, PassContext& c);           // what nobody reads
Result<bool> sink_transposes(ir::Graph& g, PassContext& c);   // below elementwise nodes
Result<bool> sink_squeezes(ir::Graph& g, PassContext& c);     // below those that follow products
Result<bool> normal_form(ir::Graph& g, PassContext& c);   // one way to write what means the same
Result<bool> loop_invariants(ir::Graph& g, PassContext& c);   // made once, not in each iteration
Result<bool> stacked_caches(ir::Graph& g, PassContext& c);  // states that are stacks of caches are appended to as wholes
Result<bool> narrow_caches(ir::Graph& g, PassContext& c); // states are appended to as they are stored
Result<bool> updates(ir::Graph& g, PassContext& c);       // rows put back into what a Loop carries
Result<bool> winograd(ir::Graph& g, PassContext& c);      // convolutions by minimal filtering
Result<bool> precision(ir::Graph& g, PassContext& c);     // operands of products in bf16
Result<bool> planar_parts(ir::Graph& g, PassContext& c);  // of a Concat along what is innermost in memory
Result<bool> layout(ir::Graph& g, PassContext& c);        // physical order of axes
Result<bool> fuse(ir::Graph& g, PassContext& c);          // the rules of fusions/
Result<bool> vector_regions(ir::Graph& g, PassContext& c);
Result<bool> strips(ir::Graph& g, PassContext& c);        // large maps a strip of rows at a time
Result<bool> open_strips(ir::Graph& g, PassContext& c);   // the same beside the wholes, where sizes are open

}  // namespace ge::passes
