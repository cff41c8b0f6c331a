// One node with real tensors, run twice: by its reference kernels and the way lowering would run it (its
// `lower` hook, else its vector program, else the reference). Values may lie in any order of axes.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include "ops/evaluate.h"
#include "ops/op.h"
#include "tensor/half.h"

namespace ge::test {

using ir::Attrs;
using ir::ValueId;

class NodeCase {
 public:
  // An input with its content; as a constant or as something computed, lying in `layout`.
  NodeCase& in(Tensor t, bool constant = false, std::vector<int> layout = {}) {
    std::vector<Dim> dims(t.dims().begin(), t.dims().end());
    ValueId v = constant ? graph_.add_constant(t, "c") : graph_.add_input("x", ir::Type::tensor(t.dtype(), dims));
    graph_.value(v).layout = layout;
    data_[v.v] = std::move(t);
    inputs_.push_back(v);
    return *this;
  }
  NodeCase& none() {
    inputs_.push_back({});
    return *this;
  }
  // Output i is not wanted.
  NodeCase& without(int i) {
    absent_ |= 1u << i;
    return *this;
  }
  // The node, inferred; output 0 lies in `layout`. run() gives an empty tensor for an output that is not wanted.
  NodeCase& op(std::string name, Attrs attrs = {}, int outputs = 1, std::vector<int> layout = {}) {
    std::vector<ValueId> outs;
    for (int i = 0; i < outputs; ++i) outs.push_back(absent_ >> i & 1 ? ValueId{} : graph_.add_value("y", {}));
    id_ = graph_.add_node(std::move(name), inputs_, outs, std::move(attrs), "node");
    auto& def = *ops::find(graph_.node(id_).op);
    ops::InferContext c(graph_, graph_.node(id_));
    Status s = def.infer(c);
    EXPECT_TRUE(s.ok()) << s.error().message;
    for (size_t i = 0; s.ok() && i < c.out.size(); ++i)
      if (outs[i]) graph_.value(outs[i]).type = c.out[i];
    if (outs[0]) graph_.value(outs[0]).layout = std::move(layout);
    return *this;
  }
  std::vector<Tensor> reference() { return run(true); }
  std::vector<Tensor> lowered() { return run(false); }
  const std::vector<std::string>& kernels() const { return kernels_; }  // of the last run

 private:
  struct Storage {
    Tensor memory;        // what the strides count in
    ops::Strided view;
  };

  // A storage in which a value of these dims lies in the order of `layout`.
  static Storage make(DType t, const std::vector<Dim>& dims, std::vector<int> layout) {
    if (layout.empty())
      for (size_t a = 0; a < dims.size(); ++a) layout.push_back(static_cast<int>(a));
    std::vector<int64_t> physical;
    for (int a : layout) physical.push_back(dims[static_cast<size_t>(a)].value());
    auto strides = dense_strides(physical);
    Storage s{Tensor(t, physical), {Dim(0), dims, std::vector<Dim>(dims.size())}};
    for (size_t a = 0; a < layout.size(); ++a) s.view.strides[static_cast<size_t>(layout[a])] = strides[a];
    std::memset(s.memory.mutable_data(), 0xa5, s.memory.bytes());
    return s;
  }

  // f(element of the storage, element of the row-major tensor).
  template <class F>
  static void each(const Storage& s, const Tensor& dense, F f) {
    auto& dims = dense.dims();
    for (int64_t i = 0, n = dense.count(); i < n; ++i) {
      int64_t at = 0, left = i;
      for (size_t a = dims.size(); a-- > 0; left /= dims[a]) at += left % dims[a] * s.view.strides[a].value();
      int64_t size = size_of(dense.dtype());
      f(const_cast<std::byte*>(s.memory.data()) + at * size, const_cast<std::byte*>(dense.data()) + i * size, size);
    }
  }

  std::vector<Tensor> run(bool by_reference) {
    auto& n = graph_.node(id_);
    auto& def = *ops::find(n.op);
    std::map<int, Storage> storage;
    auto place = [&](ValueId v) {
      auto& value = graph_.value(v);
      if (!storage.count(v.v)) storage[v.v] = make(value.type.dtype, value.type.dims, value.layout);
    };
    for (ValueId v : n.inputs)
      if (v) {
        place(v);
        each(storage[v.v], data_[v.v], [](std::byte* s, std::byte* d, int64_t size) { std::memcpy(s, d, static_cast<size_t>(size)); });
      }
    for (ValueId v : n.outputs)
      if (v) place(v);
    ops::LowerContext c(graph_, n, [&](ValueId v) { return storage[v.v].view; });
    Status s = emit(c, def, by_reference);
    EXPECT_TRUE(s.ok()) << s.error().message;
    if (!s.ok()) return {};
    kernels_.clear();
    std::vector<Tensor> temps;
    for (auto& t : c.temps) {
      temps.emplace_back(t.dtype, numbers(t.dims));
      std::memset(temps.back().mutable_data(), 0xa5, temps.back().bytes());
    }
    for (auto& call : c.calls) {
      kernels_.push_back(call.kernel);
      Status done = run_call(c, call, storage, temps);
      EXPECT_TRUE(done.ok()) << call.kernel << ": " << (done.ok() ? "" : done.error().message);
      if (!done.ok()) return {};
    }
    std::vector<Tensor> out;
    for (ValueId v : n.outputs) {
      if (!v) {
        out.emplace_back();
        continue;
      }
      Tensor t(graph_.value(v).type.dtype, numbers(graph_.value(v).type.dims));
      each(storage[v.v], t, [](std::byte* from, std::byte* to, int64_t size) { std::memcpy(to, from, static_cast<size_t>(size)); });
      out.push_back(std::move(t));
    }
    return out;
  }

