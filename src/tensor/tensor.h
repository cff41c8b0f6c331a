// Tensor: owning, dense, row-major; constants of a graph, and inputs and outputs of a run.
// Elements of types under 8 bits take one byte each (value in the low bits; signed ones extended).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/view.h"

namespace ge {

class Tensor {
 public:
  Tensor() = default;
  // Uninitialised memory, 64-byte aligned (strings: empty ones).
  Tensor(DType dtype, std::vector<int64_t> dims);
  // Shares memory that `keep` holds alive; the tensor must not be written.
  static Tensor borrow(DType dtype, std::vector<int64_t> dims, const std::byte* data,
                       std::shared_ptr<const void> keep);
  template <class T>
  static Tensor of(DType dtype, std::vector<int64_t> dims, std::span<const T> values);
  static Tensor scalar_i64(int64_t v);
  static Tensor vector_i64(std::span<const int64_t> v);
  static Tensor scalar_f32(float v);

  bool empty() const { return dtype_ == DType::none; }
  DType dtype() const { return dtype_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int rank() const { return static_cast<int>(dims_.size()); }
  int64_t count() const;
  size_t bytes() const { return static_cast<size_t>(count() * size_of(dtype_)); }
  const std::byte* data() const { return data_; }
  std::byte* mutable_data() { return const_cast<std::byte*>(data_); }
  std::span<const std::byte> raw() const { return {data_, bytes()}; }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(mutable_data());
  }
  const std::vector<std::string>& strings() const { return *strings_; }
  std::vector<std::string>& strings() { return *strings_; }
  // Lives as long as this tensor.
  View view() const { return {const_cast<std::byte*>(data_), dtype_, rank(), dims_.data(), strides_.data()}; }
  Tensor reshaped(std::vector<int64_t> dims) const;  // same count; shares memory
  // Complex numbers as two reals in a last axis more; all else as it is. Shares memory.
  Tensor reals() const;
  // Element i of the flat order as a number; text and complex numbers are none and give 0.
  double at(int64_t i) const;
  int64_t at_int(int64_t i) const;
  bool same_bytes(const Tensor& other) const;

 private:
  DType dtype_ = DType::none;
  std::vector<int64_t> dims_, strides_;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> keep_;
  std::shared_ptr<std::vector<std::string>> strings_;
};

std::vector<int64_t> dense_strides(std::span<const int64_t> dims);

template <class T>
Tensor Tensor::of(DType dtype, std::vector<int64_t> dims, std::span<const T> values) {
  Tensor t(dtype, std::move(dims));
  for (size_t i = 0; i < values.size(); ++i) t.as<T>()[i] = values[i];
  return t;
}

}  // namespace ge
