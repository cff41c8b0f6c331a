// A State as bytes: "GESTATE", a version, for each tensor its description and what it holds, and a checksum of all.
#include <algorithm>
#include <cstring>
#include <exception>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "runtime/state.h"
#include "runtime/state_grid.h"
#include "runtime/value.h"

namespace ge::runtime {
namespace {

constexpr char kMagic[8] = "GESTATE";
constexpr uint32_t kVersion = 1;

Error damaged(std::string what) { return error(code::kParse, format("The saved state cannot be read: {}.", what), "it was cut or changed, or is no saved state", "give what State.save() wrote"); }

class Writer {
 public:
  void raw(const void* p, size_t n) {
    auto* b = static_cast<const std::byte*>(p);
    out.insert(out.end(), b, b + n);
  }
  template <class T>
  void put(T v) { raw(&v, sizeof v); }
  void dims(const std::vector<int64_t>& d) {
    put(static_cast<uint32_t>(d.size()));
    raw(d.data(), d.size() * sizeof(int64_t));
  }
  std::vector<std::byte> out;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> b) : bytes_(b) {}
  template <class T>
  T get() {
    T v{};
    if (auto b = take(sizeof v); !b.empty()) std::memcpy(&v, b.data(), sizeof v);
    return v;
  }
  // Nothing, and good() false, where there is too little.
  std::span<const std::byte> take(uint64_t n) {
    if (n > bytes_.size()) good_ = false;
    if (!good_) return {};
    auto b = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return b;
  }
  std::vector<int64_t> dims() {
    auto n = get<uint32_t>();
    if (n > 64) good_ = false;
    std::vector<int64_t> d;
    for (uint32_t i = 0; i < n && good_; ++i) d.push_back(get<int64_t>());
    return d;
  }
  bool good() const { return good_; }
  bool done() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool good_ = true;
};

struct Saved {
  std::string name;
  DType dtype = DType::none;
  int axis = -1;
  std::vector<int64_t> capacity, dims;
  std::span<const std::byte> content;
};

Result<std::vector<Saved>> parse(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof kMagic + 16 || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) return damaged("it does not begin as one");
  uint64_t sum;
  std::memcpy(&sum, bytes.data() + bytes.size() - 8, 8);
  if (hash64(bytes.first(bytes.size() - 8)) != sum) return damaged("its checksum is wrong");
  Reader r(bytes.first(bytes.size() - 8).subspan(sizeof kMagic));
  if (auto version = r.get<uint32_t>(); version != kVersion) return damaged(format("it has version {}, this version reads {}", version, kVersion));
  auto count = r.get<uint32_t>();
  std::vector<Saved> out;
  for (uint32_t i = 0; i < count && r.good(); ++i) {
    Saved s;
    auto name = r.take(r.get<uint32_t>());
    s.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    s.dtype = static_cast<DType>(r.get<uint8_t>());
    s.axis = r.get<int32_t>();
    s.capacity = r.dims();
    s.dims = r.dims();
    s.content = r.take(r.get<uint64_t>());
    out.push_back(std::move(s));
  }
  if (!r.good() || !r.done()) return damaged("it is not whole");
  return out;
}