  static Status emit(ops::LowerContext& c, const ops::OpDef& def, bool by_reference) {
    if (by_reference) return def.reference(c);
    if (def.lower) GE_RETURN_IF_ERROR(def.lower(c));
    if (!c.calls.empty()) return ok();
    GE_TRY(bool done, ops::lower_as_vector(c, def));
    return done || !def.reference ? ok() : def.reference(c);
  }

  static std::vector<int64_t> numbers(const std::vector<Dim>& dims) {
    std::vector<int64_t> out;
    for (auto& d : dims) out.push_back(d.value());
    return out;
  }

  static Status run_call(ops::LowerContext& c, ops::CallSpec& call, std::map<int, Storage>& storage, std::vector<Tensor>& temps) {
    struct Sizes {
      std::vector<int64_t> dims, strides;
    };
    std::vector<std::unique_ptr<Sizes>> keep;
    auto view = [&](const ops::Arg& a) {
      View v;
      if (a.kind == ops::Arg::Kind::none) return v;
      const Tensor* t = a.kind == ops::Arg::Kind::temp       ? &temps[static_cast<size_t>(a.index)]
                        : a.kind == ops::Arg::Kind::constant ? &c.constants[static_cast<size_t>(a.index)]
                                                             : &storage[a.index].memory;
      ops::Strided s = a.view ? *a.view
                       : a.kind == ops::Arg::Kind::value
                           ? storage[a.index].view
                           : ops::Strided::dense(std::vector<Dim>(t->dims().begin(), t->dims().end()));
      keep.push_back(std::make_unique<Sizes>(Sizes{numbers(s.dims), numbers(s.strides)}));
      v.dtype = t->dtype();
      v.data = const_cast<std::byte*>(t->data()) + s.offset.value() * size_of(v.dtype);
      v.rank = static_cast<int32_t>(s.dims.size());
      v.dims = keep.back()->dims.data(), v.strides = keep.back()->strides.data();
      return v;
    };
    std::vector<View> in, out;
    for (auto& a : call.in) in.push_back(view(a));
    for (auto& a : call.out) out.push_back(view(a));
    return ops::run_kernel(call.kernel, in, out, numbers(call.ints), call.floats, call.blob);
  }

  ir::Graph graph_;
  ir::NodeId id_;
  uint32_t absent_ = 0;
  std::vector<ValueId> inputs_;
  std::map<int, Tensor> data_;
  std::vector<std::string> kernels_;
};

// --- tensors ---

// Sets element i of any numeric dtype.
inline void put(Tensor& t, int64_t i, double x) {
  switch (t.dtype()) {
    case DType::f32: t.as<float>()[i] = static_cast<float>(x); break;
    case DType::f64: t.as<double>()[i] = x; break;
    case DType::f16: t.as<uint16_t>()[i] = f32_to_f16(static_cast<float>(x)); break;
    case DType::bf16: t.as<uint16_t>()[i] = f32_to_bf16(static_cast<float>(x)); break;
    case DType::boolean: t.as<uint8_t>()[i] = x != 0; break;
    default: {
      auto v = static_cast<int64_t>(x);
      std::memcpy(t.mutable_data() + i * size_of(t.dtype()), &v, static_cast<size_t>(size_of(t.dtype())));
    }
  }
}
inline Tensor random_tensor(DType t, std::vector<int64_t> dims, unsigned seed, double low = -2, double high = 2) {
  Tensor out(t, std::move(dims));
  std::mt19937 engine(seed);
  bool unsigned_type = is_integer(t) && !is_signed(t);
  std::uniform_real_distribution<double> real(unsigned_type && low < 0 ? 0 : low, high);
  for (int64_t i = 0; i < out.count(); ++i) put(out, i, t == DType::boolean ? engine() % 2 : real(engine));
  return out;
}
inline Tensor tensor(DType t, std::vector<int64_t> dims, std::vector<double> values) {
  Tensor out(t, std::move(dims));
  EXPECT_EQ(out.count(), static_cast<int64_t>(values.size()));
  for (int64_t i = 0; i < out.count(); ++i) put(out, i, values[static_cast<size_t>(i)]);
  return out;
}

// Equal shapes and types; elements equal within `tolerance` of the largest magnitude (0: bitwise but for
// the sign of zero), NaN only where NaN is.
inline void expect_close(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.dtype(), b.dtype());
  ASSERT_EQ(a.dims(), b.dims());
  double scale = 0;
  for (int64_t i = 0; i < b.count(); ++i)
    if (std::isfinite(b.at(i))) scale = std::max(scale, std::fabs(b.at(i)));
  for (int64_t i = 0; i < b.count(); ++i) {
    double x = a.at(i), y = b.at(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    ASSERT_LE(std::fabs(x - y), tolerance * scale) << "element " << i << " of " << b.count() << ": " << x << " against " << y;
    ASSERT_FALSE(std::isnan(x) || std::isnan(y)) << "element " << i << ": " << x << " against " << y;
  }
}

}  // namespace ge::test
