// oneDNN on one thread: it chooses the layout of every operand of a convolution and of the weights of a matmul, and
// the reorders into these run ahead of time. A and the output of a matmul are row-major, as in GE.
#include <omp.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "cases.h"
#include "kernels/isa.h"

namespace ge::sweep {
namespace {

using dnnl::memory;

dnnl::engine& engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}
dnnl::stream& stream() {
  static dnnl::stream s(engine());
  return s;
}

memory::desc row_major(const memory::dims& dims) {
  memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * dims[i + 1];
  return {dims, memory::data_type::f32, strides};
}
memory::desc any(const memory::dims& dims) { return {dims, memory::data_type::f32, memory::format_tag::any}; }

// `data`, row-major of dims, in the layout of `wanted`.
memory laid_out(const std::vector<float>& data, const memory::dims& dims, const memory::desc& wanted) {
  memory from(row_major(dims), engine(), const_cast<float*>(data.data())), to(wanted, engine());
  dnnl::reorder(from, to).execute(stream(), from, to);
  stream().wait();
  return to;
}

class OnednnSide : public Side {
 public:
  OnednnSide(const Case& c, const Operands& o) : dims_(c.c_dims()) {
    memory::dims bias_dims = {c.bias_count()}, weight_dims = c.b_dims();
    if (c.kind == Kind::matmul) {
      bias_dims = {1, c.n};
      auto d = dnnl::matmul::primitive_desc(engine(), row_major(c.a_dims()), any(weight_dims),
                                            c.has_bias() ? row_major(bias_dims) : memory::desc(), row_major(dims_));
      primitive_ = dnnl::matmul(d);
      place(c, o, d, weight_dims);
    } else {
      if (c.groups() > 1) weight_dims = {c.groups(), 1, 1, c.kernel, c.kernel};
      auto end = [&](int64_t in) { return (c.out(in) - 1) * c.stride + c.kernel - in - c.pad; };
      dnnl::post_ops after;
      after.append_eltwise(dnnl::algorithm::eltwise_relu, 0, 0);
      dnnl::primitive_attr attributes;
      attributes.set_post_ops(after);
      auto d = dnnl::convolution_forward::primitive_desc(
          engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, any(c.a_dims()),
          any(weight_dims), any(bias_dims), any(dims_), {c.stride, c.stride}, {c.pad, c.pad},
          {end(c.height), end(c.width)}, attributes);
      primitive_ = dnnl::convolution_forward(d);
      place(c, o, d, weight_dims);
    }
    if (c.has_bias()) arguments_[DNNL_ARG_BIAS] = laid_out(o.bias, bias_dims, row_major(bias_dims));
  }

  void run() override {
    primitive_.execute(stream(), arguments_);
    stream().wait();
  }
  std::vector<float> output() override {
    std::vector<float> out(static_cast<size_t>(row_major(dims_).get_size() / 4));
    memory to(row_major(dims_), engine(), out.data());
    dnnl::reorder(arguments_.at(DNNL_ARG_DST), to).execute(stream(), arguments_.at(DNNL_ARG_DST), to);
    stream().wait();
    return out;
  }

 private:
  template <class Desc>
  void place(const Case& c, const Operands& o, const Desc& d, const memory::dims& weight_dims) {
    arguments_[DNNL_ARG_SRC] = laid_out(o.a, c.a_dims(), d.src_desc());
    arguments_[DNNL_ARG_WEIGHTS] = laid_out(o.b, weight_dims, d.weights_desc());
    arguments_[DNNL_ARG_DST] = memory(d.dst_desc(), engine());
  }

  memory::dims dims_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
};

}  // namespace

std::unique_ptr<Side> onednn_side(const Case& c, const Operands& o) { return std::make_unique<OnednnSide>(c, o); }

void limit_onednn() {
  omp_set_num_threads(1);
  if (kernels::isa() == kernels::Isa::avx2) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  if (kernels::isa() == kernels::Isa::portable) dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
}

}  // namespace ge::sweep
