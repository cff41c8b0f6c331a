#include <algorithm>

#include "base/text.h"
#include "kernels/cube/check.h"
#include "kernels/cube/pack.h"
#include "kernels/cube/recurrent.h"
#include "kernels/kernel.h"

namespace ge::kernels::cube {
namespace {

constexpr int64_t kChunkFloats = 64 * 1024;

// Panel `p` of a direction: which gate, and which block of its units.
struct Place {
  int64_t gate, block;
};
Place place_of(int64_t p, int64_t gates, int64_t together, int64_t blocks) {
  if (p < blocks * together) return {p % together, p / together};
  const int64_t left = p - blocks * together, rest = gates - together;
  return {together + left % rest, left / rest};
}

void pack_span(const View& v, int64_t gates, int64_t together, int64_t first, int64_t last, float* out) {
  const int64_t h = v.dims[1] / gates, k = v.dims[2], blocks = panels(h), each = gates * blocks;
  for (int64_t u = first; u < last; ++u) {
    const Place p = place_of(u % each, gates, together, blocks);
    const float* from = v.as<float>() + u / each * v.strides[0] + p.gate * h * v.strides[1];
    pack_panels(from, k, h, v.strides[2], v.strides[1], p.block, p.block + 1, out + u * k * 16);
  }
}

int64_t units_of(const Call& c) { return c.out[0].dims[0] * c.out[0].dims[1]; }

int64_t chunks_of(const Call& c) {
  const int64_t units = units_of(c);
  if (units * c.in[0].dims[2] == 0) return 0;
  const int64_t want = std::min<int64_t>(64, units * c.in[0].dims[2] * 16 / kChunkFloats);
  return want < 2 ? 1 : std::min(units, want / 2 * 2);
}

Result<Work> prepare(const Call& c) {
  auto bad = [](std::string why) { return error(code::kBadOp, "cube.pack_gates: " + why); };
  if (c.in.size() != 1 || c.out.size() != 1) return bad("takes one input and one output");
  if (c.ints.size() != 2 || !c.floats.empty() || !c.blob.empty()) return bad("takes 2 integers");
  const int64_t gates = c.ints[0], together = c.ints[1];
  if (gates < 1 || gates > 4 || together < 1 || together > gates) return bad("wrong number of gates");
  const View &v = c.in[0], &o = c.out[0];
  GE_RETURN_IF_ERROR(check_view(v, DType::f32, 3, 3, "input of cube.pack_gates"));
  GE_RETURN_IF_ERROR(check_view(o, DType::f32, 4, 4, "output of cube.pack_gates"));
  if (v.dims[1] % gates) return bad(format("{} rows are not {} gates", v.dims[1], gates));
  if (o.dims[0] != v.dims[0] || o.dims[1] != gates * panels(v.dims[1] / gates) || o.dims[2] != v.dims[2] || o.dims[3] != 16)
    return bad("the output does not fit");
  if (!o.dense()) return bad("the output must be dense");
  Work w;
  w.chunks = o.count() == 0 ? 0 : chunks_of(c);
  return w;
}

Status run(const Call& c, int64_t chunk) {
  const int64_t chunks = chunks_of(c), units = units_of(c);
  pack_span(c.in[0], c.ints[0], c.ints[1], units * chunk / chunks, units * (chunk + 1) / chunks, c.out[0].as<float>());
  return ok();
}

const Register kPackGates(Kernel{.name = "cube.pack_gates", .unit = Unit::cube, .prepare = prepare, .run = run});

}  // namespace

void pack_gates(const View& v, int64_t gates, int64_t together, float* out) {
  pack_span(v, gates, together, 0, v.dims[0] * gates * panels(v.dims[1] / gates), out);
}

}  // namespace ge::kernels::cube
