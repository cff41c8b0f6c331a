#include "runtime/model.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>

#include "base/text.h"
#include "om/reader.h"

namespace ge::runtime {

Result<std::shared_ptr<Model>> Model::open(const std::string& path, const LoadOptions& options) {
  GE_TRY(auto file, MappedFile::open(path));
  auto package = om::read(file, options.check_weights, std::filesystem::path(path).parent_path().string());
  if (!package.ok()) return std::move(package).context("opening " + path).take_error();
  return from(*std::move(package), options);
}

Result<std::shared_ptr<Model>> Model::open(std::span<const std::byte> bytes, const LoadOptions& options) {
  GE_TRY(auto package, om::read(MappedFile::from_bytes(bytes), options.check_weights));
  return from(std::move(package), options);
}

Result<std::shared_ptr<Model>> Model::from(om::Package package, const LoadOptions& options) {
  if (package.model.programs.empty() || package.model.entries.empty())
    return error(code::kParse, "The .om file holds no program.", "the file is damaged");
  int entry = package.model.entries[0]->program;
  if (entry < 0 || static_cast<size_t>(entry) >= package.model.programs.size())
    return error(code::kParse, "The .om file's entry names no program.", "the file is damaged");
  if (package.model.programs[static_cast<size_t>(entry)]->segments.size() > 1)
    return error(code::kUnsupportedOp, "The model has sizes that depend on data, which this version cannot run.");
  if (options.huge_pages && !package.weights.empty()) {
    size_t size = (package.weights.size() + (2u << 20) - 1) / (2u << 20) * (2u << 20);
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return error(code::kOutOfMemory, "The weights do not fit into memory.");
    madvise(p, size, MADV_HUGEPAGE);
    std::memcpy(p, package.weights.data(), package.weights.size());
    package.weights = {static_cast<const std::byte*>(p), package.weights.size()};
    package.keep = std::shared_ptr<const void>(p, [size](const void* q) { munmap(const_cast<void*>(q), size); });
  }
  auto m = std::shared_ptr<Model>(new Model(std::move(package)));
  m->entry_ = entry;
  m->threads_ = options.threads > 0 ? options.threads : default_threads();
  return m;
}

Result<std::shared_ptr<const Binding>> Model::bind(std::span<const std::vector<int64_t>> input_dims) {
  if (input_dims.size() != program().inputs.size())
    return error(code::kInputMismatch, format("The model takes {} inputs, got {}.", program().inputs.size(), input_dims.size()));
  auto same = [&](const std::shared_ptr<const Binding>& b) {
    return std::equal(input_dims.begin(), input_dims.end(), b->input_dims.begin());
  };
  {
    std::lock_guard lock(mutex_);
    auto it = std::find_if(bindings_.begin(), bindings_.end(), same);
    if (it != bindings_.end()) {
      bindings_.splice(bindings_.begin(), bindings_, it);
      return bindings_.front();
    }
  }
  try {
    GE_TRY(auto symbols, bind_symbols(program(), input_dims));
    BindOptions options;
    options.threads = threads_;
    GE_TRY(auto binding, Binding::make(package_, program(), symbols, options));
    std::lock_guard lock(mutex_);
    bindings_.push_front(binding);
    if (bindings_.size() > kBindings) bindings_.pop_back();
    return binding;
  } catch (const std::bad_alloc&) {
    return error(code::kOutOfMemory, "There is not enough memory for inputs of these sizes.");
  }
}

Status Model::run(const std::shared_ptr<const Binding>& binding, std::span<const void* const> inputs,
                  std::span<void* const> outputs, Profile* profile) {
  std::unique_ptr<Context> context;
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      // One that served this Binding last needs no new addresses.
      auto it = std::find_if(idle_.rbegin(), idle_.rend(), [&](auto& c) { return c->serves(binding); });
      if (it != idle_.rend()) std::swap(*it, idle_.back());
      context = std::move(idle_.back());
      idle_.pop_back();
    } else {
      ++contexts_;
      idle_.reserve(static_cast<size_t>(contexts_));
    }
  }
  if (!context) context = std::make_unique<Context>();
  int64_t before = context->arena_bytes();
  Status s = context->run(binding, package_.weights, inputs, outputs, profile);
  std::lock_guard lock(mutex_);
  arena_ += context->arena_bytes() - before;
  idle_.push_back(std::move(context));
  return s;
}

Memory Model::memory() const {
  std::lock_guard lock(mutex_);
  Memory m;
  m.weights = om::weight_bytes(package_);
  m.arena = arena_;
  m.contexts = contexts_;
  return m;
}

void Model::trim() {
  std::lock_guard lock(mutex_);
  for (auto& c : idle_) arena_ -= c->arena_bytes();
  contexts_ -= static_cast<int>(idle_.size());
  idle_.clear();
}

}  // namespace ge::runtime
