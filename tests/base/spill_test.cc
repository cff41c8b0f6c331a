#include "base/spill.h"

#include <gtest/gtest.h>

#include <span>

#include "base/file.h"

namespace ge {
namespace {

constexpr size_t kBytes = (size_t(1) << 20) + 4096;

// Written, let go of, read again.
void expect_kept(std::byte* block) {
  for (size_t i = 0; i < kBytes; ++i) {
    ASSERT_EQ(block[i], std::byte{0}) << i;
    block[i] = static_cast<std::byte>(i * 7 + i / 4096);
  }
  let_go_of_pages({block, kBytes});
  for (size_t i = 0; i < kBytes; ++i) ASSERT_EQ(block[i], static_cast<std::byte>(i * 7 + i / 4096)) << i;
}

TEST(Spill, BlocksKeepWhatTheyHold) {
  auto plain = large_block(kBytes);   // no Spill: ordinary memory, whose pages stay
  ASSERT_TRUE(plain);
  expect_kept(plain.get());
  std::shared_ptr<std::byte> spilled;
  {
    Spill spill;
    spilled = large_block(kBytes);
  }
  ASSERT_TRUE(spilled);
  expect_kept(spilled.get());         // longer than the Spill
}

TEST(Spill, WithoutAFolderBlocksArePlain) {
  ASSERT_EQ(setenv("TMPDIR", "/nothing/there", 1), 0);
  Spill spill;
  auto block = large_block(kBytes);
  unsetenv("TMPDIR");
  ASSERT_TRUE(block);
  expect_kept(block.get());
}

}  // namespace
}  // namespace ge
