#include "ops/evaluate.h"

#include <algorithm>
#include <new>

#include "base/text.h"
#include "tensor/pages.h"

namespace ge::ops {
namespace {

constexpr int64_t kHeld = int64_t{4} << 20;   // bytes of large operands in memory, where they can leave it

// 64-byte aligned memory for a kernel's scratch.
struct Scratch {
  explicit Scratch(int64_t bytes) : p(bytes ? static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), std::align_val_t(64))) : nullptr) {}
  ~Scratch() {
    if (p) ::operator delete(p, std::align_val_t(64));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* p;
};

// What moves elements or converts them has one result, whichever kernel does it: the fast ones do. Products are not
// asked: lowering packs their weights.
bool only_moves(const OpDef& def, LowerContext& c) {
  return def.lower && def.unit != kernels::Unit::cube && def.lower(c).ok() && !c.calls.empty() &&
         std::all_of(c.calls.begin(), c.calls.end(), [](auto& call) { return call.kernel.starts_with("move."); });
}

}  // namespace

Status run_kernel(std::string_view name, std::span<const View> in, std::span<const View> out,
                  std::span<const int64_t> ints, std::span<const double> floats, std::span<const std::byte> blob) {
  auto* k = kernels::find(name);
  if (!k) return error(code::kInternal, format("Kernel {} is missing.", name));
  kernels::Call call{in, out, ints, floats, blob, nullptr, nullptr, nullptr};
  GE_TRY(auto work, k->prepare(call));
  Scratch shared(work.shared), scratch(work.scratch);
  call.state = work.state.get();
  call.shared = shared.p;
  call.scratch = scratch.p;
  int64_t bytes = 0;
  for (auto views : {in, out})
    for (auto& v : views) bytes += v.data ? v.count() * size_of(v.dtype) : 0;
  const int64_t between = std::max<int64_t>(1, work.chunks * kHeld / std::max<int64_t>(bytes, 1));
  for (int64_t i = 0; i < work.chunks; ++i) {
    GE_RETURN_IF_ERROR(k->run(call, i));
    if ((i + 1) % between == 0) rest(in), rest(out);
  }
  return ok();
}

namespace {

Result<std::vector<Tensor>> evaluate_here(const Graph& g, const Node& n) {
  auto* def = find(n.op);
  if (!def) return node_error(code::kInternal, n.name, "unknown op");
  const auto dense = [&](ValueId v) { return Strided::dense(g.value(v).type.dims); };
  LowerContext moved(g, n, dense), meant(g, n, dense);
  const bool moves = only_moves(*def, moved);
  auto& c = moves ? moved : meant;
  if (!moves && def->reference) GE_RETURN_IF_ERROR(def->reference(c));
  else if (!moves && def->lower) GE_RETURN_IF_ERROR(def->lower(c));
  if (c.calls.empty()) return c.fail("it cannot be computed while compiling");
  std::vector<Tensor> outs(n.outputs.size()), temps;
  for (size_t i = 0; i < outs.size(); ++i) {
    if (!n.outputs[i]) continue;
    auto& t = g.value(n.outputs[i]).type;
    if (!t.is_static()) return c.fail("its output sizes are not known");
    std::vector<int64_t> dims;
    for (auto& d : t.dims) dims.push_back(d.value());
    outs[i] = Tensor(t.dtype, std::move(dims));
  }
  for (auto& t : c.temps) {
    std::vector<int64_t> dims;
    for (auto& d : t.dims) dims.push_back(d.known() ? d.value() : 0);
    temps.emplace_back(t.dtype, std::move(dims));
  }
  struct Sizes {
    std::vector<int64_t> dims, strides;
  };
  for (auto& call : c.calls) {
    std::vector<std::unique_ptr<Sizes>> keep;
    auto view = [&](const Arg& a) -> Result<View> {
      View v;
      switch (a.kind) {
        case Arg::Kind::none: return v;
        case Arg::Kind::temp: v = temps[static_cast<size_t>(a.index)].view(); break;
        case Arg::Kind::constant: v = c.constants[static_cast<size_t>(a.index)].view(); break;
        case Arg::Kind::value: {
          ValueId id{a.index};
          auto& value = g.value(id);
          if (value.constant) v = value.constant->view();
          else
            for (size_t i = 0; i < n.outputs.size(); ++i)
              if (n.outputs[i] == id) v = outs[i].view();
          if (v.dtype == DType::none) return c.fail("an input is not constant");
        }
      }
      if (!a.view) return v;
      auto s = std::make_unique<Sizes>();
      for (size_t i = 0; i < a.view->dims.size(); ++i) {
        if (!a.view->dims[i].known() || !a.view->strides[i].known()) return c.fail("its sizes are not known");
        s->dims.push_back(a.view->dims[i].value());
        s->strides.push_back(a.view->strides[i].value());
      }
      if (!a.view->offset.known()) return c.fail("its sizes are not known");
      v.data += a.view->offset.value() * size_of(v.dtype);
      v.rank = static_cast<int32_t>(s->dims.size());
      v.dims = s->dims.data();
      v.strides = s->strides.data();
      keep.push_back(std::move(s));
      return v;
    };
    std::vector<View> in, out;
    for (auto& a : call.in) {
      GE_TRY(View v, view(a));
      in.push_back(v);
    }
    for (auto& a : call.out) {
      GE_TRY(View v, view(a));
      out.push_back(v);
    }
    std::vector<int64_t> ints;
    for (auto& d : call.ints) {
      if (!d.known()) return c.fail("its parameters are not known");
      ints.push_back(d.value());
    }
    GE_RETURN_IF_ERROR(run_kernel(call.kernel, in, out, ints, call.floats, call.blob));
  }
  return outs;
}

}  // namespace

Result<std::vector<Tensor>> evaluate(const Graph& g, const Node& n) {
  try {
    return evaluate_here(g, n);
  } catch (const std::bad_alloc&) {
    return node_error(code::kOutOfMemory, n.name, format("There is not enough memory to compute {} while compiling.", n.op));
  }
}

}  // namespace ge::ops
