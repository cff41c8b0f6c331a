#include "driver/graph_options.h"

#include <charconv>
#include <optional>

#include "base/ini.h"
#include "base/text.h"

namespace ge {
namespace {

Error malformed(std::string why) {
  return error(code::kInvalidValue, format("Value for parameter --graph_options is invalid. Reason: {}.", why), "", "write ge graph_options { key: value }");
}

// The words of the block: '{', '}', ':' behind a key, quoted texts, and what stands between blanks.
// Comments run from '#' to the end of the line.
class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  bool ended() {
    skip();
    return at_ == text_.size();
  }
  bool take(char c) {
    if (ended() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Letters, digits, '_' and '.'.
  std::string name() {
    skip();
    size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.')) ++at_;
    return std::string(text_.substr(start, at_ - start));
  }
  // In quotes, or up to a blank; nullopt where the closing quote is missing.
  std::optional<std::string> value() {
    if (take('"')) {
      size_t end = text_.find('"', at_);
      if (end == std::string_view::npos) return std::nullopt;
      std::string v(text_.substr(at_, end - at_));
      at_ = end + 1;
      return v;
    }
    size_t start = at_;
    while (at_ < text_.size() && !blank(text_[at_]) && text_[at_] != '}' && text_[at_] != '#') ++at_;
    std::string v(text_.substr(start, at_ - start));
    while (!v.empty() && (v.back() == ',' || v.back() == ';')) v.pop_back();
    return v;
  }
  void skip_separators() {
    while (take(',') || take(';')) {}
  }
  std::string rest() { return std::string(trim(text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_))); }

 private:
  static bool blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  void skip() {
    while (at_ < text_.size() && (blank(text_[at_]) || text_[at_] == '#')) {
      if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      else ++at_;
    }
  }
  std::string_view text_;
  size_t at_ = 0;
};

// KiB here, bytes in Python and on the command line.
Result<std::string> bytes_of(const std::string& kib_text) {
  int64_t kib = 0;
  auto [end, e] = std::from_chars(kib_text.data(), kib_text.data() + kib_text.size(), kib);
  if (e != std::errc() || end != kib_text.data() + kib_text.size() || kib < 0 || kib > INT64_MAX / 1024)
    return malformed(format("mem_workspace_size: {} is no number of KiB", kib_text));
  return format("{}", kib * 1024);
}

}  // namespace

Status read_graph_options(Options& o, const std::string& text) {
  Words words(without_mark(text));
  std::string head = words.name();
  if (head == "ge") head = words.name();
  if (head != "graph_options" || !words.take('{')) return malformed("it does not start with graph_options {");
  while (!words.take('}')) {
    if (words.ended()) return malformed("the block is not whole: its } is missing");
    std::string key = words.name();
    if (key.empty() || !words.take(':')) return malformed(format("'{}' is no key: value", key + words.rest()));
    auto value = words.value();
    if (!value) return malformed(format("the closing quote of {} is missing", key));
    if (value->empty()) return malformed(format("{} has no value", key));
    if (key == "graph_options") return malformed("a block holds no graph_options of its own");
    if (key == "mem_workspace_size") {
      GE_TRY(value, bytes_of(*value));
    }
    GE_RETURN_IF_ERROR(set_option(o, key, *value));
    words.skip_separators();
  }
  return words.ended() ? ok() : Status(malformed(format("'{}' stands behind the block", words.rest())));
}

}  // namespace ge
