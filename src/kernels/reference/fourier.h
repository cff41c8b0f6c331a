// The discrete Fourier transform of n complex numbers, in double: mixed radix, so n log n for smooth sizes and
// n * p for a prime factor p.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace ge::kernels::reference {

class Fourier {
 public:
  // sign -1: forward, +1: backward (neither divides by n).
  Fourier(int64_t n, int sign);
  int64_t size() const { return n_; }
  // to[k] = sum over i of from[i] * e^(sign 2 pi j i k / n). `from` and `to` are n numbers each that do not overlap;
  // `spare` is n numbers more.
  void run(const std::complex<double>* from, std::complex<double>* to, std::complex<double>* spare) const;

 private:
  void step(const std::complex<double>* from, int64_t stride, int64_t n, size_t factor, std::complex<double>* to,
            std::complex<double>* spare) const;
  int64_t n_;
  std::vector<std::complex<double>> roots_;
  std::vector<int64_t> factors_;
};

}  // namespace ge::kernels::reference
