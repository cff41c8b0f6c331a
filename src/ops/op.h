// OpDef: all that GE knows of one operator, in one file of this folder: its schema, shape inference,
// how older opsets are raised, what it means (the reference kernel), how it is lowered to fast kernels,
// how it takes part in vector programs, and when it is only a view of memory. No pass, plan or lowering
// names an op in a switch: they ask these hooks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/graph.h"
#include "kernels/kernel.h"
#include "ops/types.h"

namespace ge::kernels::vector {
class ProgramBuilder;
}

namespace ge::ops {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Type;
using ir::ValueId;

// ---------------------------------------------------------------------------------------------
// Inference: types of the outputs, and their elements where shape arithmetic is known.
// Called with every input typed; may be called again after dims become better known.
struct InferContext {
  Graph& graph;           // for fresh symbols and nested graphs; not to be edited otherwise
  const Node& node;
  std::vector<Type> out;                                      // one for each output of the node
  std::vector<std::optional<std::vector<Dim>>> out_elements;  // integer and bool tensors, flat order
  bool demands = false;   // sizes that the node asks to be equal are facts from here on: it runs whenever the graph does

  InferContext(Graph& g, const Node& n) : graph(g), node(n), out(n.outputs.size()), out_elements(n.outputs.size()) {}
  int inputs() const { return static_cast<int>(node.inputs.size()); }
  bool has(int i) const { return i < inputs() && bool(node.inputs[static_cast<size_t>(i)]); }
  bool wants(int i) const { return static_cast<size_t>(i) < node.outputs.size() && bool(node.outputs[static_cast<size_t>(i)]); }
  const Type& type(int i) const { return graph.value(node.inputs[static_cast<size_t>(i)]).type; }
  DType dtype(int i) const { return type(i).dtype; }
  bool ranked(int i) const { return type(i).ranked; }
  const std::vector<Dim>& dims(int i) const { return type(i).dims; }
  int rank(int i) const { return type(i).rank(); }
  // The constant behind input i, or null.
  const Tensor* constant(int i) const;
  // Known elements of integer input i (a constant's or computed), or nullopt.
  std::optional<std::vector<Dim>> elements(int i) const;
  // Elements that are all numbers, or nullopt.
  std::optional<std::vector<int64_t>> ints(int i) const;

  void set(int i, DType t, std::vector<Dim> dims) { if (static_cast<size_t>(i) < out.size()) out[static_cast<size_t>(i)] = Type::tensor(t, std::move(dims)); }
  void set_unranked(int i, DType t) { if (static_cast<size_t>(i) < out.size()) out[static_cast<size_t>(i)] = Type{t, false, {}, ir::TypeKind::tensor}; }
  void set_elements(int i, std::vector<Dim> e) { if (static_cast<size_t>(i) < out.size()) out_elements[static_cast<size_t>(i)] = std::move(e); }
  // A size that only running will tell (NonZero): a symbol bound after this node ran. The same node
  // gets the same symbol when inference runs again.
  Dim fresh(std::string_view what);
  // A clear error that names this node.
  Error fail(std::string message, std::string fix = "") const;
};

// The name of the size `what` that a node decides.
std::string own_symbol(const Graph& g, const Node& n, std::string_view what);
// Axis in -rank..rank-1 to 0..rank-1, or an error naming the node.
Result<int> normalize_axis(const InferContext& c, int64_t axis, int rank);
// numpy broadcasting of all inputs' shapes; error if they cannot.
Result<std::vector<Dim>> broadcast_dims(const InferContext& c, const std::vector<Dim>& a, const std::vector<Dim>& b);

// ---------------------------------------------------------------------------------------------
// Upgrade: raises a node read at `version` of its domain's opset to the newest form, by changing
// attributes and inputs or by adding nodes before or after it. Types are not known yet.
struct UpgradeContext {
  Graph& graph;
  NodeId id;
  int64_t version;
  Node& node() const { return graph.node(id); }
  // Moves an attribute into a constant input at `index` (absent inputs are filled in before it).
  void attr_to_input(std::string_view attr, int index);
  ValueId constant_ints(const std::vector<int64_t>& v);   // 1-D i64
  ValueId constant_float(float v);                        // scalar f32
};

// ---------------------------------------------------------------------------------------------
// Memory: a strided look at somebody else's storage, in elements.
struct Strided {
  Dim offset;
  std::vector<Dim> dims, strides;
  static Strided dense(std::vector<Dim> dims);
  bool is_dense() const;  // provably row-major without gaps
};

// ---------------------------------------------------------------------------------------------
// Rows are positions along one axis. Row r of an output depends on those rows i of an input for which i * scale lies in
// [r * stride - begin, r * stride - begin + extent); what lies outside of the input is padding: `begin` rows before it and
// `end` behind it, where it is padding that says how many rows there are. Or on the whole input (weights).
struct RowWindow {
  bool whole = false;
  int64_t extent = 1, stride = 1, begin = 0, scale = 1;
  std::optional<int64_t> end = std::nullopt;
};
struct RowRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
  friend bool operator==(const RowRange&, const RowRange&) = default;
};
// Of an input of `height` rows, those that rows `out` (not none) depend on; none where all is padding.
RowRange rows_read(const RowWindow& w, const RowRange& out, int64_t height);

