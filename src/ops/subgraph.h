// Nested graphs: types across their border. A nested graph's inputs are the last inputs of its node; its own
// symbols begin with its scope, those of the outer graph keep their names where an input bears them as a size.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "ops/op.h"

namespace ge::ops {

std::shared_ptr<Graph> nested(const Node& n, std::string_view attr);   // null when there is none
// The nested graph of a required attribute; an error names the node.
Result<std::shared_ptr<Graph>> require_nested(const InferContext& c, std::string_view attr);

class Border {
 public:
  Border(const Graph& outer, Graph& inner) : outer_(outer), inner_(inner) {}
  // An outer type as one of inner input `input`: expressions become symbols, equal ones the same. Attributes inside name
  // them, so they keep their names when other inputs come and go.
  Type enter(const Type& t, size_t input);
  Dim enter(const Dim& d, const std::string& name);
  // Is the expression the same in both graphs' names?
  bool same(const Dim& d) const;
  // An inner size in the outer graph's names; none when it is decided inside.
  std::optional<Dim> leave(const Dim& d) const;
  // Inner type with sizes that are decided inside as what `fresh(axis)` says.
  template <class F>
  Type leave(const Type& t, F fresh) const {
    Type out = t;
    for (size_t k = 0; k < out.dims.size(); ++k) {
      auto d = leave(out.dims[k]);
      out.dims[k] = d ? *d : fresh(k);
    }
    return out;
  }

 private:
  const Graph& outer_;
  Graph& inner_;
  std::map<std::string, Dim> back_;             // inner symbol -> outer size
  std::map<std::string, std::string> by_text_;  // outer expression -> inner symbol
};

// Gives inner inputs [first, ...) the types of the node's inputs [from, ...), and their elements where they are
// expressions over sizes; those that are constants become constants inside.
void set_captures(InferContext& c, Border& border, Graph& inner, size_t first, size_t from);

// The same for a branch of the If `c`: inside, its condition is known, and so are every capture of the same elements
// and the range of sizes that the condition sends there.
void enter_branch(InferContext& c, Border& border, Graph& branch, bool taken);

// Copies the nodes of `inner` into g, in the place of node `at` in the order; what its outputs are there.
std::vector<ValueId> put_in(Graph& g, const Graph& inner, const std::vector<ValueId>& inputs, NodeId at);

}  // namespace ge::ops
