// `ge plan`: the compiler's own planner on a problem from a CSV file.
#include <chrono>
#include <nlohmann/json.hpp>

#include "arena/arena.h"
#include "base/file.h"
#include "base/text.h"
#include "driver/commands.h"

namespace ge {
namespace {

// About 20 s. The compiler's own budget is Options::plan_steps.
constexpr int64_t kSteps = 6'000'000'000;

Result<arena::Problem> read_problem(const std::string& path) {
  GE_TRY(auto file, MappedFile::open(path));
  auto bytes = file->bytes();
  auto problem = arena::read_csv({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (!problem.ok()) return std::move(problem).context(path);
  return problem;
}

std::string plan_json(const arena::Problem& p, const arena::Plan& plan, double ms) {
  nlohmann::ordered_json out = {{"arena", plan.arena}, {"lower_bound", plan.lower_bound}, {"proved", plan.proved}, {"ms", ms}};
  auto& offsets = out["offsets"] = nlohmann::ordered_json::object();
  // Ids are distinct: push_back spares the map its search for each.
  auto& list = offsets.get_ref<nlohmann::ordered_json::object_t&>();
  list.reserve(p.ids.size());
  for (size_t i = 0; i < p.ids.size(); ++i) list.push_back({p.ids[i], plan.offset[i]});
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string plan_text(const arena::Problem& p, const arena::Plan& plan, double ms) {
  double gap = plan.lower_bound ? 100.0 * static_cast<double>(plan.arena - plan.lower_bound) / static_cast<double>(plan.lower_bound) : 0;
  return format("buffers: {}\narena: {}\nlower bound: {}\ngap: {:.3f} %\nproved: {}\ntime: {:.1f} ms, {} steps\n", p.ids.size(), plan.arena, plan.lower_bound,
                gap, plan.proved ? "yes, no smaller arena exists" : "no", ms, plan.steps);
}

}  // namespace

Result<JudgedOutput> plan_command(const PlanCommand& c) {
  GE_TRY(auto problem, read_problem(c.problem));
  int64_t bound = arena::lower_bound(problem.intervals);
  const bool impossible = c.capacity && *c.capacity < bound;
  arena::Options options;
  options.strategy = arena::Strategy::search;
  options.budget_steps = impossible ? 1 : c.steps > 0 ? c.steps : kSteps;   // its first plans
  if (!impossible) options.capacity = c.capacity;
  auto start = std::chrono::steady_clock::now();
  arena::Plan plan = arena::plan(problem.intervals, options);
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (Verdict sound = arena::validate(problem.intervals, plan.offset, plan.arena); !sound)
    return error(code::kInternal, "The plan is wrong: " + sound.why + ".");
  JudgedOutput out;
  out.text = c.json ? plan_json(problem, plan, ms) : plan_text(problem, plan, ms);
  if (impossible)
    out.missed = format("no plan has a capacity of {}: the sizes alive at one time add up to {}; give --capacity={} or more", *c.capacity, bound, bound);
  else if (c.capacity && plan.arena > *c.capacity)
    out.missed = plan.proved ? format("no plan fits a capacity of {}: the least arena is {}", *c.capacity, plan.arena)
                             : format("no plan with a capacity of {} was found: the best takes {}", *c.capacity, plan.arena);
  return out;
}

}  // namespace ge
