// What the shape and data-movement ops share: checks, elements of shape arithmetic, small pieces of
// lowering. Not for elementwise ops.
#pragma once

#include <string>
#include <vector>

#include "ops/op.h"

namespace ge::ops {

// Element values of a tensor are followed up to this count.
inline constexpr int64_t kMaxElements = 1024;

// Error if one of the first n inputs is missing, or is not a tensor.
Status require_inputs(const InferContext& c, int n);
bool is_index_type(DType t);  // i32, i64
// Error if input i is there and not i32 or i64.
Status require_index(const InferContext& c, int i);
// Error if input i is there and known to be more or less than one number.
Status require_one(const InferContext& c, int i);

// Output 0 is input 0 as it is: type and elements.
Status infer_same(InferContext& c);
// Sizes of a known count, else nullopt.
std::optional<std::vector<int64_t>> known_dims(const std::vector<Dim>& dims);
// Elements of input i, when its sizes are numbers too.
struct KnownElements {
  std::vector<int64_t> dims;
  std::vector<Dim> values;
};
std::optional<KnownElements> known_elements(const InferContext& c, int i);
// How many axes the list of sizes in input i is for, where that is known and possible.
std::optional<size_t> listed_rank(const InferContext& c, int i);
// n unknown sizes, named after the node; n is at most kMaxRank.
std::vector<Dim> fresh_dims(InferContext& c, size_t n);
// The better known of two sizes that must be equal, which becomes a fact of the graph; error when they cannot be.
Result<Dim> unify(const InferContext& c, const Dim& a, const Dim& b, std::string_view what);

// Lower bound of an expression given the ranges of the graph's symbols.
int64_t lower_bound(const Graph& g, const Dim& d);
// min and max that use the ranges of symbols, so that usual slices stay simple.
Dim min_of(const Graph& g, const Dim& a, const Dim& b);
Dim max_of(const Graph& g, const Dim& a, const Dim& b);
// c ? a : b.
Dim select(const Dim& condition, const Dim& a, const Dim& b);
Dim equal(const Dim& a, const Dim& b);

// For nodes that passed inference.
inline int wrap_axis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }
std::vector<Dim> as_dims(const std::vector<int64_t>& v);

// Copies of the op's own views of input 0: how a view op is made when it has to be copied.
Status lower_views(LowerContext& c);
// move.reshape from input 0 to output 0, and ref.Reshape.
Status lower_flat(LowerContext& c);
Status reference_flat(LowerContext& c);
// Output 0 is the input as it lies.
std::optional<Strided> view_same(const Graph&, const Node&, int output, const Strided& in);
// A Dropout known to be outside training, or to drop nothing: its output is its input.
bool drops_nothing(const Graph& g, const Node& n);
// The physical order of input 0, for ops whose output has the same axes.
std::vector<int> layout_of_input(const Graph& g, const Node& n);
// `in` seen with other sizes in the same flat order, when no copy is needed.
std::optional<Strided> reshape_view(const Strided& in, const std::vector<Dim>& dims);

}  // namespace ge::ops
