// Kernel "cube.winograd_or_direct": a convolution whose sizes are known only when it is bound, as cube.winograd or as
// cube.conv, whichever costs less there. Operands, parameters and epilogue as of cube.winograd, and last the weights of
// cube.conv, whose transform another task has made of them (cube.winograd_filters, which decides alike); the last of the
// parameters: whether that is kept from run to run, and, if given and not 0, the size of axis 2 of the map that this is a
// piece of, which decides in the place of its own. in_place: the residual.
#include <array>
#include <utility>

#include "base/text.h"
#include "kernels/cube/conv_shape.h"
#include "kernels/cube/winograd.h"
#include "kernels/cube/winograd_cost.h"

namespace ge::kernels::cube {
namespace {

constexpr std::string_view kName = "cube.winograd_or_direct";

struct Choice {
  const Kernel* kernel = nullptr;
  bool direct = false;
  std::shared_ptr<const void> state;
};

// The operands as the chosen kernel has them, in `in`.
Call inner(const Call& call, const Choice& choice, std::array<View, kMostOfChoice>& in) {
  const size_t count = call.in.size() - 1;
  std::copy(call.in.begin(), call.in.end() - 1, in.begin());
  if (choice.direct) in[1] = call.in[count];
  Call c = call;
  c.in = std::span(in).first(count);
  c.state = choice.state.get();
  return c;
}

Result<Work> prepare(const Call& call) {
  if (call.in.size() < 3 || call.in.size() > kMostOfChoice) return error(code::kBadOp, format("{}: takes 3 to {} inputs", kName, kMostOfChoice));
  auto chosen = std::make_shared<Choice>();
  GE_TRY(ConvShape s, conv_shape(call, kName));
  if (call.in[1].rank != 4 || !call.in[1].dims) return error(code::kBadOp, format("{}: the transformed weights must have four axes", kName));
  const auto count = static_cast<size_t>(3 + 4 * s.rank);
  if (call.ints.size() != count + 1 && call.ints.size() != count + 2) return error(code::kBadOp, format("{}: takes {} parameters", kName, count + 2));
  std::array size{s.out[0], s.out[1], s.out[2]};
  if (int64_t rows = call.ints.size() > count + 1 ? call.ints[count + 1] : 0; rows > 0 && rows <= kMaxConvNumber) size[static_cast<size_t>(3 - s.rank)] = rows;
  const int64_t frequencies = call.in[1].dims[0], edge = s.k[1] == 3 ? 6 : 1;
  const int tile = frequencies == edge * 6 ? 4 : 2;
  chosen->direct = !pays_unstored({s.m, s.c, s.n * size[0], size[1], size[2], s.dilation[1], s.dilation[2], s.k[1] == 3}, tile, call.ints[count] != 0);
  chosen->kernel = find(chosen->direct ? "cube.conv" : "cube.winograd");
  std::array<View, kMostOfChoice> in;
  GE_TRY(Work w, chosen->kernel->prepare(inner(call, *chosen, in)));
  chosen->state = std::exchange(w.state, nullptr);
  w.state = std::move(chosen);
  return w;
}

Status run(const Call& call, int64_t chunk) {
  auto& chosen = *static_cast<const Choice*>(call.state);
  std::array<View, kMostOfChoice> in;
  return chosen.kernel->run(inner(call, chosen, in), chunk);
}

const Register r(Kernel{.name = kName, .unit = Unit::cube, .prepare = prepare, .run = run, .in_place = 1u << 3, .operations = conv_operations});

}  // namespace

bool pays_unstored(const WinogradSizes& s, int tile, bool kept) {
  ConvCost c;
  auto number = [](int64_t v) { return static_cast<double>(v); };
  c.m = number(s.m), c.c = number(s.c), c.images = number(s.images), c.height = number(s.height), c.width = number(s.width);
  c.two_axes = s.two_axes;
  c.phases_w = std::min(c.width, number(s.dilation_w)), c.phases_h = s.two_axes ? std::min(c.height, number(s.dilation_h)) : 1;
  if (c.images * c.height * c.width <= 0) return false;
  return winograd_cycles(c, tile) + (kept ? 0 : filter_cycles(c, tile)) < (1 - kLeastGain) * direct_cycles(c);
}

}  // namespace ge::kernels::cube
