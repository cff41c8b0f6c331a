// Graph: the compiler's picture of a model. A Graph has Nodes; Values connect them; what a Node means
// is said by its op (src/ops). Edges are ids into dense vectors, so a Graph can be copied.
//
// Only the edit functions at the end of the class change edges; they keep producers and uses true.
// A nested graph (a branch of If, a body of Loop or Scan) stands in an attribute and sees nothing of
// the outer graph: what it captures is handed in through additional inputs at the end of the node's
// inputs and of the nested graph's inputs (attribute "captures" says how many).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/id.h"
#include "base/result.h"
#include "tensor/dim.h"
#include "tensor/dim_facts.h"
#include "tensor/tensor.h"

namespace ge::ir {

struct ValueTag;
struct NodeTag;
using ValueId = Id<ValueTag>;
using NodeId = Id<NodeTag>;
class Graph;

// A map from integers or from strings holds its keys and its values as two tensors; the rows of a sequence of maps
// (maps_from_...) share their keys.
enum class TypeKind : uint8_t { tensor = 0, sequence = 1, optional = 2, optional_sequence = 3, map_from_i64 = 4, map_from_text = 5, maps_from_i64 = 6, maps_from_text = 7 };

struct Type {
  DType dtype = DType::none;
  bool ranked = false;              // false: nothing is known of the shape
  std::vector<Dim> dims;            // when ranked
  TypeKind kind = TypeKind::tensor; // of others, dtype and dims are those of the tensors in it; of a map, of its values

  static Type tensor(DType t, std::vector<Dim> d) { return {t, true, std::move(d), TypeKind::tensor}; }
  int rank() const { return static_cast<int>(dims.size()); }
  bool is_static() const;           // ranked, all dims known
  friend bool operator==(const Type&, const Type&) = default;
};
inline bool is_map(const Type& t) { return t.kind == TypeKind::map_from_i64 || t.kind == TypeKind::map_from_text; }
inline bool is_map_sequence(const Type& t) { return t.kind == TypeKind::maps_from_i64 || t.kind == TypeKind::maps_from_text; }
// The type of a map's keys.
inline DType key_of(const Type& t) { return t.kind == TypeKind::map_from_text || t.kind == TypeKind::maps_from_text ? DType::string : DType::i64; }
std::string text(const Type& t);    // "f32[2,s,3]", "i64[?]" when unranked

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          std::vector<std::string>, Tensor, std::shared_ptr<Graph>,
                          std::vector<std::shared_ptr<Graph>>>;
using Attrs = std::map<std::string, Attr, std::less<>>;

struct Use {
  NodeId node;
  int index;  // which input
  friend bool operator==(const Use&, const Use&) = default;
};

struct Value {
  std::string name;
  Type type;
  NodeId producer;                       // none: a graph input or a constant
  int output_index = 0;
  std::vector<Use> uses;
  std::shared_ptr<const Tensor> constant;
  // Element values of a small integer or bool tensor (flat, row-major) when they are known as
  // expressions: what shape arithmetic computes. A constant's content is not repeated here.
  std::optional<std::vector<Dim>> content;
  // Physical order of the axes, outermost first; empty means row-major. {0,2,3,1} is channels-last.
  std::vector<int> layout;
};

struct Node {
  std::string op;                        // "Conv", "ai.onnx.ml.Scaler", "ge.Vector"
  std::string name;                      // unique in the graph
  std::vector<ValueId> inputs;           // an absent optional input is a ValueId without value
  std::vector<ValueId> outputs;          // likewise
  Attrs attrs;
  std::vector<std::string> origin;       // names of the model's nodes that this one stands for
  int64_t rank = 0;                      // keeps the order of the model where edges leave it open
  bool dead = false;
};

struct SymbolInfo {
  int64_t min = 0;
  int64_t max = INT64_MAX;
  bool data = false;                     // decided by data, when the node that it is named after has run
};

// The only sets of sizes that the inputs may have: in each of `sizes` one number for each symbol. None: no limit.
struct Gears {
  std::vector<std::string> symbols;
  std::vector<std::vector<int64_t>> sizes;
};

// A tensor that lives from run to run: input `input` is what it holds when a run begins, output `output` what it
// holds when the run has ended. Both stay inputs and outputs of the Graph, so passes need not know of states.
struct State {
  std::string name;
  int input = -1, output = -1;           // numbers; -1: none
  int axis = -1;                         // that grows; -1: none does
  int64_t capacity = 0;                  // of that axis
  std::string unfit = {};                // why it is not stored in the type that was asked for; not part of its text
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph& other);             // nested graphs are copied too
  Graph(Graph&&) = default;
  Graph& operator=(const Graph& other);
  Graph& operator=(Graph&&) = default;