// ---------------------------------------------------------------------------------------------
// Lowering: a node becomes kernel calls. All plain data; src/lower turns it into tasks.
struct Arg {
  enum class Kind : uint8_t { none, value, temp, constant } kind = Kind::none;
  int32_t index = -1;                  // ValueId, or index into temps / constants
  // Overrides how the operand is seen; offset and strides count from the start of its storage.
  std::optional<Strided> view;
  // Seen as another type of the same size: strings as the numbers that stand for them.
  DType as = DType::none;
};

struct Temp {
  DType dtype;
  std::vector<Dim> dims;               // dense
};

struct CallSpec {
  std::string kernel;
  std::vector<Arg> in, out;
  std::vector<Dim> ints;               // evaluated at binding time
  std::vector<double> floats;
  std::vector<std::byte> blob;
  std::vector<std::shared_ptr<Graph>> graphs = {};   // sub-programs of an executor kernel
  std::string when = {};               // an expression: it has a part in runs of sizes for which this is not 0; empty: as its node
};

// A symbol that a call decides: element `element` of what lies in `from`, which is i64 and dense.
struct SizeSource {
  std::string symbol;
  Arg from;
  int element = 0;
};

class LowerContext {
 public:
  // How a value lies in memory, as planned.
  using Placement = std::function<Strided(ValueId)>;
  LowerContext(const Graph& g, const Node& n, Placement p) : graph(g), node(n), placement_(std::move(p)) {}

  const Graph& graph;
  const Node& node;
  std::vector<Temp> temps;
  std::vector<Tensor> constants;
  std::vector<CallSpec> calls;         // run in this order
  std::vector<SizeSource> sizes;       // calls that use these symbols run in a later segment

  int inputs() const { return static_cast<int>(node.inputs.size()); }
  bool has(int i) const { return i < inputs() && bool(node.inputs[static_cast<size_t>(i)]); }
  bool wants(int i) const { return static_cast<size_t>(i) < node.outputs.size() && bool(node.outputs[static_cast<size_t>(i)]); }
  ValueId input(int i) const { return node.inputs[static_cast<size_t>(i)]; }
  const Type& type(int i) const { return graph.value(input(i)).type; }
  const Type& out_type(int i = 0) const { return graph.value(node.outputs[static_cast<size_t>(i)]).type; }
  const Tensor* constant_of(int i) const;
  std::optional<std::vector<Dim>> elements(int i) const { return has(i) ? graph.elements(input(i)) : std::nullopt; }

  // Where input or output i lies.
  Strided view(int i) const { return placement_(input(i)); }
  Strided out_view(int i = 0) const { return placement_(node.outputs[static_cast<size_t>(i)]); }
  // Operands; an absent input or output gives Kind::none.
  Arg in(int i) const;
  Arg in_as(int i, Strided view) const;
  Arg out(int i = 0) const;
  Arg out_as(int i, Strided view) const;
  // A weight made here (packed panels): it goes to the weights section, equal ones once.
  Arg weight(Tensor t);
  Arg temp(DType t, std::vector<Dim> dims);
  void call(std::string kernel, std::vector<Arg> in, std::vector<Arg> out, std::vector<Dim> ints = {},
            std::vector<double> floats = {}, std::vector<std::byte> blob = {});
  void size(const Dim& symbol, Arg from, int element);
  // The symbol that inference named `what` for this node.
  Dim own(std::string_view what) const;
  Error fail(std::string message, std::string fix = "") const;

 private:
  Placement placement_;
};

// ---------------------------------------------------------------------------------------------
// Vector programs: an op that is elementwise (with numpy broadcasting), or that reduces the last axes,
// says here how it is computed in registers. Filled in by the region pass and by default lowering.
struct VectorContext {
  const Graph& graph;
  const Node& node;
  kernels::vector::ProgramBuilder& builder;
  std::vector<uint16_t> in;            // a register for each input (0xffff: absent)
  std::vector<uint16_t> out;           // to be filled, one for each output
};

struct AttrDef {
  std::string name;
  std::string doc;
};

enum class VectorKind : uint8_t {
  none,
  elementwise,   // outputs have the broadcast shape of the inputs
  row,           // inputs of the output's shape; reduces over trailing axes (row_axes hook)
};

