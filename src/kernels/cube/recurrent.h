// Weights, biases and sums of the recurrent cells as the fast kernels have them: units in blocks of 16 columns,
// the last one padded with zeros. Of each block the gates that are needed together lie side by side:
// LSTM [block][i o f c], GRU [block][z r], then [block][h], RNN [block].
//
// pack_gates() serves the compiler; the kernel "cube.pack_gates" packs computed weights at run time:
// in[0] f32 [D, G H, K] with any strides; out[0] dense f32 [D, G ceil(H / 16), K, 16]; ints [G, together].
// With K = 1 it packs biases.
#pragma once

#include <cstdint>

#include "kernels/recurrent.h"
#include "tensor/view.h"

namespace ge::kernels::cube {

// How many of the first gates lie side by side.
inline int64_t gates_together(Cell c) { return c == Cell::lstm ? 4 : c == Cell::gru ? 2 : 1; }

// v f32 [D, G H, K]; out D * G * panels(H) panels [K][16].
void pack_gates(const View& v, int64_t gates, int64_t together, float* out);

// One step of one row of the batch: x and r are the sums from the input and from the state, in the order
// above; `units` is a multiple of 16.
struct CellStep {
  int64_t units = 0;
  const float* x = nullptr;
  float* r = nullptr;        // also the place of the gates of a GRU between its two products
  float* h = nullptr;        // in and out
  float* c = nullptr;        // LSTM: in and out
  float* reset = nullptr;    // GRU whose product comes after the reset: r * h
  float scale = 1;           // LSTM: of r
};

// What all steps of a direction have in common.
struct CellPlan {
  Cell cell = Cell::rnn;
  bool input_forget = false;
  bool usual = false;                   // sigmoid, tanh, tanh (RNN: tanh), no clip
  float clip = 0;
  std::array<ActivationSpec, kActivations> act{};
  const float* peepholes = nullptr;     // [i, o, f][units], or null
};

// A row of states as bytes around 128, and what one step of them is worth: h is about (bytes - 128) * the result.
// The largest magnitude becomes 127. What is not finite makes the result NaN. `units` is a multiple of 16.
float quantize_state(const float* h, int64_t units, uint8_t* bytes);
void lstm_step(const CellPlan& p, const CellStep& s);
void rnn_step(const CellPlan& p, const CellStep& s);
void gru_step(const CellPlan& p, const CellStep& s);           // linear_before_reset: all sums are there
void gru_reset(const CellPlan& p, const CellStep& s);          // z and r, and reset = r * h
void gru_after_reset(const CellPlan& p, const CellStep& s);    // with the sums of the reset state

}  // namespace ge::kernels::cube
