// View: non-owning, strided look at a tensor; all that a kernel sees of its operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/dtype.h"

namespace ge {

inline constexpr int kMaxRank = 12;

// How far a stride goes, whichever way: of INT64_MIN too.
inline uint64_t magnitude(int64_t stride) { return stride < 0 ? 0 - static_cast<uint64_t>(stride) : static_cast<uint64_t>(stride); }

struct View {
  std::byte* data = nullptr;  // the element at index 0 of every axis; null while only sizes are known
  DType dtype = DType::none;
  int32_t rank = 0;
  const int64_t* dims = nullptr;     // [rank], each >= 0
  const int64_t* strides = nullptr;  // [rank], in elements, may be 0 or negative

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  std::span<const int64_t> shape() const { return {dims, static_cast<size_t>(rank)}; }
  int64_t dim(int axis) const { return dims[axis < 0 ? axis + rank : axis]; }
  int64_t stride(int axis) const { return strides[axis < 0 ? axis + rank : axis]; }
  // Modulo 2^64, so that there are 0 elements however large sizes beside a 0 are.
  int64_t count() const {
    uint64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= static_cast<uint64_t>(dims[i]);
    return static_cast<int64_t>(n);
  }
  // Row-major without gaps (axes of size 1 may have any stride; a view without elements is dense).
  bool dense() const {
    uint64_t expect = 1;
    for (int i = rank - 1; i >= 0; --i) {
      if (dims[i] == 0) return true;
      if (dims[i] != 1 && static_cast<uint64_t>(strides[i]) != expect) return false;
      expect *= static_cast<uint64_t>(dims[i]);
    }
    return true;
  }
};

}  // namespace ge
