// The discrete Fourier transform of n complex numbers: decimation in frequency with mixed radix, so n log n for smooth
// sizes and n * p for a prime factor p.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace ge::kernels::reference {

// T: double, or float, whose error grows with the largest prime factor.
template <class T>
class Fourier {
 public:
  using Complex = std::complex<T>;
  // sign -1: forward, +1: backward (neither divides by n).
  Fourier(int64_t n, int sign);
  int64_t size() const { return n_; }
  // to[k] = sum over i of data[i] * e^(sign 2 pi j i k / n). Both are n numbers, do not overlap, and are overwritten;
  // the result lies in what is returned, one of them.
  Complex* run(Complex* data, Complex* other) const;

 private:
  void pass(int64_t radix, int64_t done, const Complex* from, Complex* to) const;
  void butterfly(int64_t radix, Complex* c) const;
  int64_t n_;
  T sign_;
  std::vector<Complex> roots_;      // e^(sign 2 pi j k / n)
  std::vector<int64_t> radices_;
};

// True when every prime factor of n is at most 5: sums stay short.
bool is_smooth(int64_t n);

}  // namespace ge::kernels::reference
