// ge.Read: the elements of a small integer tensor as symbols: where data decide sizes. They are read when the
// segment that computes the tensor has run. Put in by inference.
#include "base/text.h"
#include "ops/op.h"

namespace ge::ops {
namespace {

bool of_sizes(const Node& n) { return ir::attr_int(n, "sizes", 0) != 0; }

// A size is a symbol. Any other number is the difference of two, as symbols are never negative.
Status infer(InferContext& c) {
  c.out[0] = c.type(0);
  if (auto known = c.elements(0)) {
    c.set_elements(0, *std::move(known));
    return ok();
  }
  Dim count = product(c.dims(0));
  if (!c.ranked(0) || !count.known()) return c.fail("it reads a tensor of unknown size");
  std::vector<Dim> e;
  for (int64_t i = 0; i < count.value(); ++i) {
    if (of_sizes(c.node)) e.push_back(c.fresh(format("e{}", i)));
    else e.push_back(c.fresh(format("p{}", i)) - c.fresh(format("n{}", i)));
  }
  c.set_elements(0, std::move(e));
  return ok();
}

Status lower(LowerContext& c) {
  auto& elements = c.graph.value(c.node.outputs[0]).content;
  if (!elements) return c.fail("its elements have no names");
  if (c.elements(0)) {
    c.call("move.elements", {}, {c.out()}, *elements);
    return ok();
  }
  auto n = static_cast<int64_t>(elements->size());
  bool sizes = of_sizes(c.node);
  Arg read = c.temp(DType::i64, {sizes ? n : 2 * n});
  c.call("host.read", {c.in(0)}, {read}, {sizes});
  for (int i = 0; i < static_cast<int>(n); ++i) {
    c.size(c.own(format("{}{}", sizes ? "e" : "p", i)), read, i);
    if (!sizes) c.size(c.own(format("n{}", i)), read, static_cast<int>(n) + i);
  }
  c.call("move.copy", {c.in(0)}, {c.out()});
  return ok();
}

const Register r(OpDef{.name = "ge.Read",
                       .min_inputs = 1,
                       .max_inputs = 1,
                       .attrs = {{"sizes", "1: none may be negative"}},
                       .unit = kernels::Unit::host,
                       .doc = "elements as sizes",
                       .infer = infer,
                       .lower = lower,
                       .reads = true,
                       .foldable = true});

}  // namespace
}  // namespace ge::ops
