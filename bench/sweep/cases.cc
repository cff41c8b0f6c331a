#include "cases.h"

#include <algorithm>
#include <sstream>
#include <tuple>

namespace ge::sweep {
namespace {

class List {
 public:
  void model(const char* name) { model_ = name; }

  void matmul(int64_t m, int64_t n, int64_t k, int64_t batch = 1) {
    Case c{.model = model_, .kind = Kind::matmul};
    c.batch = batch, c.m = m, c.n = n, c.k = k;
    add(c);
  }
  // A square map of `size`.
  void conv(int64_t c, int64_t m, int64_t kernel, int64_t stride, int64_t size) {
    add(convolution(Kind::conv, c, m, kernel, stride, size));
  }
  void depthwise(int64_t c, int64_t kernel, int64_t stride, int64_t size) {
    add(convolution(Kind::depthwise, c, c, kernel, stride, size));
  }
  std::vector<Case> take() { return std::move(cases_); }

 private:
  Case convolution(Kind kind, int64_t c, int64_t m, int64_t kernel, int64_t stride, int64_t size) const {
    Case out{.model = model_, .kind = kind};
    out.c = c, out.m = m, out.height = out.width = size, out.kernel = kernel, out.stride = stride;
    out.pad = kernel == stride ? 0 : kernel / 2;
    return out;
  }
  static auto key(const Case& c) {
    return std::tie(c.kind, c.batch, c.m, c.n, c.k, c.c, c.height, c.kernel, c.stride);
  }
  void add(const Case& c) {
    if (std::none_of(cases_.begin(), cases_.end(), [&](const Case& o) { return key(o) == key(c); })) cases_.push_back(c);
  }

