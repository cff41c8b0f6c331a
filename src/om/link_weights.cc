#include "om/link_weights.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "base/spill.h"
#include "base/text.h"
#include "tensor/dtype.h"

namespace ge::om {
namespace {

// Comparing starts tells most weights apart without reading them whole.
uint64_t start_of(std::span<const std::byte> bytes) { return hash64(bytes.first(std::min<size_t>(bytes.size(), 4096)), bytes.size()); }

// Weights that are seen as strings somewhere, by buffer.
std::set<int32_t> string_buffers(const ProgramT& p) {
  std::set<int32_t> out;
  for (auto& t : p.tasks)
    for (auto& a : t->alternatives)
      for (auto* views : {&a->ins, &a->outs})
        for (auto& v : *views)
          if (v->buffer >= 0 && static_cast<DType>(v->dtype) == DType::string) out.insert(v->buffer);
  return out;
}

Error damaged(const std::string& part, const char* what) {
  return error(code::kParse, format("Part '{}' cannot be linked: {}.", part, what), "its .om file is damaged", "compile the model again");
}

}  // namespace

Status LinkWeights::plan(const std::vector<LinkPart>& parts, std::vector<std::string>& texts) {
  std::map<std::string, uint32_t> numbers;
  at_.resize(parts.size());
  for (size_t i = 0; i < parts.size(); ++i)
    GE_RETURN_IF_ERROR(collect(i, parts[i].package, texts, numbers).context(format("part {}", parts[i].name)));
  return ok();
}

Status LinkWeights::collect(size_t part, const Package& p, std::vector<std::string>& texts, std::map<std::string, uint32_t>& numbers) {
  std::vector<uint32_t> number_of(p.model.texts.size() + 1);   // 0 is ""
  for (size_t i = 0; i < p.model.texts.size(); ++i) {
    auto [it, fresh] = numbers.emplace(p.model.texts[i], static_cast<uint32_t>(texts.size() + 1));
    if (fresh) texts.push_back(p.model.texts[i]);
    number_of[i + 1] = it->second;
  }
  for (auto& program : p.model.programs) {
    auto strings = string_buffers(*program);
    for (size_t i = 0; i < program->buffers.size(); ++i) {
      auto& b = *program->buffers[i];
      if (b.kind != BufferKind::weight) continue;
      if (b.weight_offset > p.weights.size() || b.weight_bytes > p.weights.size() - b.weight_offset) return damaged(p.model.name, "a weight lies outside of the weights");
      auto bytes = p.weights.subspan(b.weight_offset, b.weight_bytes);
      Range range(b.weight_offset, b.weight_bytes);
      if (at_[part].count(range)) continue;
      if (!strings.count(static_cast<int32_t>(i))) {
        store(part, range, bytes);
        continue;
      }
      auto& own = renumbered_.emplace_back(bytes.begin(), bytes.end());
      for (size_t k = 0; k + 4 <= own.size(); k += 4) {
        uint32_t n;
        std::memcpy(&n, own.data() + k, 4);
        if (n >= number_of.size()) return damaged(p.model.name, "a string has no text");
        std::memcpy(own.data() + k, &number_of[n], 4);
      }
      store(part, range, own);
    }
  }
  return ok();
}

void LinkWeights::store(size_t part, const Range& range, std::span<const std::byte> from) {
  uint64_t start = start_of(from);
  auto [low, high] = by_start_.equal_range(start);
  for (auto it = low; it != high; ++it) {
    auto& other = stored_[it->second];
    if (other.from.size() != from.size() || (!from.empty() && std::memcmp(other.from.data(), from.data(), from.size()) != 0)) continue;
    if (other.part != part) shared_ += static_cast<int64_t>(from.size());
    at_[part].emplace(range, other.to);
    return;
  }
  end_ = (end_ + kWeightAlign - 1) / kWeightAlign * kWeightAlign;
  by_start_.emplace(start, stored_.size());
  stored_.push_back({part, from, end_});
  at_[part].emplace(range, end_);
  end_ += from.size();
}

Status LinkWeights::copy(std::vector<LinkPart>& parts, Package& to) {
  auto held = large_block(std::max<size_t>(end_, 1));
  if (!held) return error(code::kOutOfMemory, format("{} of weights do not fit into memory.", bytes_text(static_cast<double>(end_))));
  std::byte* memory = held.get();
  size_t part = 0;
  auto let_go = [&](size_t before) {
    for (; part < before; ++part) parts[part].package.weights = {}, parts[part].package.keep.reset();
  };
  for (auto& s : stored_) {
    let_go(s.part);
    if (!s.from.empty()) std::memcpy(memory + s.to, s.from.data(), s.from.size());
    let_go_of_pages({memory + s.to, s.from.size()});
    let_go_of_pages(s.from);
  }
  let_go(parts.size());
  to.weights = {memory, end_};
  to.keep = held;
  return ok();
}

}  // namespace ge::om
