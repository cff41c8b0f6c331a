// Memory of outputs: what the caller lets go serves a later run, no more than one run's worth of it.
#include "runtime/output_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ge::runtime {
namespace {

constexpr int64_t kLarge = 1 << 20;

TEST(OutputMemory, WhatIsLetGoServesTheNextRun) {
  auto memory = std::make_shared<OutputMemory>();
  memory->keep_up_to(kLarge);
  auto first = *memory->take(kLarge);
  auto second = *memory->take(kLarge);
  ASSERT_NE(first.get(), second.get());
  std::byte* was = first.get();
  first.reset();
  EXPECT_EQ(memory->idle_bytes(), kLarge);
  second.reset();  // a second one would be more than a run's outputs
  EXPECT_EQ(memory->idle_bytes(), kLarge);
  auto again = *memory->take(kLarge);
  EXPECT_EQ(again.get(), was);
  EXPECT_EQ(memory->idle_bytes(), 0);
  EXPECT_NE((*memory->take(kLarge + 64)).get(), was);  // in use, and of another size
}

TEST(OutputMemory, NothingIsKeptBeforeARunSaysHowMuchNorAfterTrim) {
  auto memory = std::make_shared<OutputMemory>();
  (*memory->take(kLarge)).reset();
  EXPECT_EQ(memory->idle_bytes(), 0);
  memory->keep_up_to(kLarge);
  (*memory->take(kLarge)).reset();
  EXPECT_EQ(memory->idle_bytes(), kLarge);
  auto held = *memory->take(kLarge);
  memory->trim();
  held.reset();
  EXPECT_EQ(memory->idle_bytes(), 0);
}

TEST(OutputMemory, OutputsOutliveWhoeverMadeThem) {
  auto memory = std::make_shared<OutputMemory>();
  memory->keep_up_to(2 * kLarge);
  auto small = *memory->take(0), large = *memory->take(kLarge);
  memory.reset();
  std::memset(large.get(), 1, kLarge);
  *small = std::byte{1};
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large.get()) % 64, 0u);
}

}  // namespace
}  // namespace ge::runtime
