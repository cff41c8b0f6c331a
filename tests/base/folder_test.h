// Tests with a folder of their own for files, which goes with them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/text.h"

namespace ge {

namespace fs = std::filesystem;

class FolderTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  // Of files and folders in it.
  size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator())); }
  std::string content(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const fs::path folder_ = fs::path(testing::TempDir()) / format("ge_folder.{}", getpid());   // CTest runs each test in a process
};

}  // namespace ge
