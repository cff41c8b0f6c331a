#include "runtime/texts.h"

#include <cstring>

#include "base/text.h"

namespace ge::runtime {

TextNumbers numbers_of(const std::vector<std::string>& texts) {
  TextNumbers n;
  for (size_t i = 0; i < texts.size(); ++i) n.emplace(texts[i], static_cast<uint32_t>(i + 1));
  return n;
}

uint32_t Texts::number(std::string_view text) {
  if (text.empty()) return 0;
  if (auto it = numbers_.find(text); it != numbers_.end()) return it->second;
  if (auto it = own_numbers_.find(text); it != own_numbers_.end()) return it->second;
  own_.emplace_back(text);
  auto n = static_cast<uint32_t>(model_.size() + own_.size());
  own_numbers_.emplace(own_.back(), n);
  return n;
}

Result<std::string_view> Texts::text(uint32_t number) const {
  if (number == 0) return std::string_view();
  size_t i = number - 1;
  if (i < model_.size()) return std::string_view(model_[i]);
  i -= model_.size();
  if (i < own_.size()) return std::string_view(own_[i]);
  return error(code::kRunFailed, format("There is no text {}.", number), "the .om file is damaged, or memory was read that nobody wrote");
}

Result<Value> Texts::tensor(std::span<const int64_t> dims, std::span<const std::string_view> strings) {
  auto numbers = std::make_shared<std::vector<uint32_t>>();
  numbers->reserve(strings.size() + 1);
  for (auto s : strings) numbers->push_back(number(s));
  auto v = Value::tensor(DType::string, dims, numbers->data(), numbers);
  if (v.count() != static_cast<int64_t>(strings.size())) return error(code::kInputMismatch, format("{} strings for shape {}.", strings.size(), shape_text(dims)));
  return v;
}

Result<std::vector<std::string_view>> Texts::strings(const Value& v) const {
  if (!v.is_tensor() || v.dtype != DType::string) return error(code::kInputMismatch, "A value is no tensor of strings.");
  std::vector<std::string_view> out(static_cast<size_t>(v.count()));
  for (size_t i = 0; i < out.size(); ++i) {
    uint32_t n = 0;
    std::memcpy(&n, v.data + i * sizeof n, sizeof n);
    GE_TRY(out[i], text(n));
  }
  return out;
}

}  // namespace ge::runtime