struct OpDef {
  std::string name;                    // "Conv", "ai.onnx.ml.Scaler", "com.microsoft.Gelu", "ge.Conv"
  int min_inputs = 0, max_inputs = 0;  // max -1: any number
  uint32_t optional = 0;               // bit i: input i may be absent, although one after it must be there
  int min_outputs = 1, max_outputs = 1;
  int since = 1;                       // first opset of its domain
  int newest = 28;                     // last opset whose meaning is known
  std::vector<AttrDef> attrs = {};
  kernels::Unit unit = kernels::Unit::vector;
  std::string doc = {};
  // The element types of input `data` (of a sequence's tensors) that it takes; inference refuses others. Of an operator
  // that `upgrade` writes as others: what those take. tests/python/test_types.py holds it against what runs.
  Types types = types::all;
  int data = 0;

  Status (*infer)(InferContext&) = nullptr;
  Status (*upgrade)(UpgradeContext&) = nullptr;          // null: all versions mean the same
  // Writes the node as other nodes (types of the new ones need not be set), once types are known; false: not in
  // this case. Used where plainer or faster operators say the same; `reference` stays the meaning.
  Result<bool> (*expand)(UpgradeContext&) = nullptr;
  // The meaning: calls to reference kernels. Null only for ge. ops and for ops that never run (Shape).
  Status (*reference)(LowerContext&) = nullptr;
  // Fast kernels; null: vector program if `vector`, else the reference. Returns false through
  // LowerContext::calls staying empty: then the next choice is taken.
  Status (*lower)(LowerContext&) = nullptr;

  VectorKind vector_kind = VectorKind::none;
  // False: not in this case (a dtype that vector programs lack, an axis that is not last).
  bool (*vector)(VectorContext&) = nullptr;
  // Row ops: how many trailing axes form the row; 0 when this node cannot be a row op.
  int (*row_axes)(const Graph&, const Node&) = nullptr;

  // Output `output` as a view of input 0, which lies as given; nullopt: it has to be copied.
  std::optional<Strided> (*view)(const Graph&, const Node&, int output, const Strided& in) = nullptr;
  // Where inside output 0, which lies as given, input `input` may be made directly (Concat).
  std::optional<Strided> (*place)(const Graph&, const Node&, int input, const Strided& out) = nullptr;

  // Output 0 is input 0 with some elements replaced, which its kernels can do where input 0 lies.
  bool updates = false;

  // Physical layout: what perm of the axes this op likes for its output, given its inputs' (empty:
  // row-major). Null: row-major.
  std::vector<int> (*layout)(const Graph&, const Node&) = nullptr;

  // Rows along an axis of the outputs, which all have its size there; nothing: they cannot be made apart from one another.
  std::optional<RowWindow> (*window)(const Graph&, const Node&, int input, int axis) = nullptr;
  // `to`, a copy of `from`, becomes one that makes rows `out` from rows `in` of input 0. Null: it needs no change.
  void (*cut_rows)(const Graph&, const Node& from, Node& to, int axis, const RowRange& out, const RowRange& in) = nullptr;

  // Runs as executor kernels (control flow, sequences): operands are dense, and the sizes of outputs may be what
  // the run says.
  bool executor = false;
  // Bit i: input i decides sizes or parameters. Where its elements are not known, inference puts a ge.Read before
  // it, whose elements are symbols: sizes (never negative), or any numbers.
  uint32_t sizes = 0, parameters = 0;
  // The known elements of its output are symbols that it decides itself.
  bool reads = false;

  bool deterministic = true;           // false: random ops; never folded or merged
  bool foldable = true;                // may be computed while compiling when all inputs are constants
};

struct Register {
  explicit Register(OpDef def);
};
// An operator whose work is an executor task, which is its meaning as well; it is not computed while compiling.
OpDef executor_op(const char* name, int min_inputs, int max_inputs, int since, const char* doc, Status (*infer)(InferContext&), Status (*lower)(LowerContext&));
const OpDef* find(std::string_view name);
// The first input that is not there although it must be; nothing: all are.
std::optional<size_t> missing_input(const OpDef& def, const Node& n);
// What the hooks `view` and `place` say, where there are such; nothing where the shape of an operand or of a result is
// known only at run time.
std::optional<Strided> seen_through(const OpDef& def, const Graph& g, const Node& n, int output, const Strided& in);
std::optional<Strided> placed_in(const OpDef& def, const Graph& g, const Node& n, int input, const Strided& out);
std::vector<const OpDef*> all();       // sorted by name
// What the hook `window` says; of elementwise operators and of others that broadcast along the axis, by the sizes.
std::optional<RowWindow> row_window(const Graph& g, const Node& n, int input, int axis);
// Of an input that broadcasts to the output: its row r, or all of it where it has one for all.
std::optional<RowWindow> broadcast_rows(const Graph& g, const Node& n, int input, int axis);

// Emits the vector program of one node (kernel vector.program) if its op has one; false otherwise.
Result<bool> lower_as_vector(LowerContext& c, const OpDef& def);

}  // namespace ge::ops
