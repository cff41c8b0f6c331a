// Memory of outputs that a run makes for its caller. A large one that the caller has let go serves a later run: the
// system would take its pages back and hand them out again one fault at a time. Keeps no more than one run's outputs;
// lives as long as any of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.h"

namespace ge::runtime {

class OutputMemory : public std::enable_shared_from_this<OutputMemory> {
 public:
  OutputMemory() = default;
  ~OutputMemory() { trim(); }
  OutputMemory(const OutputMemory&) = delete;
  OutputMemory& operator=(const OutputMemory&) = delete;
  // Uninitialised, 64-byte aligned. May be called, and what it gave be let go, from any thread.
  Result<std::shared_ptr<std::byte>> take(int64_t bytes);
  void keep_up_to(int64_t bytes);   // or more, if it was told so before
  int64_t idle_bytes() const;
  void trim();

 private:
  void give_back(std::byte* p, size_t size);
  mutable std::mutex mutex_;
  std::multimap<size_t, std::byte*> free_;
  int64_t idle_ = 0, most_ = 0;
};

}  // namespace ge::runtime
