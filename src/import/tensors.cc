#include "import/tensors.h"

#include <cstring>
#include <protozero/varint.hpp>

#include "base/text.h"

namespace ge::onnx {
namespace {

// A sparse constant is expanded: a few bytes of a file must not claim the machine's memory.
constexpr int64_t kMaxDenseBytes = int64_t{1} << 31;

std::string title(const TensorProto& p) {
  return p.name.empty() ? "A tensor" : format("Tensor {}", quote(p.name));
}

std::string dims_text(const std::vector<int64_t>& dims) {
  std::string s = "[";
  for (size_t i = 0; i < dims.size(); ++i) s += format("{}{}", i ? "," : "", dims[i]);
  return s + "]";
}

// The number of elements; refused when it, or its bytes at 16 each, cannot be counted.
Result<int64_t> element_count(const std::string& who, const std::vector<int64_t>& dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank))
    return error(code::kTooLarge, format("{} has {} dimensions; at most {} are possible.", who,
                                         dims.size(), kMaxRank));
  int64_t n = 1;
  bool empty = false, overflow = false;
  for (int64_t d : dims) {
    if (d < 0)
      return error(code::kParse, format("{} has a negative dimension: {}.", who, dims_text(dims)));
    if (d == 0)
      empty = true;
    else if (__builtin_mul_overflow(n, d, &n))
      overflow = true;
  }
  // Strides of an empty tensor are counted too, so its other dimensions must be sane.
  if (overflow || n > INT64_MAX / 16)
    return error(code::kTooLarge,
                 format("{} has more elements than can be counted: {}.", who, dims_text(dims)));
  return empty ? 0 : n;
}

Error size_mismatch(const TensorProto& p, DType t, int64_t expected, size_t got, const char* unit) {
  return error(code::kParse,
               format("{} is {}{} and needs {} {}, its data have {}.", title(p), name(t),
                      dims_text(p.dims), expected, unit, got),
               "", "the file is damaged or was written by a faulty exporter");
}

int64_t packed_bytes(DType t, int64_t count) {
  int b = bits(t);
  return b >= 8 ? count * (b / 8) : (count + 8 / b - 1) / (8 / b);
}

// One byte an element, low bits first; signed types extended.
void unpack(DType t, const uint8_t* in, int64_t count, uint8_t* out) {
  int b = bits(t), per_byte = 8 / b, shift = 8 - b;
  bool extend = t == DType::i4 || t == DType::i2;
  for (int64_t i = 0; i < count; ++i) {
    auto high = static_cast<uint8_t>(in[i / per_byte] >> (i % per_byte * b) << shift);
    out[i] = extend ? static_cast<uint8_t>(static_cast<int8_t>(high) >> shift)
                    : static_cast<uint8_t>(high >> shift);
  }
}

bool in_int32(DType t) {
  switch (t) {
    case DType::f32:
    case DType::f64:
    case DType::c64:
    case DType::c128:
    case DType::i64:
    case DType::u32:
    case DType::u64:
    case DType::string:
    case DType::none:
      return false;
    default:
      return true;
  }
}

size_t varint_count(const Chunks& chunks) {
  size_t n = 0;
  for (Bytes c : chunks)
    for (std::byte b : c) n += (b & std::byte{0x80}) == std::byte{0};
  return n;
}

// Stores the low `size` bytes of each varint. False on bytes that are no varint.
bool store_varints(const Chunks& chunks, size_t size, std::byte* out) {
  try {
    for (Bytes c : chunks) {
      const char* p = reinterpret_cast<const char*>(c.data());
      const char* end = p + c.size();
      while (p != end) {
        uint64_t v = protozero::decode_varint(&p, end);
        std::memcpy(out, &v, size);
        out += size;
      }
    }
    return true;
  } catch (const protozero::exception&) {
    return false;
  }
}

Result<Tensor> from_varints(const TensorProto& p, DType t, int64_t count, const Chunks& chunks) {
  bool small = bits(t) < 8;
  int64_t entries = small ? packed_bytes(t, count) : count;
  size_t have = varint_count(chunks);
  if (have != static_cast<size_t>(entries)) return size_mismatch(p, t, entries, have, "numbers");
  auto broken =
      error(code::kParse, format("{} has data that are not valid protobuf numbers.", title(p)));
  Tensor out(t, p.dims);
  if (!small) {
    if (!store_varints(chunks, static_cast<size_t>(size_of(t)), out.mutable_data())) return broken;
    if (t == DType::boolean)
      for (int64_t i = 0; i < count; ++i) out.as<uint8_t>()[i] = out.as<uint8_t>()[i] != 0;
    return out;
  }
  std::vector<std::byte> packed(static_cast<size_t>(entries));
  if (!store_varints(chunks, 1, packed.data())) return broken;
  unpack(t, reinterpret_cast<const uint8_t*>(packed.data()), count, out.as<uint8_t>());
  return out;
}

Result<Tensor> from_fixed(const TensorProto& p, DType t, int64_t count, const Chunks& chunks) {
  size_t have = 0;
  for (Bytes c : chunks) have += c.size();
  int64_t expected = packed_bytes(t, count);
  if (have != static_cast<size_t>(expected)) return size_mismatch(p, t, expected, have, "bytes");
  Tensor out(t, p.dims);
  std::byte* to = out.mutable_data();
  for (Bytes c : chunks) {
    if (!c.empty()) std::memcpy(to, c.data(), c.size());
    to += c.size();
  }
  return out;
}

Result<Tensor> from_strings(const TensorProto& p, int64_t count) {
  if (p.has_raw || p.external)
    return error(code::kParse,
                 format("{} holds strings as raw data, which ONNX does not allow.", title(p)));
  if (p.string_data.size() != static_cast<size_t>(count))
    return size_mismatch(p, DType::string, count, p.string_data.size(), "strings");
  Tensor out(DType::string, p.dims);
  for (size_t i = 0; i < p.string_data.size(); ++i) out.strings()[i] = p.string_data[i];
  return out;
}

}  // namespace

