// What the machine can do at most: f32 multiply-adds and reading memory, measured now.
#pragma once

#include "base/result.h"

namespace ge {

struct Roofline {
  int threads = 1;
  double gflops = 0;      // 1e9 f32 operations a second, all threads together
  double read_gbs = 0;    // 1e9 bytes a second from memory, all threads together
};
// Takes some 50 ms, and 128 MB for each thread.
Roofline roofline(int threads);

}  // namespace ge
