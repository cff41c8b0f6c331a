// A graph from its text, with inferred types.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/parse.h"
#include "passes/pass.h"

namespace ge::passes {

inline ir::Graph typed_graph(const std::string& text) {
  auto g = ir::parse(text);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : g.error().text());
  EXPECT_TRUE(infer(*g).ok());
  return *std::move(g);
}

}  // namespace ge::passes
