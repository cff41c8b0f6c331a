#include "driver/notes.h"

namespace ge {
namespace {

using Json = nlohmann::ordered_json;

// What readers rely on: an example of each value, "?" behind a key that may be missing. Lists hold any
// number of what stands in them; 0 is an integer, 0.5 any number.
const Json& form() {
  static const Json f = Json::parse(R"({
    "fused": [{"rule": "", "node": "", "origins": [""], "graph?": "", "how?": ""}],
    "branches?": [{"node": "", "by": "", "taken": "", "then?": "", "else?": "", "fails?": ""}],
    "bodies?": [{"graph": "", "tasks": 0, "fused": 0, "arena?": 0, "lower_bound?": 0, "proved?": true}],
    "near_misses": [{"rule": "", "anchor": "", "matched": 0, "of": 0, "blocker": "", "why": "", "help": ""}],
    "closed?": [{"nodes": [""], "why": "", "help": ""}],
    "switched_off": [""],
    "reference_ops": [""],
    "states?": [{"name": "", "input": "", "output": "", "update": "", "why": "", "converted": "", "unfit?": ""}],
    "memory": {"weights": 0, "state_bytes_per_token?": 0, "arena?": 0, "lower_bound?": 0, "proved?": true, "threads?": 0,
               "planned?": [{"sizes": {}, "arena": 0, "lower_bound": 0, "proved": true}]},
    "precision?": {"mode": "", "notes?": [""], "bf16": [""], "f32": [{"node": "", "why": ""}], "gain?": {"model": 0.5},
                   "bf16_would?": {"nodes": 0, "model": 0.5}, "difference?": 0.5},
    "split?": {"parts": [{"name": "", "nodes": 0, "tasks": 0, "weights": 0}], "shared_weights": 0,
               "cuts": [{"value": "", "type": "", "from": "", "to": [""], "bytes?": 0, "apart?": [""]}]}
  })");
  return f;
}

bool fits(const Json& value, const Json& example) {
  if (example.is_object()) {
    if (!value.is_object()) return false;
    for (auto& [key, inner] : example.items()) {
      bool may_miss = key.back() == '?';
      auto it = value.find(may_miss ? key.substr(0, key.size() - 1) : key);
      if (it == value.end() ? !may_miss : !fits(*it, inner)) return false;
    }
    return true;
  }
  if (example.is_array()) {
    if (!value.is_array()) return false;
    for (auto& v : value)
      if (!fits(v, example[0])) return false;
    return true;
  }
  if (example.is_number_integer()) return value.is_number_integer();
  if (example.is_number()) return value.is_number();
  return value.type() == example.type();
}

}  // namespace

Json notes_of(const om::Package& package) {
  Json j = Json::parse(package.notes, nullptr, false);
  if (j.is_discarded() || !fits(j, form())) return Json::object();
  auto& memory = j["memory"];
  for (const char* with : {"lower_bound", "proved", "threads"})
    if (memory.contains("arena") && !memory.contains(with)) return Json::object();
  return j;
}

}  // namespace ge
