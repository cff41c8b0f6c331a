// Kernels of moved data on calls from a damaged file: prepare() answers everything with an error or runs
// without touching memory outside of the operands (the sanitizer build sees to that).
#include "ops/random_buffer.h"

namespace ge::test {
namespace {

bool mine(std::string_view name) {
  if (name.starts_with("move.") || name.starts_with("quantize.")) return true;
  for (auto n : {"ref.Reshape", "ref.Transpose", "ref.Slice", "ref.Concat", "ref.Expand", "ref.Tile", "ref.Pad", "ref.Gather", "ref.Where",
                 "ref.Cast", "ref.GatherElements", "ref.GatherND", "ref.ScatterElements", "ref.ScatterND", "ref.OneHot", "ref.Compress",
                 "ref.NonZero", "ref.ReverseSequence", "ref.TopK", "ref.ArgMax", "ref.CumSum", "ref.EyeLike", "ref.Trilu", "ref.Resize", "ref.QuantizeLinear", "ref.DequantizeLinear"})
    if (name == n) return true;
  return false;
}

TEST(Hostile, AnyCallIsAnswered) {
  Random r(31);
  const DType kTypes[] = {DType::f32, DType::f32, DType::f32, DType::i64, DType::i32, DType::boolean, DType::u8, DType::f16, DType::c128, DType::f8e8m0};
  const int64_t kExtremes[] = {INT64_MIN, INT64_MAX, -1, int64_t{1} << 40, -(int64_t{1} << 52), 64};
  int accepted = 0, refused = 0, reached = 0;
  for (auto* k : kernels::all()) {
    if (!mine(k->name)) continue;
    int ran = 0;
    for (int round = 0; round < 1500; ++round) {
      // Mostly one shape, so that some calls are good.
      std::vector<int64_t> shape;
      for (int64_t i = r.below(4); i > 0; --i) shape.push_back(r.below(5));
      DType type = kTypes[r.below(10)];
      auto operand = [&](bool index) {
        auto dims = shape;
        if (r.below(4) == 0 && !dims.empty()) dims[static_cast<size_t>(r.below(static_cast<int64_t>(dims.size())))] = r.below(3);
        if (r.below(6) == 0) dims.clear();
        if (r.below(8) == 0) dims.push_back(r.below(3));
        DType t = r.below(5) == 0 ? kTypes[r.below(10)] : index && r.below(2) ? DType::i64 : type;
        return is_integer(t) && bits(t) >= 32 ? r.numbers(t, dims, -3, 4) : r.buffer(t, dims);
      };
      std::vector<Buffer> in, out;
      for (int64_t i = 0, n = r.below(4); i < n; ++i) in.push_back(operand(i == 1));
      for (int64_t i = 0, n = r.below(8) ? 1 : r.below(4); i < n; ++i) out.push_back(operand(r.below(3) == 0));
      std::vector<View> vin = views(in), vout = views(out);
      if (r.below(10) == 0 && !vin.empty()) vin[0] = absent();
      if (r.below(10) == 0 && !vout.empty()) vout[0] = absent();
      if (r.below(20) == 0 && !vout.empty()) vout[0].rank = r.below(2) ? -1 : kMaxRank + 1 + static_cast<int32_t>(r.below(100));
      Params p;
      for (int64_t i = r.below(r.below(3) ? 4 : 9); i > 0; --i) p.ints.push_back(r.below(12) ? r.below(4) - r.below(8) / 6 : kExtremes[r.below(6)]);
      for (int64_t i = r.below(7); i > 0; --i) p.floats.push_back(r.below(9) ? static_cast<double>(r.below(5)) / 2 : 1e300);
      if (r.below(3) == 0) p.blob.resize(static_cast<size_t>(r.below(17)));
      // Damaged sizes and strides: such calls are prepared only.
      if (r.below(6) == 0 && !vin.empty() && vin[0].rank > 0) {
        std::vector<int64_t> dims(static_cast<size_t>(vin[0].rank), kExtremes[r.below(6)]), strides(dims.size(), kExtremes[r.below(6)]);
        View bad = vin[0];
        (r.below(2) ? bad.dims : bad.strides) = r.below(2) ? dims.data() : strides.data();
        auto hostile = vin;
        hostile[0] = bad;
        for (auto& v : hostile) v.data = nullptr;
        (void)k->prepare({hostile, vout, p.ints, p.floats, p.blob, nullptr, nullptr, nullptr});
        continue;
      }
      bool ok = run_kernel(k->name, vin, vout, p).ok();
      (ok ? accepted : refused)++;
      ran += ok;
    }
    reached += ran > 0;
  }
  // Chance does not fit every kernel's parameters; their own tests run those.
  EXPECT_GT(reached, 10);
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace ge::test
