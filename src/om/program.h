// The narrow waist between compiler and runtime: a Model holds Programs, a Program is flat data (tasks,
// buffers, expressions, symbols), described field by field in om.fbs. No graph, no pointers into one.
// The compiler fills these structs, om/writer.h makes a file of them, om/reader.h the reverse, and
// om/check.h proves that they can be run.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/nameless.h"
#include "om/om_generated.h"

namespace ge::om {

// Where the weights lie: in the .om file, in one file each, or together in one file.
enum class ExternalWeight : uint8_t { none = 0, each = 1, combined = 2 };

// An opened or just compiled model: metadata, the compile report, and the weights section.
struct Package {
  ModelT model;
  std::string notes;                        // the compile report, JSON
  std::span<const std::byte> weights;       // offsets in buffers count from here
  std::shared_ptr<const void> keep;         // what the weights lie in (mapped file or memory)
  std::shared_ptr<NamelessFile> file;       // if not null: a file of these weights alone, from byte kPage on, that write() may name
  ExternalWeight external_weight = ExternalWeight::none;  // how write() stores the weights, and read() found them
  std::vector<std::string> sources;         // files that the model was compiled from: write() leaves them alone
};

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kPage = 4096;       // alignment of the weights section
inline constexpr size_t kWeightAlign = 64;  // alignment of a weight in it
inline constexpr size_t kWeightFileAlign = 65536;  // of weight files in memory: the largest page size of any CPU

// Bytes of the weights, without what lies between the files that hold them.
inline int64_t weight_bytes(const Package& p) {
  uint64_t sum = 0;
  for (auto& f : p.model.weight_files) sum += f->bytes;
  return static_cast<int64_t>(p.model.weight_files.empty() ? p.weights.size() : sum);
}

}  // namespace ge::om
