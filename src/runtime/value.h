// Value: what an input, an output or a slot of a running program holds when it is more than plain memory of
// a known size: a tensor with its sizes, a sequence of tensors, an optional. Cheap to copy: elements are
// shared and never written once they are in a Value.
//
// Blocks: the memory of such values, and of segments after the first. Freed blocks are kept for the next
// taker, at most as many bytes as were ever in use at one time; those that nobody took for long go first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace ge::runtime {

struct Value {
  enum class Kind : uint8_t { tensor = 0, sequence = 1, optional = 2, optional_sequence = 3, map_from_i64 = 4, map_from_text = 5, maps_from_i64 = 6, maps_from_text = 7 };
  Kind kind = Kind::tensor;
  DType dtype = DType::none;         // of the elements
  std::vector<int64_t> dims;         // of a tensor
  const std::byte* data = nullptr;   // of a tensor: dense
  std::shared_ptr<const void> keep;  // holds data; null: somebody else's memory, alive for the call only
  // A sequence's tensors; of an optional none or one (the tensor or the sequence); of a map its keys and its values,
  // of a sequence of maps the keys and a row of values for each.
  std::vector<Value> items;

  int64_t count() const;
  int64_t bytes() const { return count() * size_of(dtype); }
  bool is_tensor() const { return kind == Kind::tensor; }
  bool is_map() const { return kind == Kind::map_from_i64 || kind == Kind::map_from_text; }
  bool is_map_sequence() const { return kind == Kind::maps_from_i64 || kind == Kind::maps_from_text; }
  static Value tensor(DType t, std::span<const int64_t> dims, const void* data, std::shared_ptr<const void> keep = {});
};

std::string shape_text(std::span<const int64_t> dims);   // "[2,3]"
// Bytes of a dense tensor; an error that calls it `name` when a size is negative or the product is absurd.
Result<int64_t> checked_bytes(DType t, std::span<const int64_t> dims, const std::string& name);

class Blocks {
 public:
  Blocks() = default;
  ~Blocks() { trim(); }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;
  // Uninitialised memory, 64-byte aligned. Goes back to this pool, which must outlive it.
  Result<std::shared_ptr<std::byte>> take(int64_t bytes);
  int64_t bytes() const { return used_ + idle_; }
  void trim();                       // frees what is not in use
  // v with memory of its own.
  Result<Value> own(const Value& v);

 private:
  struct Idle {
    std::byte* data;
    int64_t since;
  };
  void give_back(std::byte* p, size_t size);
  void drop(std::multimap<size_t, Idle>::iterator block);
  std::multimap<size_t, Idle> free_;
  int64_t used_ = 0, idle_ = 0, most_ = 0, given_back_ = 0;
};

}  // namespace ge::runtime
