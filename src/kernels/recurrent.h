// What the kernels of LSTM, GRU and RNN share: their parameters, as the ops hand them over.
//
//   ints   [cell, flag, directions, reverse, activations...]: flag is input_forget (LSTM) or
//          linear_before_reset (GRU); bit d of reverse: direction d goes backwards; kActivations a direction
//          (f, g, h; a cell without one has none)
//   floats [clip, (alpha, beta)...]: one pair for each activation; clip +inf is none.
//          It bounds the sums of the gates, not the state that an LSTM's h sees
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace ge::kernels {

enum class Cell : uint8_t { rnn = 0, gru = 1, lstm = 2 };
inline int64_t gates_of(Cell c) { return c == Cell::lstm ? 4 : c == Cell::gru ? 3 : 1; }

enum class Activation : uint8_t {
  none,                // identity: no such activation in this cell
  relu, tanh, sigmoid,
  affine,              // alpha x + beta
  leaky_relu,          // x < 0 ? alpha x : x
  thresholded_relu,    // x < alpha ? 0 : x
  scaled_tanh,         // alpha tanh(beta x)
  hard_sigmoid,        // alpha x + beta within [0, 1]
  elu,                 // x < 0 ? alpha (exp(x) - 1) : x
  softsign,            // x / (1 + |x|)
  softplus,            // log(1 + exp(x))
};
inline constexpr int kActivationCount = 12;
inline constexpr size_t kActivations = 3;
inline constexpr size_t kMaxDirections = 2;

struct ActivationSpec {
  Activation kind = Activation::none;
  float alpha = 0, beta = 0;
};

struct RecurrentParams {
  Cell cell = Cell::rnn;
  bool input_forget = false, linear_before_reset = false;
  int64_t directions = 1;
  std::array<bool, kMaxDirections> reverse{};
  float clip = 0;  // +inf: none
  std::array<std::array<ActivationSpec, kActivations>, kMaxDirections> act{};
};

Result<RecurrentParams> read_recurrent(std::span<const int64_t> ints, std::span<const double> floats,
                                       std::string_view kernel);

}  // namespace ge::kernels
