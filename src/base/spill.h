// Large blocks of memory. While a Spill lives a file without a name stands behind each: the pages can leave memory
// (let_go_of_pages) and come back, so that weights need not be held while they are laid out.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace ge {

class Spill {
 public:
  // beside: a folder whose disk is tried before those for temporary files, or empty.
  explicit Spill(std::string beside = "");
  ~Spill();
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

 private:
  std::string beside_;
};

bool spilling();

// Zeros, of a page's alignment; null where there is no memory. Where no folder lies on a disk that has room the block
// is plain memory.
std::shared_ptr<std::byte> large_block(size_t bytes);

}  // namespace ge
