// Checks that prepare() of the move and reference kernels share: a Call comes from a file, so nothing
// in it is trusted. After check_call() every view has 0..kMaxRank axes, sizes >= 0, plain elements and
// offsets that stay far inside 64 bits; whether a view lies inside its buffer is om's business.
#pragma once

#include <string_view>

#include "base/text.h"
#include "kernels/kernel.h"

namespace ge::kernels::move {

// "move.copy: the input ..." as an error that a damaged file or a wrong lowering gets.
Error bad_call(std::string_view kernel, std::string_view what);

// Arity (absent trailing inputs may be left out down to min_in) and sanity of every view. An input
// with dtype none is let through at an index >= min_in only.
Status check_call(const Call& c, std::string_view kernel, size_t min_in, size_t max_in, size_t min_out,
                  size_t max_out);
Status check_view(const View& v, std::string_view kernel, std::string_view which);

inline bool has_input(const Call& c, size_t i) { return i < c.in.size() && c.in[i].dtype != DType::none; }
inline bool has_output(const Call& c, size_t i) { return i < c.out.size() && c.out[i].dtype != DType::none; }
bool same_dims(const View& a, const View& b);
std::string dims_text(const View& v);

// An index tensor: i32 or i64.
inline bool is_index(DType t) { return t == DType::i32 || t == DType::i64; }
inline int64_t load_index(const View& v, int64_t offset) {
  return v.dtype == DType::i64 ? v.as<int64_t>()[offset] : v.as<int32_t>()[offset];
}

}  // namespace ge::kernels::move
