#include "tensor/tensor.h"

#include <cstring>
#include <new>

#include "base/spill.h"
#include "tensor/float8.h"
#include "tensor/half.h"
#include "tensor/pages.h"

namespace ge {
namespace {

constexpr size_t kOwnBlock = size_t(1) << 20;

// Large blocks are the system's own, so that freeing one gives it back: what stands between two others in a heap stays.
std::shared_ptr<const void> memory(size_t bytes) {
  if (bytes >= (spilling() ? kLargeTensor : kOwnBlock))
    if (auto block = large_block(bytes)) return block;
  return {::operator new(bytes ? bytes : 1, std::align_val_t(64)), [](const void* q) { ::operator delete(const_cast<void*>(q), std::align_val_t(64)); }};
}

}  // namespace

std::vector<int64_t> dense_strides(std::span<const int64_t> dims) {
  std::vector<int64_t> s(dims.size());
  uint64_t step = 1;   // modulo 2^64: beyond that only where there are no elements
  for (size_t i = dims.size(); i-- > 0;) {
    s[i] = static_cast<int64_t>(step);
    step *= static_cast<uint64_t>(dims[i] > 0 ? dims[i] : 1);
  }
  return s;
}

Tensor::Tensor(DType dtype, std::vector<int64_t> dims) : dtype_(dtype), dims_(std::move(dims)) {
  strides_ = dense_strides(dims_);
  if (dtype == DType::string) {
    strings_ = std::make_shared<std::vector<std::string>>(static_cast<size_t>(count()));
    return;
  }
  keep_ = memory(bytes());
  data_ = static_cast<const std::byte*>(keep_.get());
}

Tensor Tensor::borrow(DType dtype, std::vector<int64_t> dims, const std::byte* data,
                      std::shared_ptr<const void> keep) {
  Tensor t;
  t.dtype_ = dtype;
  t.dims_ = std::move(dims);
  t.strides_ = dense_strides(t.dims_);
  t.data_ = data;
  t.keep_ = std::move(keep);
  return t;
}

Tensor Tensor::scalar_i64(int64_t v) { return of<int64_t>(DType::i64, {}, std::span(&v, 1)); }
Tensor Tensor::vector_i64(std::span<const int64_t> v) {
  return of<int64_t>(DType::i64, {static_cast<int64_t>(v.size())}, v);
}
Tensor Tensor::scalar_f32(float v) { return of<float>(DType::f32, {}, std::span<const float>(&v, 1)); }

int64_t Tensor::count() const {
  uint64_t n = 1;   // modulo 2^64, as View's
  for (int64_t d : dims_) n *= static_cast<uint64_t>(d);
  return static_cast<int64_t>(n);
}

Tensor Tensor::reshaped(std::vector<int64_t> dims) const {
  Tensor t = *this;
  t.dims_ = std::move(dims);
  t.strides_ = dense_strides(t.dims_);
  return t;
}

Tensor Tensor::reals() const {
  if (dtype_ != DType::c64 && dtype_ != DType::c128) return *this;
  auto dims = dims_;
  dims.push_back(2);
  return borrow(dtype_ == DType::c64 ? DType::f32 : DType::f64, std::move(dims), data_, keep_);
}

double Tensor::at(int64_t i) const {
  switch (dtype_) {
    case DType::f32: return as<float>()[i];
    case DType::f64: return as<double>()[i];
    case DType::f16: return f16_to_f32(as<uint16_t>()[i]);
    case DType::bf16: return bf16_to_f32(as<uint16_t>()[i]);
    case DType::u64: return static_cast<double>(as<uint64_t>()[i]);
    default: return is_small_float(dtype_) ? small_float_value(dtype_, as<uint8_t>()[i]) : static_cast<double>(at_int(i));
  }
}

int64_t Tensor::at_int(int64_t i) const {
  switch (dtype_) {
    case DType::i8: case DType::i4: case DType::i2: return as<int8_t>()[i];
    case DType::u8: case DType::u4: case DType::u2: return as<uint8_t>()[i];
    case DType::boolean: return as<uint8_t>()[i] != 0;
    case DType::i16: return as<int16_t>()[i];
    case DType::u16: return as<uint16_t>()[i];
    case DType::i32: return as<int32_t>()[i];
    case DType::u32: return as<uint32_t>()[i];
    case DType::i64: case DType::u64: return as<int64_t>()[i];
    default: return is_float(dtype_) ? static_cast<int64_t>(at(i)) : 0;
  }
}

bool Tensor::same_bytes(const Tensor& o) const {
  if (dtype_ != o.dtype_ || dims_ != o.dims_) return false;
  if (dtype_ == DType::string) return *strings_ == *o.strings_;
  return data_ == o.data_ || std::memcmp(data_, o.data_, bytes()) == 0;
}

}  // namespace ge
