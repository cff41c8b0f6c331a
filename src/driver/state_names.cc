// Names that exporters give to caches.
#include <algorithm>
#include <cctype>
#include <set>
#include <vector>

#include "base/text.h"
#include "driver/states.h"

namespace ge {
namespace {

// Words and numbers of a name: "past_key_values.3.key" -> past key values 3 key.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> out;
  bool inside = false, digit = false;
  for (unsigned char c : text) {
    if (!std::isalnum(c)) {
      inside = false;
      continue;
    }
    bool number = std::isdigit(c) != 0;
    if (!inside || number != digit) out.emplace_back();
    out.back() += static_cast<char>(std::tolower(c));
    inside = true, digit = number;
  }
  return out;
}

}  // namespace

StateName state_name(const std::string& value) {
  static const std::set<std::string> kCaches = {"kv", "kvs", "cache", "layers", "layer"};
  StateName s;
  std::string layer, who, what;
  auto words = words_of(value);
  for (size_t i = 0; i < words.size(); ++i) {
    auto& w = words[i];
    bool more = i + 1 < words.size();
    if (w == "past") s.past = true;
    else if (w == "present") s.present = true;
    else if ((w == "key" || w == "k") && more && (words[i + 1] == "values" || words[i + 1] == "value")) ++i;
    else if (w == "key" || w == "value") what = w;
    else if (w == "keys" || w == "values") what = w.substr(0, w.size() - 1);
    else if (w == "encoder" || w == "decoder" || w == "self" || w == "cross") who = w;
    else if (std::isdigit(static_cast<unsigned char>(w[0])) && layer.empty()) layer = w;
    else if (!kCaches.count(w)) return {};
  }
  if (s.past == s.present || (layer.empty() && what.empty())) return {};
  std::vector<std::string> parts;
  for (auto& part : {layer, who, what})
    if (!part.empty()) parts.push_back(part);
  s.name = join(parts, ".");
  return s;
}

}  // namespace ge
