// The graphs of the goldens, as tests of other kinds take them.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/compare.h"
#include "ir/parse.h"
#include "passes/pass.h"

namespace ge {

struct Base {
  std::string name;
  ir::Graph graph;
  std::map<std::string, int64_t> sizes;
};

inline std::vector<Base> bases() {
  std::vector<Base> out;
  for (auto& e : std::filesystem::directory_iterator(GE_SOURCE_DIR "/tests/passes/golden")) {
    if (e.path().extension() != ".ir") continue;
    std::ifstream f(e.path());
    std::stringstream all;
    all << f.rdbuf();
    std::string text = all.str();
    Base b;
    b.name = e.path().stem().string();
    auto g = ir::parse(text.substr(0, text.find("// ---- expected")));
    EXPECT_TRUE(g.ok()) << e.path();
    b.graph = *std::move(g);
    for (auto& line : split(text, '\n'))
      if (line.starts_with("// sizes:"))
        for (auto& s : split(trim(line.substr(9)), ' ')) b.sizes[s.substr(0, s.find('='))] = std::atoll(s.c_str() + s.find('=') + 1);
    EXPECT_TRUE(passes::infer(b.graph).ok());
    out.push_back(std::move(b));
  }
  std::sort(out.begin(), out.end(), [](auto& a, auto& b) { return a.name < b.name; });
  return out;
}

}  // namespace ge
