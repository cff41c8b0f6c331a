#include "base/ini.h"

#include "base/text.h"

namespace ge {

std::string_view without_mark(std::string_view text) { return text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text; }

std::string_view without_comment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i)
    if ((line[i] == '#' || line[i] == ';') && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return trim(line.substr(0, i));
  return trim(line);
}

std::vector<IniLine> ini_lines(std::string_view text) {
  std::vector<IniLine> out;
  std::string section;
  int number = 0;
  for (auto& raw : split(without_mark(text), '\n')) {
    ++number;
    std::string_view line = without_comment(raw);
    if (line.empty()) continue;
    if (line.size() > 2 && line.front() == '[' && line.back() == ']') {
      section = trim(line.substr(1, line.size() - 2));
      out.push_back({number, section, "", "", !section.empty()});
      if (section.empty()) out.back().key = line;
      continue;
    }
    size_t at = line.find_first_of("=:");
    std::string_view key = trim(line.substr(0, at));
    if (at == std::string_view::npos || key.empty() || line.front() == '[') out.push_back({number, section, std::string(line), "", false});
    else out.push_back({number, section, std::string(key), std::string(trim(line.substr(at + 1))), true});
  }
  return out;
}

}  // namespace ge