Result<DType> element_type(int32_t data_type, std::string_view what) {
  if (data_type > 0 && data_type < kDTypeCount) return static_cast<DType>(data_type);
  if (data_type == 0) return error(code::kParse, format("{} has no element type.", what));
  if (data_type == 27 || data_type == 28)
    return error(code::kUnsupportedOp,
                 format("{} is of a 6-bit float type, which is not supported.", what));
  return error(code::kParse, format("{} has an unknown element type, number {}.", what, data_type));
}

Result<Tensor> TensorReader::from_raw(const TensorProto& p, DType t, Bytes raw,
                                      const std::shared_ptr<const MappedFile>& file) {
  auto align = static_cast<uintptr_t>(size_of(t) > 8 ? 8 : size_of(t));
  bool aligned = reinterpret_cast<uintptr_t>(raw.data()) % align == 0;
  // Truth values are copied to make them 0 or 1, whatever the file has.
  if (aligned && !raw.empty() && bits(t) >= 8 && t != DType::boolean)
    return Tensor::borrow(t, p.dims, raw.data(), file);
  Tensor out(t, p.dims);
  if (bits(t) < 8) {
    unpack(t, reinterpret_cast<const uint8_t*>(raw.data()), out.count(), out.as<uint8_t>());
  } else if (t == DType::boolean) {
    for (size_t i = 0; i < raw.size(); ++i) out.as<uint8_t>()[i] = raw[i] != std::byte{0};
  } else if (!raw.empty()) {
    std::memcpy(out.mutable_data(), raw.data(), raw.size());
  }
  let_go_of_pages(raw);   // the copy is what is read from now on
  return out;
}

Result<Tensor> TensorReader::read(const TensorProto& p) {
  GE_TRY(DType t, element_type(p.data_type, title(p)));
  GE_TRY(int64_t count, element_count(title(p), p.dims));
  if (p.has_segment)
    return error(code::kParse,
                 format("{} is stored in segments, which is not supported.", title(p)));
  if (t == DType::string) return from_strings(p, count);
  int64_t expected = packed_bytes(t, count);
  if (p.external) {
    if (p.has_raw && !p.raw_data.empty())
      return error(code::kParse,
                   format("{} has its data both in the model and outside it.", title(p)));
    GE_TRY(auto range, external_.read(p, static_cast<size_t>(expected)));
    return from_raw(p, t, range.bytes, range.file);
  }
  bool typed = !p.float_data.empty() || !p.double_data.empty() || !p.int32_data.empty() ||
               !p.int64_data.empty() || !p.uint64_data.empty();
  if (p.has_raw && !(p.raw_data.empty() && typed)) {
    if (p.raw_data.size() != static_cast<size_t>(expected))
      return size_mismatch(p, t, expected, p.raw_data.size(), "bytes");
    return from_raw(p, t, p.raw_data, model_);
  }
  switch (t) {
    case DType::f32:
    case DType::c64:
      return from_fixed(p, t, count, p.float_data);
    case DType::f64:
    case DType::c128:
      return from_fixed(p, t, count, p.double_data);
    case DType::i64:
      return from_varints(p, t, count, p.int64_data);
    case DType::u32:
    case DType::u64:
      return from_varints(p, t, count, p.uint64_data);
    default:
      break;
  }
  GE_CHECK(in_int32(t), "a type without a data field");
  return from_varints(p, t, count, p.int32_data);
}

Result<Tensor> TensorReader::read(const SparseTensorProto& p) {
  std::string who = format("Sparse tensor {}", quote(p.values.name));
  GE_TRY(Tensor values, read(p.values));
  GE_TRY(Tensor indices, read(p.indices));
  GE_TRY(int64_t count, element_count(who, p.dims));
  auto bad = [&](const char* why) {
    return error(code::kParse, format("{} is damaged: {}.", who, why));
  };
  if (values.rank() != 1) return bad("its values are not one-dimensional");
  if (values.dtype() == DType::string) return bad("strings cannot be sparse");
  if (indices.dtype() != DType::i64) return bad("its indices are not int64");
  auto rank = static_cast<int64_t>(p.dims.size());
  bool linear = indices.rank() == 1;
  if (indices.rank() < 1 || indices.rank() > 2 || indices.dims()[0] != values.dims()[0] ||
      (!linear && indices.dims()[1] != rank))
    return bad("the shape of its indices does not fit its values");
  int64_t size = size_of(values.dtype());
  if (count > kMaxDenseBytes / size)
    return error(code::kTooLarge,
                 format("{} would take {} when made dense.", who,
                        bytes_text(static_cast<double>(count) * static_cast<double>(size))));
  Tensor out(values.dtype(), p.dims);
  if (out.bytes()) std::memset(out.mutable_data(), 0, out.bytes());
  auto strides = dense_strides(p.dims);
  for (int64_t i = 0; i < values.count(); ++i) {
    int64_t at = linear ? indices.as<int64_t>()[i] : 0;
    for (int64_t k = 0; !linear && k < rank; ++k) {
      int64_t index = indices.as<int64_t>()[i * rank + k];
      if (index < 0 || index >= p.dims[static_cast<size_t>(k)])
        return bad("an index lies outside its shape");
      at += index * strides[static_cast<size_t>(k)];
    }
    if (at < 0 || at >= count) return bad("an index lies outside its shape");
    std::memcpy(out.mutable_data() + at * size, values.data() + i * size,
                static_cast<size_t>(size));
  }
  return out;
}

}  // namespace ge::onnx
