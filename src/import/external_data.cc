#include "import/external_data.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "import/sha1.h"

namespace ge::onnx {
namespace {

std::optional<std::string> real_path(const std::string& path) {
  char* p = ::realpath(path.c_str(), nullptr);
  if (!p) return std::nullopt;
  std::string s = p;
  std::free(p);
  return s;
}

// Why a location is refused before the file system is asked, or empty.
std::string refusal(const std::string& location) {
  if (location.empty()) return "it is empty";
  if (location.find('\0') != std::string::npos) return "it contains a NUL";
  if (location[0] == '/') return "it is an absolute path";
  for (auto& part : split(location, '/'))
    if (part == "..") return "it contains '..'";
  return "";
}

// Walks down without following links, so that a path checked before cannot be swapped for a link.
int open_beneath(const std::string& root, const std::string& relative) {
  int fd = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  auto parts = split(relative, '/');
  for (size_t i = 0; fd >= 0 && i < parts.size(); ++i) {
    // O_NONBLOCK: a FIFO must not hang us; it is refused later as no regular file.
    int flags = i + 1 < parts.size() ? O_PATH | O_DIRECTORY : O_RDONLY | O_NONBLOCK;
    int next = ::openat(fd, parts[i].c_str(), flags | O_NOFOLLOW | O_CLOEXEC);
    int saved = errno;
    ::close(fd);
    errno = saved;
    fd = next;
  }
  return fd;
}

std::optional<uint64_t> number(const std::string& text) {
  uint64_t v = 0;
  auto [end, e] = std::from_chars(text.data(), text.data() + text.size(), v);
  if (e != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return v;
}

std::string lower(std::string s) {
  for (char& c : s)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return s;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> ExternalData::open(const std::string& location,
                                                             const std::string& checksum) {
  Entry& entry = files_[location];
  if (!entry.file) {
    if (std::string why = refusal(location); !why.empty())
      return error(code::kParse,
                   format("The external data location {} is refused.", quote(location)), why,
                   "external data must lie in the model's folder or below it");
    if (folders_.empty())
      return error(
          code::kNoFile, format("The external data file {} cannot be found.", quote(location)),
          "the model was given as bytes, without the folder that its external data are relative to",
          "give the model's path, or a model that holds its weights");
    std::string wanted = format("{}/{}", folders_[0], location);
    auto real = real_path(wanted);
    if (!real)
      return error(
          errno == ENOENT ? code::kNoFile : code::kOpen,
          format("The external data file {} cannot be opened: {}.", wanted, std::strerror(errno)),
          "", "put it beside the model, where the model says that it is");
    for (auto& folder : folders_) {
      auto root = real_path(folder);
      if (!root) continue;
      std::string prefix = *root == "/" ? *root : *root + "/";
      if (real->compare(0, prefix.size(), prefix) != 0) continue;
      int fd = open_beneath(*root, real->substr(prefix.size()));
      if (fd < 0)
        return error(code::kOpen, format("The external data file {} cannot be opened: {}.", wanted,
                                         std::strerror(errno)));
      GE_TRY(entry.file, MappedFile::from_descriptor(fd, wanted));
      break;
    }
    if (!entry.file)
      return error(code::kParse,
                   format("The external data location {} is refused.", quote(location)),
                   "it is a link that leads out of the model's folder",
                   "external data must lie in the model's folder or below it");
  }
  if (!checksum.empty() && entry.checked != lower(checksum)) {
    std::string found = sha1_hex(entry.file->bytes());
    if (found != lower(checksum))
      return error(
          code::kParse,
          format("The external data file {} does not have the checksum that the model states.",
                 quote(location)),
          format("SHA-1 is {}, the model states {}", found, quote(checksum)),
          "the file is damaged or belongs to another model");
    entry.checked = found;
  }
  return entry.file;
}

std::vector<std::string> ExternalData::paths() const {
  std::vector<std::string> out;
  for (auto& [location, entry] : files_)
    if (entry.file) out.push_back(format("{}/{}", folders_[0], location));
  return out;
}

Result<ExternalData::Range> ExternalData::read(const TensorProto& tensor, size_t expected) {
  std::string location, checksum;
  uint64_t offset = 0, length = expected;
  for (auto& [key, value] : tensor.external_data) {
    if (key == "location") location = value;
    if (key == "checksum") checksum = value;
    if (key != "offset" && key != "length") continue;
    auto v = number(value);
    if (!v)
      return error(code::kParse, format("Tensor {} has an external data {} that is no number: {}.",
                                        quote(tensor.name), key, quote(value)));
    (key == "offset" ? offset : length) = *v;
  }
  if (length != expected)
    return error(code::kParse,
                 format("Tensor {} needs {} bytes for its shape, its external data have {}.",
                        quote(tensor.name), expected, length));
  auto where = format("tensor {}", quote(tensor.name));
  auto opened = open(location, checksum);
  if (!opened) return std::move(opened).context(where).take_error();
  Bytes all = (*opened)->bytes();
  if (offset > all.size() || length > all.size() - offset)
    return error(
        code::kParse,
        format("Tensor {} lies outside its external data file {}.", quote(tensor.name),
               quote(location)),
        format("it needs {} bytes at offset {}, the file has {} bytes", length, offset, all.size()),
        "check that the file was copied completely and belongs to this model");
  return Range{*opened, all.subspan(offset, length)};
}

}  // namespace ge::onnx
