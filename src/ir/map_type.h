// Types of maps: their dtype is that of the values.
#pragma once

#include "ir/graph.h"

namespace ge::ir {

// A map from integers or from strings holds its keys and its values as two tensors; the rows of a sequence of maps
// share their keys.
inline constexpr TypeKind kMapFromI64{4}, kMapFromText{5}, kMapsFromI64{6}, kMapsFromText{7};

inline bool is_map(const Type& t) { return t.kind == kMapFromI64 || t.kind == kMapFromText; }
inline bool is_map_sequence(const Type& t) { return t.kind == kMapsFromI64 || t.kind == kMapsFromText; }
inline DType key_of(const Type& t) { return t.kind == kMapFromText || t.kind == kMapsFromText ? DType::string : DType::i64; }

}  // namespace ge::ir
