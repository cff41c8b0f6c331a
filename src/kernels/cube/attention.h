// What attention.cc and its vector bodies (attention-inl.h) share: one block of query rows against one block
// of keys. Not an interface for others; the kernel is "cube.attention".
#pragma once

#include <cstdint>

namespace ge::kernels::cube {

enum class MaskKind : uint8_t { none, f32, boolean };

// A block of scores, ld floats a row (a multiple of 16), and what to do to them before the softmax.
struct ScoreBlock {
  float* scores = nullptr;
  int64_t ld = 0;
  const int64_t* length = nullptr;  // [rows]: the keys of this block that a row may see
  const float* key_scale = nullptr; // not null: what the score of each key is multiplied by first
  float softcap = 0;                // > 0: x becomes softcap * tanh(x / softcap)
  float masked = 0;                 // what a score becomes where a bool mask is false
  MaskKind mask_kind = MaskKind::none;
  const void* const* mask = nullptr;  // [rows]: the mask of the row at the block's first key
  int64_t mask_step = 0;              // elements between keys
  float* top = nullptr;               // [rows][16]: running maxima, one lane a column modulo 16
};

}  // namespace ge::kernels::cube