  std::string name = "main";
  std::string scope;                     // begins the names of a nested graph's own symbols: no two graphs share one
  std::map<std::string, SymbolInfo, std::less<>> symbols;
  DimFacts facts;                        // equal sizes that nodes ask for; every binding checks them
  Gears gears;
  std::vector<State> states;
  std::vector<ValueId> inputs, outputs;
  std::vector<std::string> files;        // that hold the model, paths from the root; not part of its text
  std::vector<std::string> output_names;  // what the user calls them (values may be renamed or shared)

  const Node& node(NodeId id) const { return nodes_[static_cast<size_t>(id.v)]; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id.v)]; }
  // Everything but edges may be changed through these.
  Node& node(NodeId id) { return nodes_[static_cast<size_t>(id.v)]; }
  Value& value(ValueId id) { return values_[static_cast<size_t>(id.v)]; }
  size_t node_capacity() const { return nodes_.size(); }
  size_t value_capacity() const { return values_.size(); }
  size_t node_count() const;              // living ones
  // Living nodes in a topological order that follows Node::rank; deterministic. A cycle is our bug
  // here (importers check theirs first).
  std::vector<NodeId> order() const;
  bool has_cycle() const;
  ValueId find_value(std::string_view name) const;   // linear
  Dim fresh_symbol(std::string_view base);           // a symbol no other value uses

  bool is_constant(ValueId v) const { return v && value(v).constant != nullptr; }
  bool is_input(ValueId v) const;
  bool is_output(ValueId v) const;
  // Readers, with graph outputs counted.
  int reader_count(ValueId v) const;
  // The only reader node of a value that is no graph output and is read once, else none.
  NodeId only_reader(ValueId v) const;
  // Known elements of an integer value: its constant or its content.
  std::optional<std::vector<Dim>> elements(ValueId v) const;
  // Whether a symbol in it is one that data decide.
  bool decided_by_data(const Dim& d) const;

  // --- edits ---
  ValueId add_input(std::string name, Type type);
  ValueId add_constant(Tensor t, std::string_view name = "const");
  ValueId add_value(std::string name, Type type);    // to become a node's output
  NodeId add_node(std::string op, std::vector<ValueId> inputs, std::vector<ValueId> outputs, Attrs attrs = {},
                  std::string_view name = "");
  // A node with fresh outputs of the given types; rank and origin taken from `like` (its name, when it
  // stands for itself).
  NodeId insert(std::string op, std::vector<ValueId> inputs, std::vector<Type> outputs, Attrs attrs, NodeId like);
  void set_input(NodeId n, int index, ValueId v);    // v may be none
  void add_node_input(NodeId n, ValueId v);
  void remove_input(NodeId n, size_t index);   // those behind it move up
  // Every reader of `from`, graph outputs included, reads `to` instead.
  void replace_uses(ValueId from, ValueId to);
  // The node makes `v` as its output i; v's former producer no longer does.
  void set_output(NodeId n, int index, ValueId v);
  void make_constant(ValueId v, Tensor t);           // v loses its producer's edge
  void set_graph_output(size_t index, ValueId v);
  void add_graph_output(ValueId v, std::string name);
  void erase(NodeId n);                              // its outputs must have no readers

 private:
  void drop_use(ValueId v, NodeId n, int index);
  std::vector<Node> nodes_;
  std::vector<Value> values_;
  // Values and nodes are named apart.
  mutable std::map<std::string, int, std::less<>> value_names_, node_names_;
};

// Attribute access with a default when absent or of another kind.
int64_t attr_int(const Node& n, std::string_view key, int64_t otherwise);
double attr_float(const Node& n, std::string_view key, double otherwise);
std::string attr_string(const Node& n, std::string_view key, std::string_view otherwise);
std::vector<int64_t> attr_ints(const Node& n, std::string_view key);
std::vector<double> attr_floats(const Node& n, std::string_view key);
std::vector<std::string> attr_strings(const Node& n, std::string_view key);
const Tensor* attr_tensor(const Node& n, std::string_view key);
const Graph* attr_graph(const Node& n, std::string_view key);
bool has_attr(const Node& n, std::string_view key);
bool same(const Attr& a, const Attr& b);             // tensors by content; graphs by identity

}  // namespace ge::ir
