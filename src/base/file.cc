#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include "base/mappings.h"
#include "base/text.h"

namespace ge {

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT)
      return error(code::kNoFile, format("File {} does not exist.", path), "the path is wrong or the file was moved",
                   "check the path");
    return error(code::kOpen, format("File {} cannot be opened: {}.", path, std::strerror(errno)));
  }
  return from_descriptor(fd, path);
}

Result<std::shared_ptr<const MappedFile>> MappedFile::from_descriptor(int fd, const std::string& path) {
  struct stat st {};
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    return error(code::kOpen, format("{} is not a regular file.", path), S_ISDIR(st.st_mode) ? "it is a folder" : "", "give the path of a file");
  }
  auto file = std::shared_ptr<MappedFile>(new MappedFile());
  file->size_ = static_cast<size_t>(st.st_size);
  if (file->size_) {
    void* p = mmap(nullptr, file->size_, PROT_READ, MAP_SHARED, fd, 0);
    int e = errno;
    if (p == MAP_FAILED) {
      ::close(fd);
      return error(code::kRead, format("File {} cannot be mapped: {}.", path, std::strerror(e)));
    }
    file->data_ = static_cast<const std::byte*>(p);
    file->mapped_ = true;
    remember_mapping(file->data_, file->size_);
  }
  ::close(fd);
  return std::shared_ptr<const MappedFile>(std::move(file));
}

Result<std::shared_ptr<const MappedFile>> MappedFile::open_row(std::span<const FilePart> files, size_t align) {
  constexpr size_t kMost = size_t(1) << 46;
  size_t total = 0;
  std::vector<size_t> at;
  for (auto& f : files) {
    at.push_back((total + align - 1) / align * align);
    if (f.size > kMost || at.back() > kMost) return error(code::kTooLarge, format("File {} would be too large.", f.path));
    total = at.back() + f.size;
  }
  auto row = std::shared_ptr<MappedFile>(new MappedFile());
  if (total == 0) return std::shared_ptr<const MappedFile>(std::move(row));
  // The range itself starts on such a multiple too: a larger one is taken and its ends are given back.
  auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t kept = (total + page - 1) / page * page;
  void* p = mmap(nullptr, kept + align, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return error(code::kOutOfMemory, format("There is no room for {} of mapped files.", bytes_text(static_cast<double>(total))));
  auto* start = static_cast<std::byte*>(p);
  size_t before = (align - reinterpret_cast<uintptr_t>(p) % align) % align;
  if (before) munmap(start, before);
  start += before;
  munmap(start + kept, align - before);
  row->data_ = start, row->size_ = total, row->mapped_ = true;
  for (size_t i = 0; i < files.size(); ++i) {
    auto& [path, size] = files[i];
    GE_TRY(auto one, open(path));
    if (one->size_ != size) return error(code::kParse, format("File {} has {} bytes instead of {}.", path, one->size_, size), "it was cut or changed after it was made");
    if (size && mremap(const_cast<std::byte*>(one->data_), size, size, MREMAP_MAYMOVE | MREMAP_FIXED, start + at[i]) == MAP_FAILED)
      return error(code::kRead, format("File {} cannot be mapped: {}.", path, std::strerror(errno)));
    forget_mapping(one->data_);
    const_cast<MappedFile&>(*one).data_ = nullptr;  // it lies in the row now
  }
  return std::shared_ptr<const MappedFile>(std::move(row));
}

std::shared_ptr<const MappedFile> MappedFile::from_bytes(std::span<const std::byte> bytes) {
  auto file = std::shared_ptr<MappedFile>(new MappedFile());
  file->size_ = bytes.size();
  if (file->size_) {
    auto* p = static_cast<std::byte*>(::operator new(file->size_, std::align_val_t(64)));
    std::memcpy(p, bytes.data(), file->size_);
    file->data_ = p;
    file->owned_ = true;
  }
  return file;
}

std::shared_ptr<const MappedFile> MappedFile::over(std::span<const std::byte> bytes) {
  auto file = std::shared_ptr<MappedFile>(new MappedFile());
  file->data_ = bytes.data(), file->size_ = bytes.size();
  return file;
}

MappedFile::~MappedFile() {
  if (!data_) return;
  if (mapped_) {
    forget_mapping(data_);
    munmap(const_cast<std::byte*>(data_), size_);
  } else if (owned_) {
    ::operator delete(const_cast<std::byte*>(data_), std::align_val_t(64));
  }
}

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string absolute_path(const std::string& path) {
  std::error_code e;
  return std::filesystem::absolute(path, e).string();
}

Error cannot_write(const std::string& path, const char* what, int why) {
  return error(code::kWrite, format("File {} cannot be {}: {}.", path, what, std::strerror(why)), "",
               "check that the folder exists, is writable and has room");
}

Status not_in_place_of(const std::string& path, std::span<const std::string> files) {
  for (auto& file : files) {
    std::error_code e;
    if (std::filesystem::equivalent(path, file, e))
      return error(code::kWrite, format("File {} is not written: it is {}, which is read.", path, path == file ? "the model" : file), "", "give the result another name");
  }
  return ok();
}

int to_the_disk(int descriptor) { return ::fsync(descriptor) != 0 && errno != EINVAL && errno != EROFS ? errno : 0; }

namespace {

// Who names a link means what it leads to.
std::string target_of(std::string path) {
  std::error_code e;
  if (!std::filesystem::is_symlink(path, e)) return path;
  auto target = std::filesystem::weakly_canonical(path, e);
  return e ? path : target.string();
}

// Devices, pipes and sockets are not replaced by files.
int replaceable(const std::string& path) {
  struct stat there {};
  return ::stat(path.c_str(), &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode) ? 0 : ENOTSUP;
}

}  // namespace

FileAside::FileAside(std::string path) : path_(target_of(std::move(path))) {
  static std::atomic<unsigned> counter{0};
  aside_ = format("{}.{}.{}.tmp", path_, getpid(), counter.fetch_add(1));
}
FileAside::FileAside(FileAside&& other) noexcept
    : path_(std::move(other.path_)), aside_(std::move(other.aside_)), descriptor_(std::exchange(other.descriptor_, -1)), end_(other.end_), there_(std::exchange(other.there_, false)) {}
FileAside::~FileAside() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (there_) ::unlink(aside_.c_str());
}

