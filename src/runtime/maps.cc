// Tasks on maps: map.zip, map.cast, map.vectorize. A map is a Value with two items: its keys and its values.
#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>

#include "base/text.h"
#include "kernels/reference/access.h"
#include "kernels/reference/text.h"
#include "runtime/frame.h"

namespace ge::runtime {
namespace {

namespace ref = kernels::reference;
using Kind = Value::Kind;

// in: [n, c] or [c], the c keys
Status run_zip(TaskRun& t) {
  GE_TRY(Value values, t.in(0));
  GE_TRY(Value keys, t.in(1));
  if (!values.is_tensor() || !keys.is_tensor() || keys.dims.size() != 1) return t.fail("it takes two tensors");
  if (values.dims.size() == 1) values.dims.insert(values.dims.begin(), 1);
  if (values.dims.size() != 2 || values.dims[1] != keys.dims[0])
    return t.fail(format("values of shape {} for {} class labels", shape_text(values.dims), keys.dims[0]));
  Value made;
  made.kind = keys.dtype == DType::string ? Kind::maps_from_text : Kind::maps_from_i64;
  made.dtype = values.dtype;
  made.items = {std::move(keys), std::move(values)};
  return t.give(0, std::move(made));
}

Result<Value> map_in(TaskRun& t, DType key) {
  GE_TRY(Value v, t.in(0));
  if (!v.is_map() || v.items.size() != 2 || v.items[0].dtype != key || v.items[0].dims != v.items[1].dims) return t.fail("input 0 is no such map");
  return v;
}

// A value of a map as an element of the output.
struct Casting {
  const Value& values;
  std::vector<std::string_view> texts;   // of values that are strings

  Result<std::string> text(size_t i) const {
    if (!texts.empty()) return std::string(texts[i]);
    return ref::cast_text(reinterpret_cast<const float*>(values.data)[i]);
  }
  std::optional<double> number(size_t i) const {
    return texts.empty() ? std::optional<double>(reinterpret_cast<const float*>(values.data)[i]) : ref::text_number(texts[i]);
  }
};

// ints [places of a sparse map, or -1]
Status run_cast(TaskRun& t) {
  GE_TRY(Value v, map_in(t, DType::i64));
  auto* keys = reinterpret_cast<const int64_t*>(v.items[0].data);
  std::vector<size_t> order(static_cast<size_t>(v.items[0].count()));
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  int64_t places = t.ints()[0];
  bool sparse = places >= 0;
  if (!sparse) places = static_cast<int64_t>(order.size());
  Casting casting{v.items[1], {}};
  if (v.items[1].dtype == DType::string) {
    if (!t.texts()) return t.fail("this run has no strings");
    GE_TRY(casting.texts, t.texts()->strings(v.items[1]));
  }
  // Of each place the entry that stands there; none: nothing does.
  std::vector<int64_t> entry(static_cast<size_t>(places), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    int64_t place = sparse ? keys[order[i]] : static_cast<int64_t>(i);
    if (place >= 0 && place < places) entry[static_cast<size_t>(place)] = static_cast<int64_t>(order[i]);
  }
  std::vector<int64_t> dims{1, places};
  DType to = t.out_type(0);
  if (to == DType::string) {
    if (!t.texts()) return t.fail("this run has no strings");
    std::vector<std::string> made;
    for (int64_t e : entry) {
      if (e < 0) {
        made.emplace_back("0.f");   // as ONNX Runtime fills
        continue;
      }
      GE_TRY(std::string s, casting.text(static_cast<size_t>(e)));
      made.push_back(std::move(s));
    }
    GE_TRY(Value out, t.texts()->tensor(dims, std::vector<std::string_view>(made.begin(), made.end())));
    return t.give(0, std::move(out));
  }
  GE_TRY(std::byte* memory, t.out(0, to, dims));
  View out{memory, to, 0, nullptr, nullptr};
  for (size_t i = 0; i < entry.size(); ++i) {
    auto number = entry[i] < 0 ? std::optional<double>(0) : casting.number(static_cast<size_t>(entry[i]));
    if (!number) return t.fail(format("\"{}\" is no number", casting.texts[static_cast<size_t>(entry[i])]));
    ref::store(out, static_cast<int64_t>(i), *number);
  }
  return ok();
}

// in: map, vocabulary of the keys' type
Status run_vectorize(TaskRun& t) {
  GE_TRY(Value words, t.in(1));
  if (!words.is_tensor()) return t.fail("input 1 is no tensor");
  GE_TRY(Value v, map_in(t, words.dtype));
  // Strings are compared by the numbers that stand for them.
  auto key = [](const Value& x, int64_t i) {
    return x.dtype == DType::i64 ? reinterpret_cast<const int64_t*>(x.data)[i] : int64_t{reinterpret_cast<const uint32_t*>(x.data)[i]};
  };
  if (words.dtype != DType::i64 && words.dtype != DType::string) return t.fail("keys are neither integers nor strings");
  std::map<int64_t, int64_t> at;
  for (int64_t i = 0; i < v.items[0].count(); ++i) at[key(v.items[0], i)] = i;
  std::vector<int64_t> dims{1, words.count()};
  if (t.out_type(0) != v.items[1].dtype) return t.fail("values have another type");
  GE_TRY(std::byte* memory, t.out(0, v.items[1].dtype, dims));
  auto size = static_cast<size_t>(size_of(v.items[1].dtype));
  for (int64_t i = 0; i < words.count(); ++i) {
    auto it = at.find(key(words, i));
    std::byte* to = memory + static_cast<size_t>(i) * size;
    // Number 0 stands for "".
    if (it == at.end()) std::memset(to, 0, size);
    else std::memcpy(to, v.items[1].data + static_cast<size_t>(it->second) * size, size);
  }
  return ok();
}

const RegisterHost registered[] = {{"map.zip", run_zip}, {"map.cast", run_cast}, {"map.vectorize", run_vectorize}};

}  // namespace
}  // namespace ge::runtime
