// RandomUniform, RandomNormal (+ Like), Bernoulli, Multinomial. The same model gives the same numbers in every run: a
// node without a seed has seed 0 and a stream of its own, by the name of its output.
#include "base/text.h"
#include "ops/shape_util.h"

namespace ge::ops {
namespace {

Result<DType> type_of(const InferContext& c, DType otherwise) {
  int64_t t = attr_int(c.node, "dtype", static_cast<int64_t>(otherwise));
  if (t <= 0 || t >= kDTypeCount || size_of(static_cast<DType>(t)) == 0 || static_cast<DType>(t) == DType::string) return c.fail(format("attribute dtype = {} is no type of numbers", t));
  return static_cast<DType>(t);
}
Result<DType> float_type(const InferContext& c, DType otherwise) {
  GE_TRY(DType t, type_of(c, otherwise));
  if (!is_float(t) || bits(t) < 16) return c.fail(format("random numbers of type {} are not supported", name(t)));
  return t;
}

Status infer_shape(InferContext& c) {
  GE_TRY(DType t, float_type(c, DType::f32));
  auto shape = attr_ints(c.node, "shape");
  for (int64_t d : shape)
    if (d < 0) return c.fail(format("attribute shape holds {}; no size may be negative", d));
  c.set(0, t, as_dims(shape));
  return ok();
}
Status infer_like(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_TRY(DType t, float_type(c, c.dtype(0)));
  c.out[0] = c.type(0);
  c.out[0].dtype = t;
  return ok();
}
Status infer_bernoulli(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_TRY(DType t, type_of(c, c.dtype(0)));
  c.out[0] = c.type(0);
  c.out[0].dtype = t;
  return ok();
}
Status infer_multinomial(InferContext& c) {
  GE_RETURN_IF_ERROR(require_inputs(c, 1));
  GE_TRY(DType t, type_of(c, DType::i32));
  if (!is_index_type(t)) return c.fail(format("samples are i32 or i64, not {}", name(t)));
  if (c.ranked(0) && c.rank(0) != 2) return c.fail(format("{} is not a matrix", text(c.dims(0))));
  int64_t samples = attr_int(c.node, "sample_size", 1);
  if (samples < 0) return c.fail(format("attribute sample_size is {}; it must be 0 or more", samples));
  c.set(0, t, {c.ranked(0) ? c.dims(0)[0] : c.fresh("n"), Dim(samples)});
  return ok();
}

Status reference_random(LowerContext& c) {
  bool normal = c.node.op.starts_with("RandomNormal");
  double a = normal ? ir::attr_float(c.node, "mean", 0) : ir::attr_float(c.node, "low", 0);
  double b = normal ? ir::attr_float(c.node, "scale", 1) : ir::attr_float(c.node, "high", 1);
  c.call("ref.Random", {}, {c.out()}, {int64_t{normal}, attr_int(c.node, "stream", 0)}, {ir::attr_float(c.node, "seed", 0), a, b});
  return ok();
}
Status reference_drawn(LowerContext& c) {
  c.call("ref." + c.node.op, {c.in(0)}, {c.out()}, {0, attr_int(c.node, "stream", 0)}, {ir::attr_float(c.node, "seed", 0)});
  return ok();
}

// FNV-1a.
int64_t hash(std::string_view s) {
  uint64_t h = 0xcbf29ce484222325;
  for (char ch : s) h = (h ^ static_cast<unsigned char>(ch)) * 0x100000001b3;
  return static_cast<int64_t>(h >> 1);
}
Status upgrade(UpgradeContext& c) {
  if (ir::has_attr(c.node(), "seed") || c.node().outputs.empty() || !c.node().outputs[0]) return ok();
  c.node().attrs["stream"] = hash(c.graph.value(c.node().outputs[0]).name);
  return ok();
}

OpDef define(const char* name, int inputs, int since, std::vector<AttrDef> attrs, Status (*infer)(InferContext&), Status (*reference)(LowerContext&)) {
  OpDef d;
  d.name = name;
  d.min_inputs = d.max_inputs = inputs;
  d.since = since;
  d.attrs = std::move(attrs);
  d.attrs.push_back({"seed", "The same seed gives the same numbers."});
  d.attrs.push_back({"dtype", "Type of the output."});
  d.doc = "Random numbers, the same in every run.";
  d.infer = infer;
  d.upgrade = upgrade;
  d.reference = reference;
  d.deterministic = false;
  return d;
}

OpDef drawn(const char* name, int since, std::vector<AttrDef> attrs, Status (*infer)(InferContext&)) {
  OpDef d = define(name, 1, since, std::move(attrs), infer, reference_drawn);
  d.types = types::floats;
  return d;
}

const std::vector<AttrDef> kUniform{{"low", "Least."}, {"high", "Bound."}, {"shape", "Of the output."}};
const std::vector<AttrDef> kNormal{{"mean", "Mean."}, {"scale", "Standard deviation."}, {"shape", "Of the output."}};
const Register registered[] = {
    Register(define("RandomUniform", 0, 1, kUniform, infer_shape, reference_random)),
    Register(define("RandomNormal", 0, 1, kNormal, infer_shape, reference_random)),
    Register(define("RandomUniformLike", 1, 1, kUniform, infer_like, reference_random)),
    Register(define("RandomNormalLike", 1, 1, kNormal, infer_like, reference_random)),
    Register(drawn("Bernoulli", 15, {}, infer_bernoulli)),
    Register(drawn("Multinomial", 7, {{"sample_size", "Samples of a row."}}, infer_multinomial)),
};

}  // namespace
}  // namespace ge::ops
