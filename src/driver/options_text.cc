#include "base/text.h"
#include "driver/build.h"

namespace ge {

std::string options_text(const Options& o) {
  std::string t = format("{} {} {} {} {} {} {} {} {} {} {} {}", o.single_stream, o.multi_stream, o.memory_policy, o.reuse_memory, o.fusion, o.reference, o.verify, o.allocator_strategy, o.plan_steps, o.workspace_limit, o.input_format, o.topo_sorting_mode);
  t += " name " + o.name + " backend " + o.op_backend + " state " + o.state + " " + o.state_dtype;
  t += format(" gears {} {} {} hint {}", o.dynamic_batch_size, o.dynamic_image_size, o.dynamic_dims, o.input_hint_shape);
  for (auto& [k, v] : o.input_shape) t += " shape " + k + ":" + join(v, ",");
  for (auto& d : o.disabled) t += " off " + d;
  for (auto& d : o.scope) t += " scope " + d;
  for (auto& [k, v] : o.eps) t += format(" eps {}={}", k, v);
  for (auto h : o.head_num) t += format(" heads {}", h);
  if (o.attention_scale) t += format(" scale {}", *o.attention_scale);
  auto& p = o.precision;
  t += format(" precision {} {} {} {}", p.mode, p.bf16, p.check, join(p.fp16_inputs, ";"));
  for (auto* names : {&p.f32_types, &p.f32_nodes, &p.bf16_types, &p.bf16_nodes}) {
    t += " list";
    for (auto& n : *names) t += " " + n;
  }
  return t + " feed " + join(o.feed, ";") + " out " + join(o.out_nodes, ";") + " type " + join(o.output_type, ";");
}

}  // namespace ge
