#include "om/link_weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "base/mappings.h"
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
  constexpr size_t kLarge = size_t(4) << 20;   // below, pages that weights share cost more than copying
  size_t sum = 0;
  for (auto& p : parts) sum += p.package.weights.size();
  large_ = sum >= kLarge;
  // The largest part's first: where its file is ours the others' are put behind them.
  std::vector<size_t> order(parts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return parts[a].package.weights.size() > parts[b].package.weights.size(); });
  for (size_t i : order)
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
  std::map<Range, std::span<const std::byte>> found;   // in the order in which they lie
  for (auto& program : p.model.programs) {
    auto strings = string_buffers(*program);
    for (size_t i = 0; i < program->buffers.size(); ++i) {
      auto& b = *program->buffers[i];
      if (b.kind != BufferKind::weight) continue;
      if (b.weight_offset > p.weights.size() || b.weight_bytes > p.weights.size() - b.weight_offset) return damaged(p.model.name, "a weight lies outside of the weights");
      auto [it, fresh] = found.emplace(Range(b.weight_offset, b.weight_bytes), p.weights.subspan(b.weight_offset, b.weight_bytes));
      if (!fresh || !strings.count(static_cast<int32_t>(i))) continue;
      auto& own = renumbered_.emplace_back(it->second.begin(), it->second.end());
      for (size_t k = 0; k + 4 <= own.size(); k += 4) {
        uint32_t n;
        std::memcpy(&n, own.data() + k, 4);
        if (n >= number_of.size()) return damaged(p.model.name, "a string has no text");
        std::memcpy(own.data() + k, &number_of[n], 4);
      }
      it->second = own;
    }
  }
  for (auto& [range, from] : found) store(part, p, range, from);
  return ok();
}

void LinkWeights::store(size_t part, const Package& p, const Range& range, std::span<const std::byte> from) {
  uint64_t start = start_of(from);
  auto [low, high] = by_start_.equal_range(start);
  for (auto it = low; it != high && (!large_ || from.size() >= kPage); ++it) {
    auto& other = stored_[it->second];
    if (other.from.size() != from.size() || (!from.empty() && std::memcmp(other.from.data(), from.data(), from.size()) != 0)) continue;
    if (other.part != part) shared_ += static_cast<int64_t>(from.size());
    at_[part].emplace(range, other.to);
    return;
  }
  const uint64_t to = run_on(part, p, range, from);
  by_start_.emplace(start, stored_.size());
  stored_.push_back({part, from, to});
  at_[part].emplace(range, to);
  end_ = std::max<uint64_t>(end_, to + from.size());
}

// Where the weight lies that begins at range.first of its part: behind the one before, as in the part, or in a new run.
uint64_t LinkWeights::run_on(size_t part, const Package& p, const Range& range, std::span<const std::byte> from) {
  auto up = [](uint64_t n, uint64_t to) { return (n + to - 1) / to * to; };
  const bool own = from.data() != p.weights.data() + range.first;   // strings with other numbers
  if (!large_ || own) {
    runs_.push_back({part, from, up(end_, large_ ? kPage : kWeightAlign)});
    return runs_.back().to;
  }
  const uint64_t first = range.first / kPage * kPage;
  const uint64_t end = std::min<uint64_t>(up(range.first + range.second, kPage), p.weights.size());
  if (!runs_.empty() && runs_.back().part == part) {
    auto& run = runs_.back();
    const auto run_first = static_cast<uint64_t>(run.from.data() - p.weights.data());
    const bool same = run.from.data() >= p.weights.data() && run.from.data() <= p.weights.data() + p.weights.size();
    if (same && range.first >= run_first && first <= run_first + run.from.size()) {
      run.from = p.weights.subspan(run_first, std::max<uint64_t>(end, run_first + run.from.size()) - run_first);
      return run.to + (range.first - run_first);
    }
  }
  runs_.push_back({part, p.weights.subspan(first, end - first), up(end_, kPage)});
  return runs_.back().to + (range.first - first);
}

// Whether the first run is all that a part gives, where it lies in the part's own file: then the others can go behind it.
bool LinkWeights::leads(const std::vector<LinkPart>& parts) const {
  if (!large_ || runs_.empty() || runs_[0].to != 0) return false;
  auto& p = parts[runs_[0].part].package;
  return p.file && runs_[0].from.data() == p.weights.data() && (runs_.size() == 1 || runs_[1].part != runs_[0].part);
}

// False: the file has no room.
bool LinkWeights::extend(std::vector<LinkPart>& parts, Package& to) {
  auto& first = parts[runs_[0].part].package;
  auto& file = *first.file;
  bool written = file.resize(kPage + runs_[0].from.size());
  for (size_t i = 1; i < runs_.size() && written; ++i) {
    size_t at = kPage + runs_[i].to;
    by_blocks(runs_[i].from, [&](std::span<const std::byte> block) {
      written = written && file.put(at, block);
      at += block.size();
    });
  }
  written = written && file.resize(kPage + (end_ + kPage - 1) / kPage * kPage);
  void* p = written ? mmap(nullptr, end_, PROT_READ, MAP_SHARED, file.descriptor(), static_cast<off_t>(kPage)) : MAP_FAILED;
  if (p == MAP_FAILED) return false;
  auto block = mapped_block(p, end_);
  to.weights = {block.get(), end_};
  to.keep = std::move(block);
  to.file = first.file;
  return true;
}

// Mapped a second time, or copied.
bool LinkWeights::gather(std::vector<LinkPart>& parts, Package& to) {
  const size_t bytes = std::max<size_t>(end_, 1);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* start = static_cast<std::byte*>(memory);
  auto mapped = std::make_shared<std::vector<const std::byte*>>();
  to.weights = {start, end_};
  to.keep = {memory, [bytes, mapped](const void* p) {
               for (auto* run : *mapped) forget_mapping(run);
               munmap(const_cast<void*>(p), bytes);
             }};
  for (size_t i = 0; i < runs_.size(); ++i) {
    auto& run = runs_[i];
    if (large_ && map_again(start + run.to, run.from)) {
      remember_mapping(start + run.to, run.from.size());
      mapped->push_back(start + run.to);
    } else if (!run.from.empty()) {
      std::memcpy(start + run.to, run.from.data(), run.from.size());
      let_go_of_pages(run.from);
    }
    if (i + 1 < runs_.size() && runs_[i + 1].part == run.part) continue;
    parts[run.part].package.weights = {}, parts[run.part].package.keep.reset();
  }
  return true;
}

Status LinkWeights::join(std::vector<LinkPart>& parts, Package& to) {
  if ((leads(parts) && extend(parts, to)) || gather(parts, to)) return ok();
  return error(code::kOutOfMemory, format("{} of weights do not fit into memory.", bytes_text(static_cast<double>(end_))));
}

}  // namespace ge::om