// Whether the saved tensor can be what e holds; its capacity may be another one.
Status fits(const State::Entry& e, const Saved& s) {
  auto refuse = [&](std::string what) { return error(code::kInputMismatch, format("The saved state does not fit: tensor '{}' {}.", e.name, what), "it was saved from another model"); };
  if (s.dtype != e.dtype) return refuse(format("is {}, the model's {}", static_cast<int>(s.dtype) < kDTypeCount ? name(s.dtype) : "of no type", name(e.dtype)));
  if (s.axis != e.axis || s.capacity.size() != e.capacity.size()) return refuse("grows along another axis");
  for (size_t k = 0; k < e.capacity.size(); ++k)
    if (static_cast<int>(k) != e.axis && s.capacity[k] != e.capacity[k]) return refuse(format("has sizes {}, the model's {}", shape_text(s.capacity), shape_text(e.capacity)));
  if (s.dims.empty()) return s.content.empty() ? ok() : Status(damaged("it holds what has no size"));
  if (s.dims.size() != e.capacity.size()) return damaged("it has another rank");
  for (size_t k = 0; k < e.capacity.size(); ++k) {
    bool grows = static_cast<int>(k) == e.axis, open = e.capacity[k] < 0;
    if (s.dims[k] < 0 || (!grows && !open && s.dims[k] != e.capacity[k])) return damaged("its sizes do not go together");
    if (grows && s.dims[k] > e.capacity[k]) return refuse(format("holds {} entries, the model's capacity is {}", s.dims[k], e.capacity[k]));
  }
  GE_TRY(int64_t bytes, checked_bytes(e.dtype, s.dims, e.name));
  return static_cast<uint64_t>(bytes) == s.content.size() ? ok() : Status(damaged("it holds another number of bytes"));
}

}  // namespace

Result<std::vector<std::byte>> State::to_bytes() const {
  Busy busy(busy_);
  if (!busy) return state_in_use();
  Writer w;
  try {
    w.raw(kMagic, sizeof kMagic);
    w.put(kVersion);
    w.put(static_cast<uint32_t>(entries_.size()));
    for (auto& e : entries_) {
      w.put(static_cast<uint32_t>(e.name.size()));
      w.raw(e.name.data(), e.name.size());
      w.put(static_cast<uint8_t>(e.dtype));
      w.put(static_cast<int32_t>(e.axis));
      w.dims(e.capacity);
      w.dims(e.dims);
      uint64_t bytes = 0;
      for_pieces(e, [&](int64_t, int64_t n) { bytes += static_cast<uint64_t>(n); });
      w.put(bytes);
      for_pieces(e, [&](int64_t at, int64_t n) { w.raw(e.memory.data() + at, static_cast<size_t>(n)); });
    }
  } catch (const std::exception&) {   // bad_alloc, or length_error beyond what a vector can hold
    return error(code::kOutOfMemory, "There is not enough memory for a copy of the state.");
  }
  w.put(hash64(w.out));
  return std::move(w.out);
}

Status State::from_bytes(std::span<const std::byte> bytes) {
  GE_TRY(auto saved, parse(bytes));
  Busy busy(busy_);
  if (!busy) return state_in_use();
  std::vector<const Saved*> of;
  for (auto& e : entries_) {
    auto it = std::find_if(saved.begin(), saved.end(), [&](auto& s) { return s.name == e.name; });
    if (it == saved.end()) return error(code::kInputMismatch, format("The saved state does not fit: it has no tensor '{}'.", e.name), "it was saved from another model");
    GE_RETURN_IF_ERROR(fits(e, *it));
    of.push_back(&*it);
  }
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    auto& e = entries_[i];
    e.memory.clear();
    e.dims.clear();
    auto& s = *of[i];
    if (s.dims.empty()) {
      GE_RETURN_IF_ERROR(hold_zeros(e));
      continue;
    }
    GE_RETURN_IF_ERROR(reserve(e, s.dims));
    GE_RETURN_IF_ERROR(e.memory.commit(rows_in(e, s.dims)));
    e.dims = s.dims;
    auto* from = s.content.data();
    for_pieces(e, [&](int64_t at, int64_t n) {
      std::memcpy(e.memory.data() + at, from, static_cast<size_t>(n));
      from += n;
    });
  }
  return ok();
}

Status State::save(const std::string& path) const {
  GE_TRY(auto bytes, to_bytes());
  std::span<const std::byte> parts[1] = {bytes};
  return write_file(path, parts);
}

Status State::load(const std::string& path) {
  GE_TRY(auto file, MappedFile::open(path));
  return from_bytes(file->bytes()).context("loading " + path);
}

}  // namespace ge::runtime