int FileAside::create() {
  if (int why = replaceable(path_)) return why;
  // A name can be given later where /proc is.
  if (::access("/proc/self/fd", X_OK) == 0) descriptor_ = ::open(folder_of(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0644);
  if (descriptor_ >= 0) return 0;
  descriptor_ = ::open(aside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  there_ = descriptor_ >= 0;
  return there_ ? 0 : errno;
}

int FileAside::adopt(NamelessFile& file) {
  if (int why = replaceable(path_)) return why;
  there_ = file.link(aside_);
  return there_ ? 0 : errno;
}

int FileAside::append(std::span<const std::byte> bytes) {
  int why = 0;
  by_blocks(bytes, [&](std::span<const std::byte> block) {
    if (!why) why = put(end_, block);
    end_ += block.size();
  });
  return why;
}

int FileAside::put(size_t at, std::span<const std::byte> bytes) { return write_at(descriptor_, at, bytes); }

int FileAside::close(bool durable) {
  int why = durable ? to_the_disk(descriptor_) : 0;
  if (there_ || why) ::close(std::exchange(descriptor_, -1));
  return why;
}

int FileAside::name() {
  if (descriptor_ < 0) return 0;
  const std::string nameless = format("/proc/self/fd/{}", descriptor_);
  there_ = ::linkat(AT_FDCWD, nameless.c_str(), AT_FDCWD, aside_.c_str(), AT_SYMLINK_FOLLOW) == 0;
  const int why = there_ ? 0 : errno;
  ::close(std::exchange(descriptor_, -1));
  return why;
}

int FileAside::finish() {
  if (int why = name()) return why;
  if (::rename(aside_.c_str(), path_.c_str()) != 0) return errno;
  there_ = false;
  return 0;
}

Status write_files(std::span<const FileContent> files, bool durable) {
  constexpr size_t kMostOpen = 64;   // of files that have no name yet
  std::vector<FileAside> aside;
  for (auto& file : files) {
    auto& f = aside.emplace_back(file.path);
    int why = f.create();
    for (size_t i = 0; i < file.parts.size() && !why; ++i) why = f.append(file.parts[i]);
    if (!why) why = f.close(durable);
    if (!why && files.size() > kMostOpen) why = f.name();
    if (why) return cannot_write(file.path, "written", why);
  }
  std::vector<std::string> made;
  for (auto& f : aside) {
    bool fresh = ::access(f.path().c_str(), F_OK) != 0;
    if (int why = f.finish()) {
      for (auto& m : made) ::unlink(m.c_str());
      return cannot_write(f.path(), "put in place", why);
    }
    if (fresh) made.push_back(f.path());
  }
  return ok();
}

Status write_file(const std::string& path, std::span<const std::span<const std::byte>> parts, bool durable) {
  FileContent one{path, {parts.begin(), parts.end()}};
  return write_files(std::span(&one, 1), durable);
}

Status write_file(const std::string& path, std::string_view text) {
  auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return write_file(path, std::span(&bytes, 1));
}

}  // namespace ge
