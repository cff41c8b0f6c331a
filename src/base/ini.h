// INI text as people write it: sections, key = value, comments behind '#' or ';', any indentation.
// (The usual C library reads indented lines as continuations and cuts lines at 200 bytes.)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ge {

struct IniLine {
  int number;           // from 1
  std::string section;  // "" before the first [section]
  std::string key;      // "" where the line opens the section
  std::string value;
  bool good = true;     // false: neither a [section] nor key = value; `key` holds the line
};

// Every line that says something. A byte order mark and line ends of other systems are skipped; a comment
// starts a line or follows a blank.
std::vector<IniLine> ini_lines(std::string_view text);

// `text` without a byte order mark in front.
std::string_view without_mark(std::string_view text);

// `line` without its comment and the blanks around it.
std::string_view without_comment(std::string_view line);

}  // namespace ge
