// GE's kernels as the runtime calls them on one thread: every chunk, one after another.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cases.h"
#include "kernels/cube/conv_pack.h"
#include "kernels/cube/pack.h"
#include "kernels/kernel.h"

namespace ge::sweep {
namespace {

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Buffer = std::unique_ptr<float, Free>;
Buffer buffer(int64_t floats) {
  auto bytes = (static_cast<size_t>(floats) * 4 + 4095) / 4096 * 4096 + 4096;
  auto* p = static_cast<float*>(std::aligned_alloc(4096, bytes));
  std::memset(p, 0, bytes);
  return Buffer(p);
}

// A tensor with strides of its own, and memory.
struct Array {
  std::vector<int64_t> dims, strides;
  Buffer data;

  static Array row_major(std::vector<int64_t> d) {
    Array a;
    a.dims = std::move(d), a.strides.assign(a.dims.size(), 1);
    for (size_t i = a.dims.size() - 1; i-- > 0;) a.strides[i] = a.strides[i + 1] * a.dims[i + 1];
    a.data = buffer(a.view().count());
    return a;
  }
  static Array channels_last(std::vector<int64_t> d) {  // of [N, C, H, W]
    Array a;
    a.dims = std::move(d);
    a.strides = {a.dims[1] * a.dims[2] * a.dims[3], 1, a.dims[3] * a.dims[1], a.dims[1]};
    a.data = buffer(a.view().count());
    return a;
  }
  View view() const {
    return {reinterpret_cast<std::byte*>(data.get()), DType::f32, static_cast<int32_t>(dims.size()), dims.data(), strides.data()};
  }
  // f(element of this array, element of a row-major one).
  template <class F>
  void each(const F& f) const {
    std::vector<int64_t> at(dims.size(), 0);
    for (int64_t i = 0, n = view().count(); i < n; ++i) {
      int64_t offset = 0;
      for (size_t a = 0; a < dims.size(); ++a) offset += at[a] * strides[a];
      f(data.get()[offset], static_cast<size_t>(i));
      for (size_t a = dims.size(); a-- > 0 && ++at[a] == dims[a];) at[a] = 0;
    }
  }
};

class GeSide : public Side {
 public:
  GeSide(const Case& c, const Operands& o) : kernel_(kernels::find(c.kind == Kind::matmul   ? "cube.matmul"
                                                                   : c.kind == Kind::conv ? "cube.conv"
                                                                                          : "cube.depthwise")) {
    Array b = Array::row_major(c.b_dims());
    std::memcpy(b.data.get(), o.b.data(), o.b.size() * 4);
    if (c.kind == Kind::matmul)
      matmul(c, b.view());
    else
      convolution(c, b.view());
    x_.each([&](float& x, size_t i) { x = o.a[i]; });
    in_ = {x_.view(), w_.view()};
    if (c.has_bias()) {
      bias_ = Array::row_major({c.bias_count()});
      std::memcpy(bias_.data.get(), o.bias.data(), o.bias.size() * 4);
      in_.push_back(bias_.view());
    }
    out_ = {y_.view()};
    call_ = {.in = in_, .out = out_, .ints = ints_, .floats = floats_};
    auto work = kernel_->prepare(call_);
    if (!work.ok()) {
      std::fprintf(stderr, "%s: %s\n", c.name().c_str(), work.error().text().c_str());
      std::exit(1);
    }
    work_ = *work;
    scratch_ = buffer(work_.scratch / 4 + 16), shared_ = buffer(work_.shared / 4 + 16);
    call_.state = work_.state.get();
    call_.scratch = reinterpret_cast<std::byte*>(scratch_.get()), call_.shared = reinterpret_cast<std::byte*>(shared_.get());
  }

  void run() override {
    for (int64_t i = 0; i < work_.chunks; ++i) {
      if (kernel_->run(call_, i).ok()) continue;
      std::fprintf(stderr, "%s failed\n", std::string(kernel_->name).c_str());
      std::exit(1);
    }
  }
  std::vector<float> output() override {
    std::vector<float> out(static_cast<size_t>(y_.view().count()));
    y_.each([&](float& y, size_t i) { out[i] = y; });
    return out;
  }

 private:
  void matmul(const Case& c, const View& b) {
    x_ = Array::row_major(c.a_dims()), y_ = Array::row_major(c.c_dims());
    std::vector<int64_t> dims = {kernels::cube::panels(c.n), c.k, 16};
    if (c.batch > 1) dims.insert(dims.begin(), c.batch);
    w_ = Array::row_major(dims);
    const int64_t matrix_dims[] = {c.k, c.n}, matrix_strides[] = {c.n, 1};
    for (int64_t i = 0; i < c.batch; ++i) {
      View matrix{b.data + i * c.k * c.n * 4, DType::f32, 2, matrix_dims, matrix_strides};
      kernels::cube::pack_b(matrix, w_.data.get() + i * kernels::cube::packed_floats(c.k, c.n));
    }
    ints_ = {0}, floats_ = {0, 0, 1};
  }
  void convolution(const Case& c, const View& w) {
    x_ = Array::channels_last(c.a_dims()), y_ = Array::channels_last(c.c_dims());
    if (c.kind == Kind::depthwise) {
      w_ = Array::row_major({kernels::cube::packed_depthwise_floats(w)});
      kernels::cube::pack_depthwise_weights(w, w_.data.get());
    } else {
      w_ = Array::row_major({kernels::cube::packed_conv_floats(w, 1)});
      kernels::cube::pack_conv_weights(w, 1, w_.data.get());
    }
    ints_ = {2, c.groups(), c.kernel, c.kernel, c.stride, c.stride, 1, 1, c.pad, c.pad, 1};
  }

  const kernels::Kernel* kernel_;
  Array x_, w_, bias_, y_;
  std::vector<View> in_, out_;
  std::vector<int64_t> ints_;
  std::vector<double> floats_;
  kernels::Call call_;
  kernels::Work work_;
  Buffer scratch_, shared_;
};

}  // namespace

std::unique_ptr<Side> ge_side(const Case& c, const Operands& o) { return std::make_unique<GeSide>(c, o); }

}  // namespace ge::sweep
