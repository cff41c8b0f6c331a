#include "driver/tensor_io.h"

#include <zlib.h>

#include <cstring>

#include "base/file.h"
#include "base/text.h"
#include "import/onnx_proto.h"
#include "import/tensors.h"
#include "tensor/limits.h"

namespace ge {
namespace {

using Bytes = std::span<const std::byte>;

Error damaged(const std::string& path, std::string why) {
  return error(code::kParse, format("File {} cannot be read: {}.", path, why));
}

struct NpyType {
  char kind;
  int size;
  DType dtype;
};
constexpr NpyType kTypes[] = {{'f', 4, DType::f32}, {'f', 8, DType::f64}, {'f', 2, DType::f16}, {'i', 1, DType::i8},
                              {'i', 2, DType::i16}, {'i', 4, DType::i32}, {'i', 8, DType::i64}, {'u', 1, DType::u8},
                              {'u', 2, DType::u16}, {'u', 4, DType::u32}, {'u', 8, DType::u64}, {'b', 1, DType::boolean},
                              {'c', 8, DType::c64}, {'c', 16, DType::c128}};

// The value after 'key': in the header's Python literal.
std::string_view header_field(std::string_view header, std::string_view key) {
  size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  at = header.find(':', at);
  return at == std::string_view::npos ? std::string_view() : trim(header.substr(at + 1));
}

// Fortran order to row-major.
Tensor reorder(const Tensor& t) {
  Tensor out(t.dtype(), t.dims());
  int64_t element = size_of(t.dtype()), n = t.count();
  std::vector<int64_t> index(t.dims().size());
  for (int64_t i = 0; i < n; ++i) {
    int64_t from = 0, step = 1;
    for (size_t k = 0; k < index.size(); ++k) from += index[k] * step, step *= t.dims()[k];
    std::memcpy(out.mutable_data() + i * element, t.data() + from * element, static_cast<size_t>(element));
    for (size_t k = index.size(); k-- > 0;) {
      if (++index[k] < t.dims()[k]) break;
      index[k] = 0;
    }
  }
  return out;
}

Result<Tensor> read_npy(Bytes b, const std::string& path) {
  if (b.size() < 12 || std::memcmp(b.data(), "\x93NUMPY", 6) != 0) return damaged(path, "it is no .npy file");
  bool long_header = static_cast<uint8_t>(b[6]) >= 2;
  size_t start = long_header ? 12 : 10, length = static_cast<uint8_t>(b[8]) | static_cast<size_t>(static_cast<uint8_t>(b[9])) << 8;
  if (long_header) length |= static_cast<size_t>(static_cast<uint8_t>(b[10])) << 16 | static_cast<size_t>(static_cast<uint8_t>(b[11])) << 24;
  if (length > b.size() - start) return damaged(path, "its header is cut");
  std::string_view header(reinterpret_cast<const char*>(b.data()) + start, length);
  auto descr = header_field(header, "descr"), shape = header_field(header, "shape");
  if (descr.size() < 4 || shape.empty() || shape[0] != '(') return damaged(path, "its header is not NumPy's");
  if (descr[1] == '>') return damaged(path, "it is big-endian");
  DType type = DType::none;
  for (auto& t : kTypes)
    if (descr[2] == t.kind && std::atoi(std::string(descr.substr(3, 2)).c_str()) == t.size) type = t.dtype;
  if (type == DType::none) return damaged(path, format("element type {} is not known", descr.substr(0, 6)));
  std::vector<int64_t> dims;
  for (auto& part : split(shape.substr(1, shape.find(')') - 1), ',')) {
    if (trim(part).empty()) continue;
    dims.push_back(std::atoll(part.c_str()));
  }
  const int64_t bytes = dense_bytes(size_of(type), dims);
  if (bytes < 0) return damaged(path, "its shape is too large");
  if (static_cast<uint64_t>(bytes) > b.size() - start - length) return damaged(path, "its data are cut");
  Tensor t(type, dims);
  std::memcpy(t.mutable_data(), b.data() + start + length, static_cast<size_t>(bytes));
  return header_field(header, "fortran_order").starts_with("True") ? reorder(t) : t;
}

template <class T>
T field(Bytes b, size_t at) {
  T v;
  std::memcpy(&v, b.data() + at, sizeof v);
  return v;
}

Result<std::vector<std::byte>> inflate_entry(Bytes packed, size_t size, const std::string& path) {
  std::vector<std::byte> out(size);
  z_stream z{};
  if (inflateInit2(&z, -15) != Z_OK) return damaged(path, "it cannot be unpacked");
  z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(size);
  int end = inflate(&z, Z_FINISH);
  bool whole = end == Z_STREAM_END && z.total_out == size;
  inflateEnd(&z);
  if (!whole) return damaged(path, "an entry is damaged");
  return out;
}

// The central directory of a ZIP archive (APPNOTE.TXT 4.3.12); no ZIP64 beyond what NumPy writes in
// local headers, which the central directory repeats.
Result<std::vector<NamedTensor>> read_npz(Bytes b, const std::string& path) {
  size_t end = b.size();
  if (end < 22) return damaged(path, "it is no .npz file");
  for (end -= 22;; --end) {
    if (field<uint32_t>(b, end) == 0x06054b50) break;
    if (end == 0) return damaged(path, "it is no .npz file");
  }
  size_t entries = field<uint16_t>(b, end + 10), at = field<uint32_t>(b, end + 16);
  std::vector<NamedTensor> out;
  for (size_t i = 0; i < entries; ++i) {
    if (at > b.size() || b.size() - at < 46 || field<uint32_t>(b, at) != 0x02014b50) return damaged(path, "its directory is damaged");
    auto method = field<uint16_t>(b, at + 10);
    size_t packed = field<uint32_t>(b, at + 20), size = field<uint32_t>(b, at + 24), name_length = field<uint16_t>(b, at + 28);
    size_t local = field<uint32_t>(b, at + 42);
    if (b.size() - at - 46 < name_length || local > b.size() || b.size() - local < 30) return damaged(path, "its directory is damaged");
    std::string entry(reinterpret_cast<const char*>(b.data()) + at + 46, name_length);
    size_t data = local + 30 + field<uint16_t>(b, local + 26) + field<uint16_t>(b, local + 28);
    if (data > b.size() || packed > b.size() - data) return damaged(path, "an entry is cut");
    Bytes raw = b.subspan(data, packed);
    std::vector<std::byte> unpacked;
    if (method == 8) {
      if (size / 1100 > packed) return damaged(path, "an entry is damaged");
      GE_TRY(unpacked, inflate_entry(raw, size, path));
      raw = unpacked;
    } else if (method != 0) {
      return damaged(path, "an entry is packed in an unknown way");
    }
    GE_TRY(Tensor t, read_npy(raw, path + ":" + entry));
    if (entry.ends_with(".npy")) entry.resize(entry.size() - 4);
    out.push_back({std::move(entry), std::move(t)});
    at += 46 + name_length + field<uint16_t>(b, at + 30) + field<uint16_t>(b, at + 32);
  }
  return out;
}

}  // namespace

Result<std::vector<NamedTensor>> read_tensors(const std::string& path) {
  GE_TRY(auto file, MappedFile::open(path));
  Bytes b = file->bytes();
  if (path.ends_with(".npz")) return read_npz(b, path);
  std::vector<NamedTensor> out;
  if (path.ends_with(".pb")) {
    GE_TRY(auto proto, onnx::parse_tensor(b));
    onnx::TensorReader reader(file, onnx::ExternalData());
    GE_TRY(Tensor tensor, reader.read(proto));
    out.push_back({std::string(proto.name), std::move(tensor)});
    return out;
  }
  GE_TRY(Tensor t, read_npy(b, path));
  out.push_back({"", std::move(t)});
  return out;
}

Status write_npy(const std::string& path, const Tensor& t) {
  std::string descr;
  for (auto& k : kTypes)
    if (k.dtype == t.dtype()) descr = format("{}{}{}", k.size == 1 ? '|' : '<', k.kind, k.size);
  if (descr.empty()) descr = format("|V{}", size_of(t.dtype()));
  std::string shape = "(";
  for (auto d : t.dims()) shape += format("{},", d);
  if (t.rank() > 1) shape.pop_back();
  std::string header = format("{{'descr': '{}', 'fortran_order': False, 'shape': {}), }}", descr, shape);
  while ((10 + header.size() + 1) % 64) header += ' ';
  header += '\n';
  std::string head = "\x93NUMPY";
  head += '\x01';
  head += '\0';
  head += static_cast<char>(header.size() & 255);
  head += static_cast<char>(header.size() >> 8);
  head += header;
  Bytes parts[2] = {std::as_bytes(std::span(head.data(), head.size())), t.raw()};
  return write_file(path, parts);
}

}  // namespace ge
