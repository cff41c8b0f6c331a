// One node in a graph of its own: inputs by type or constant, then inference, upgrade, views.
#pragma once

#include <gtest/gtest.h>

#include "ops/op.h"

namespace ge::test {

using ir::Attrs;
using ir::Graph;
using ir::NodeId;
using ir::Type;
using ir::ValueId;

inline Dim sym(std::string_view s) { return Dim::symbol(s); }

struct OneOp {
  Graph g;
  NodeId node;
  std::vector<ValueId> inputs;

  OneOp& in(DType t, std::vector<Dim> dims) { return add(g.add_input("x", Type::tensor(t, std::move(dims)))); }
  OneOp& unranked(DType t) { return add(g.add_input("x", Type{t, false, {}, ir::TypeKind::tensor})); }
  OneOp& none() { return add({}); }
  OneOp& ints(std::vector<int64_t> v) { return add(g.add_constant(Tensor::vector_i64(v))); }
  OneOp& scalar(int64_t v) { return add(g.add_constant(Tensor::scalar_i64(v))); }
  OneOp& constant(Tensor t) { return add(g.add_constant(std::move(t))); }
  // An i64 tensor whose elements are known as expressions.
  OneOp& elements(std::vector<Dim> e, bool is_scalar = false) {
    std::vector<Dim> dims;
    if (!is_scalar) dims.push_back(static_cast<int64_t>(e.size()));
    ValueId v = g.add_input("e", Type::tensor(DType::i64, dims));
    g.value(v).content = std::move(e);
    return add(v);
  }
  OneOp& add(ValueId v) {
    inputs.push_back(v);
    return *this;
  }
  OneOp& op(std::string name, Attrs attrs = {}, int outputs = 1) {
    std::vector<ValueId> outs;
    for (int i = 0; i < outputs; ++i) outs.push_back(g.add_value("y", Type{}));
    node = g.add_node(std::move(name), inputs, outs, std::move(attrs), "node");
    return *this;
  }
  const ops::OpDef& def() const { return *ops::find(g.node(node).op); }
  Status infer() {
    ops::InferContext c(g, g.node(node));
    Status s = def().infer(c);
    if (!s.ok()) return s;
    for (size_t i = 0; i < c.out.size(); ++i) {
      if (!g.node(node).outputs[i]) continue;
      auto& v = g.value(g.node(node).outputs[i]);
      v.type = c.out[i];
      v.content = c.out_elements[i];
    }
    return s;
  }
  Status upgrade(int64_t version) {
    ops::UpgradeContext c{g, node, version};
    return def().upgrade ? def().upgrade(c) : ok();
  }
  // "f32[2,s]" of output i after inference, or the error.
  std::string type(int i = 0) {
    Status s = infer();
    if (!s.ok()) return s.error().message;
    return text(g.value(g.node(node).outputs[static_cast<size_t>(i)]).type);
  }
  std::string content(int i = 0) {
    Status s = infer();
    if (!s.ok()) return s.error().message;
    auto& c = g.value(g.node(node).outputs[static_cast<size_t>(i)]).content;
    return c ? text(*c) : "unknown";
  }
  // "offset dims strides" of output i when input 0 lies as given; call after inference.
  std::string view(const ops::Strided& in, int i = 0) {
    auto v = def().view(g, g.node(node), i, in);
    return v ? v->offset.text() + " " + text(v->dims) + " " + text(v->strides) : "copy";
  }
  // The calls of the reference or of `lower`, with every value dense.
  Result<ops::LowerContext> lowered(bool reference = false) {
    ops::LowerContext c(g, g.node(node), [this](ValueId v) { return ops::Strided::dense(g.value(v).type.dims); });
    Status s = reference ? def().reference(c) : def().lower(c);
    if (!s.ok()) return std::move(s).take();
    return c;
  }
};

}  // namespace ge::test
