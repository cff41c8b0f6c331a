// The memory plan that the file keeps, and the limit of the arena.
#include "base/log.h"
#include "base/text.h"
#include "driver/build.h"
#include "driver/gears.h"
#include "driver/peak.h"
#include "runtime/binding.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

// The limit where sizes may change: it holds for the largest. Without a largest it cannot be checked.
Status check_limit(const om::Package& package, const Options& o, const std::vector<std::string>& tensors) {
  auto& program = *package.model.programs[0];
  std::vector<int64_t> most;
  for (auto& s : program.symbols) {
    if (s->max == INT64_MAX) {
      log(LogLevel::warning, format("mem_workspace_size is not checked: size '{}' has no upper limit; give it one with --input_shape (1~64)", s->name));
      return ok();
    }
    most.push_back(s->max);
  }
  GE_TRY(auto b, runtime::Binding::make(package, program, most, {}));
  return b->arena > o.workspace_limit ? Status(over_limit(*b, tensors, o.workspace_limit, true)) : ok();
}

// The sets of sizes that are foreseen: gears that say all of them, and the hint.
Result<std::vector<std::vector<int64_t>>> foreseen(const om::ProgramT& program, const Options& o) {
  std::vector<std::vector<int64_t>> out;
  const size_t each = program.gear_symbols.size();
  if (each > 0 && each == program.symbols.size())
    for (size_t at = 0; at < program.gears.size(); at += each) {
      std::vector<int64_t> symbols(each);
      for (size_t i = 0; i < each; ++i) symbols[static_cast<size_t>(program.gear_symbols[i])] = program.gears[at + i];
      out.push_back(std::move(symbols));
    }
  if (o.input_hint_shape.empty()) return out;
  GE_TRY(auto shapes, hinted_shapes(o.input_hint_shape, program.inputs.size()));
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].empty()) continue;
    for (int32_t e : program.inputs[i]->dims) {
      const om::Expr& x = program.exprs[static_cast<size_t>(e)];
      if (x.op() != om::ExprOp::constant)
        return error(code::kInvalidValue, format("Value {} for parameter --input_hint_shape is invalid. Reason: input {} ('{}') has open sizes and is left out.", o.input_hint_shape, i, program.inputs[i]->name), "", "give its sizes");
      shapes[i].push_back(x.imm());
    }
  }
  auto symbols = runtime::bind_symbols(program, shapes);
  if (!symbols.ok())
    return error(code::kInvalidValue, format("Value {} for parameter --input_hint_shape is invalid. Reason: {}", o.input_hint_shape, symbols.error().message), "", "give sizes that the model takes");
  out.push_back(*std::move(symbols));
  return out;
}

void put_arena(Json& memory, const runtime::Binding& b) {
  memory["arena"] = b.arena, memory["lower_bound"] = b.lower_bound, memory["proved"] = b.proved, memory["threads"] = b.threads;
}

}  // namespace

runtime::BindOptions plan_options(const Options& o) {
  runtime::BindOptions bind;
  bind.threads = 1;
  bind.plan.strategy = static_cast<arena::Strategy>(o.allocator_strategy);
  bind.plan.budget_steps = o.plan_steps;
  return bind;
}

Status plan_memory(om::Package& package, const Options& o, const std::vector<std::string>& tensors, Json& r) {
  auto& program = *package.model.programs[0];
  const runtime::BindOptions bind = plan_options(o);
  if (!program.symbols.empty()) {
    GE_TRY(auto sets, foreseen(program, o));
    auto& memory = r["memory"];
    for (auto& symbols : sets) {
      GE_TRY(auto b, runtime::Binding::make(package, program, symbols, bind));
      program.plans.push_back(b->plan());
      Json sizes = Json::object();
      for (size_t i = 0; i < symbols.size(); ++i) sizes[program.symbols[i]->name] = symbols[i];
      memory["planned"].push_back({{"sizes", sizes}, {"arena", b->arena}, {"lower_bound", b->lower_bound}, {"proved", b->proved}});
      // Gears are all the sizes there are: the model's arena is that of the gear that needs the most.
      if (!program.gears.empty() && b->arena >= memory.value("arena", int64_t{0})) put_arena(memory, *b);
      if (o.workspace_limit > 0 && b->arena > o.workspace_limit) return over_limit(*b, tensors, o.workspace_limit, o.allocator_strategy == 2);
    }
    return o.workspace_limit > 0 && program.gears.empty() ? check_limit(package, o, tensors) : ok();
  }
  GE_TRY(auto b, runtime::Binding::make(package, program, {}, bind));
  program.plans.push_back(b->plan());
  put_arena(r["memory"], *b);
  if (o.workspace_limit > 0 && b->arena > o.workspace_limit)
    return over_limit(*b, tensors, o.workspace_limit, o.allocator_strategy == 2);
  return ok();
}

}  // namespace ge
