// The kernels that the runtime runs itself, which alone knows programs and values that are no tensors: here
// they only have names. What they do is in src/runtime.
#include "kernels/kernel.h"

namespace ge::kernels {
namespace {

Result<Work> nothing_here(const Call&) {
  Work w;
  w.chunks = 0;
  return w;
}
Status never(const Call&, int64_t) { return ok(); }

Kernel of(std::string_view name) { return {.name = name, .unit = Unit::host, .prepare = nothing_here, .run = never, .executor = true}; }

const Register registered[] = {
    Register(of("flow.if")),          Register(of("flow.loop")),          Register(of("flow.scan")),
    Register(of("value.copy")),       Register(of("sequence.construct")), Register(of("sequence.insert")),
    Register(of("sequence.erase")),   Register(of("sequence.at")),        Register(of("sequence.length")),
    Register(of("sequence.concat")),  Register(of("sequence.split")),     Register(of("optional.make")),
    Register(of("optional.has")),     Register(of("optional.get")),
    Register(of("text.concat")),      Register(of("text.split")),         Register(of("text.normalize")),
    Register(of("text.matches")),     Register(of("text.cast")),         Register(of("text.tokens")),
    Register(of("select.unique")),
    Register(of("select.non_max_suppression")), Register(of("value.squeeze")), Register(of("flow.fail")),
    Register(of("map.zip")),          Register(of("map.cast")),           Register(of("map.vectorize")),
};

}  // namespace
}  // namespace ge::kernels
