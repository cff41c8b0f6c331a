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
#include "om/om_generated.h"

namespace ge::om {

// An opened or just compiled model: metadata, the compile report, and the weights section.
struct Package {
  ModelT model;
  std::string notes;                        // the compile report, JSON
  std::span<const std::byte> weights;       // offsets in buffers count from here
  std::shared_ptr<const void> keep;         // what the weights lie in (mapped file or memory)
};

inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kPage = 4096;       // alignment of the weights section
inline constexpr size_t kWeightAlign = 64;  // alignment of a weight in it

}  // namespace ge::om