  const char* model_ = "";
  std::vector<Case> cases_;
};

void resnet50(List& l) {
  l.model("ResNet-50");
  l.conv(3, 64, 7, 2, 224);
  l.conv(64, 64, 1, 1, 56), l.conv(64, 64, 3, 1, 56), l.conv(64, 256, 1, 1, 56), l.conv(256, 64, 1, 1, 56);
  int64_t in = 256, size = 56;
  for (int64_t width : {128, 256, 512}) {
    l.conv(in, width, 1, 1, size), l.conv(width, width, 3, 2, size), l.conv(in, 4 * width, 1, 2, size);
    size /= 2, in = 4 * width;
    l.conv(width, in, 1, 1, size), l.conv(in, width, 1, 1, size), l.conv(width, width, 3, 1, size);
  }
  l.matmul(1, 1000, 2048);
}

void mobilenet(List& l) {
  l.model("MobileNetV1");
  l.conv(3, 32, 3, 2, 224);
  struct Step { int64_t c, m, stride, size; };
  for (auto [c, m, stride, size] : {Step{32, 64, 1, 112}, Step{64, 128, 2, 112}, Step{128, 128, 1, 56}, Step{128, 256, 2, 56},
                                    Step{256, 256, 1, 28}, Step{256, 512, 2, 28}, Step{512, 512, 1, 14}, Step{512, 1024, 2, 14},
                                    Step{1024, 1024, 1, 7}})
    l.depthwise(c, 3, stride, size), l.conv(c, m, 1, 1, size / stride);
  l.matmul(1, 1000, 1024);

  l.model("MobileNetV2");
  l.conv(32, 16, 1, 1, 112);
  struct Block { int64_t in, out, stride, size; };
  for (auto [in, out, stride, size] : {Block{16, 24, 2, 112}, Block{24, 24, 1, 56}, Block{24, 32, 2, 56}, Block{32, 32, 1, 28},
                                       Block{32, 64, 2, 28}, Block{64, 64, 1, 14}, Block{64, 96, 1, 14}, Block{96, 96, 1, 14},
                                       Block{96, 160, 2, 14}, Block{160, 160, 1, 7}, Block{160, 320, 1, 7}})
    l.conv(in, 6 * in, 1, 1, size), l.depthwise(6 * in, 3, stride, size), l.conv(6 * in, out, 1, 1, size / stride);
  l.conv(320, 1280, 1, 1, 7);
  l.matmul(1, 1000, 1280);

  l.model("MobileNetV3");
  l.conv(3, 16, 3, 2, 224);
  l.depthwise(16, 3, 1, 112), l.depthwise(64, 3, 2, 112), l.depthwise(72, 3, 1, 56), l.depthwise(72, 5, 2, 56);
  l.depthwise(120, 5, 1, 28), l.depthwise(240, 3, 2, 28), l.depthwise(200, 3, 1, 14), l.depthwise(480, 3, 1, 14);
  l.depthwise(672, 5, 1, 14), l.depthwise(672, 5, 2, 14), l.depthwise(960, 5, 1, 7);
}

void yolov8n(List& l) {
  l.model("YOLOv8n");
  l.conv(3, 16, 3, 2, 640), l.conv(16, 32, 3, 2, 320);
  l.conv(32, 32, 1, 1, 160), l.conv(16, 16, 3, 1, 160), l.conv(48, 32, 1, 1, 160), l.conv(32, 64, 3, 2, 160);
  l.conv(64, 64, 1, 1, 80), l.conv(32, 32, 3, 1, 80), l.conv(128, 64, 1, 1, 80), l.conv(64, 128, 3, 2, 80);
  l.conv(128, 128, 1, 1, 40), l.conv(64, 64, 3, 1, 40), l.conv(256, 128, 1, 1, 40), l.conv(128, 256, 3, 2, 40);
  l.conv(256, 256, 1, 1, 20), l.conv(128, 128, 3, 1, 20), l.conv(384, 256, 1, 1, 20);
  l.conv(256, 128, 1, 1, 20), l.conv(512, 256, 1, 1, 20);                                   // SPPF
  l.conv(384, 128, 1, 1, 40), l.conv(192, 128, 1, 1, 40), l.conv(192, 64, 1, 1, 80), l.conv(96, 64, 1, 1, 80);
  l.conv(64, 64, 3, 2, 80), l.conv(128, 128, 3, 2, 40);
  int64_t size = 80;
  for (int64_t c : {64, 128, 256}) {                                                         // the head
    l.conv(c, 64, 3, 1, size), l.conv(64, 64, 3, 1, size), l.conv(64, 64, 1, 1, size);
    l.conv(c, 80, 3, 1, size), l.conv(80, 80, 3, 1, size), l.conv(80, 80, 1, 1, size);
    size /= 2;
  }
}

// Layers of a transformer of `width` over `rows` tokens: merged Q, K, V; output; up; down; scores; context.
void transformer(List& l, int64_t rows, int64_t width, int64_t heads) {
  l.matmul(rows, 3 * width, width), l.matmul(rows, width, width);
  l.matmul(rows, 4 * width, width), l.matmul(rows, width, 4 * width);
  l.matmul(rows, rows, width / heads, heads), l.matmul(rows, width / heads, rows, heads);
}

}  // namespace

std::vector<Case> cases() {
  List l;
  resnet50(l);
  mobilenet(l);
  yolov8n(l);
  l.model("BERT-base");
  for (int64_t rows : {16, 128, 384}) transformer(l, rows, 768, 12);
  l.matmul(1, 768, 768);
  l.model("ViT-B/16");
  l.conv(3, 768, 16, 16, 224);
  transformer(l, 197, 768, 12);
  l.matmul(1, 1000, 768);
  l.model("ViT-S/16");
  transformer(l, 197, 384, 6);
  return l.take();
}

std::vector<int64_t> Case::a_dims() const {
  if (kind == Kind::matmul) return batch == 1 ? std::vector{m, k} : std::vector{batch, m, k};
  return {1, c, height, width};
}
std::vector<int64_t> Case::b_dims() const {
  if (kind == Kind::matmul) return batch == 1 ? std::vector{k, n} : std::vector{batch, k, n};
  return {m, c / groups(), kernel, kernel};
}
std::vector<int64_t> Case::c_dims() const {
  if (kind == Kind::matmul) return batch == 1 ? std::vector{m, n} : std::vector{batch, m, n};
  return {1, m, out(height), out(width)};
}

double Case::operations() const {
  if (kind == Kind::matmul) return 2.0 * static_cast<double>(batch * m * n * k);
  return 2.0 * static_cast<double>(m * out(height) * out(width) * (c / groups()) * kernel * kernel);
}

std::string Case::name() const {
  std::ostringstream s;
  if (kind == Kind::matmul) {
    if (batch > 1) s << batch << " x ";
    s << m << " x " << n << " x " << k;
    return s.str();
  }
  s << kernel << "x" << kernel;
  if (stride > 1) s << "/" << stride;
  s << " " << c;
  if (kind == Kind::conv) s << "-" << m;
  s << " @" << height;
  return s.str();
}

}  // namespace ge::sweep
