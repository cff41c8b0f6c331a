#include "kernels/reference/fourier.h"

#include <cmath>
#include <numbers>

namespace ge::kernels::reference {

using Complex = std::complex<double>;

Fourier::Fourier(int64_t n, int sign) : n_(n) {
  for (int64_t k = 0; k < n; ++k) {
    double angle = sign * 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    roots_.push_back({std::cos(angle), std::sin(angle)});
  }
  for (int64_t p = 2; n > 1; ++p) {
    if (p * p > n) p = n;
    for (; n % p == 0; n /= p) factors_.push_back(p);
  }
}

// p transforms of every p-th number, then their combination: to[k + q m] for q below p.
void Fourier::step(const Complex* from, int64_t stride, int64_t n, size_t factor, Complex* to, Complex* spare) const {
  if (n == 1) {
    *to = *from;
    return;
  }
  int64_t p = factors_[factor], m = n / p, unit = n_ / n;
  for (int64_t i = 0; i < p; ++i) step(from + i * stride, stride * p, m, factor + 1, spare + i * m, to + i * m);
  for (int64_t k = 0; k < n; ++k) {
    Complex sum = 0;
    for (int64_t i = 0, turn = 0; i < p; ++i, turn = (turn + k) % n) {
      // Written out: the library's product also looks after infinities, which these finite roots do not need.
      Complex a = spare[i * m + k % m], b = roots_[static_cast<size_t>(turn * unit)];
      sum += Complex(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
    }
    to[k] = sum;
  }
}

void Fourier::run(const Complex* from, Complex* to, Complex* spare) const {
  if (n_ > 0) step(from, 1, n_, 0, to, spare);
}

}  // namespace ge::kernels::reference
