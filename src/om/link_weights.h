// The weights of parts that are linked: laid out anew, equal ones once.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "om/link.h"

namespace ge::om {

class LinkWeights {
 public:
  // Decides where everything lies. Fills the linked model's texts, whose numbers weights of strings hold.
  Status plan(const std::vector<LinkPart>& parts, std::vector<std::string>& texts);
  // Where a weight of a part lies from now on.
  uint64_t place(size_t part, const BufferT& weight) const { return at_[part].at({weight.weight_offset, weight.weight_bytes}); }
  // Puts them there, and lets go of the parts'. What lies in mapped files is mapped a second time: the linked weights are
  // the parts' own pages. Where the largest part's file is ours to change, the others are written behind what lies there.
  Status join(std::vector<LinkPart>& parts, Package& to);
  int64_t shared() const { return shared_; }

 private:
  using Range = std::pair<uint64_t, uint64_t>;   // offset, bytes
  struct Stored {
    size_t part;
    std::span<const std::byte> from;
    uint64_t to;
  };
  // Bytes that go from a part as they lie there, gaps between weights included.
  struct Run {
    size_t part;
    std::span<const std::byte> from;
    uint64_t to;
  };
  Status collect(size_t part, const Package& p, std::vector<std::string>& texts, std::map<std::string, uint32_t>& numbers);
  void store(size_t part, const Package& p, const Range& range, std::span<const std::byte> from);
  uint64_t run_on(size_t part, const Package& p, const Range& range, std::span<const std::byte> from);
  bool leads(const std::vector<LinkPart>& parts) const;
  bool extend(std::vector<LinkPart>& parts, Package& to);
  bool gather(std::vector<LinkPart>& parts, Package& to);
  bool large_ = false;                            // by whole pages, which can be mapped; else as close as can be
  std::vector<std::map<Range, uint64_t>> at_;
  std::vector<Stored> stored_;
  std::vector<Run> runs_;
  std::multimap<uint64_t, size_t> by_start_;      // stored_, by size and first bytes
  std::vector<std::vector<std::byte>> renumbered_;   // weights of strings
  uint64_t end_ = 0;
  int64_t shared_ = 0;
};

}  // namespace ge::om
