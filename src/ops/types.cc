#include "ops/types.h"

namespace ge::ops {
namespace {

struct Named {
  const char* name;
  Types types;
};
constexpr Named kNamed[] = {{"number", types::numbers}, {"float", types::floats}, {"integer", types::integers}, {"quantised", types::quantised}, {"float8", types::float8}, {"complex", types::complex}};

std::string listed(Types t) {
  std::string out;
  auto add = [&](std::string_view name) { out.append(out.empty() ? "" : " ").append(name); };
  for (auto& n : kNamed)
    if (t.has(n.types)) add(n.name), t = t - n.types;
  for (int i = 1; i < kDTypeCount; ++i)
    if (t.has(static_cast<DType>(i))) add(name(static_cast<DType>(i)));
  return out;
}

}  // namespace

std::string text(Types t) {
  if (t.has(types::all)) return "all";
  Types missing = types::all - t;
  if (types::all.has(t) && (types::complex | types::text | types::boolean).has(missing)) return "all but " + listed(missing);
  return listed(t);
}

}  // namespace ge::ops
