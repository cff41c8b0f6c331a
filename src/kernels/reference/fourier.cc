#include "kernels/reference/fourier.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ge::kernels::reference {
namespace {

constexpr int64_t kMaxFixed = 5;   // radices with a butterfly of their own

double root_part(double turns, bool imaginary) {
  double angle = 2 * std::numbers::pi * turns;
  return imaginary ? std::sin(angle) : std::cos(angle);
}

// Fours first, a remaining two before them, then odd primes.
std::vector<int64_t> radices_of(int64_t n) {
  std::vector<int64_t> out;
  for (; n % 4 == 0 && n > 0; n /= 4) out.push_back(4);
  if (n % 2 == 0 && n > 0) n /= 2, out.insert(out.begin(), 2);
  for (int64_t p = 3; n > 1; p += 2) {
    if (p * p > n) p = n;
    for (; n % p == 0; n /= p) out.push_back(p);
  }
  return out;
}

// Written out: the library's product also looks after infinities, which these finite roots do not need.
template <class T>
std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// j * a
template <class T>
std::complex<T> turned(std::complex<T> a) { return {-a.imag(), a.real()}; }

}  // namespace

bool is_smooth(int64_t n) {
  for (int64_t p : {2, 3, 5})
    while (n > 1 && n % p == 0) n /= p;
  return n == 1;
}

template <class T>
Fourier<T>::Fourier(int64_t n, int sign) : n_(n), sign_(static_cast<T>(sign)), radices_(radices_of(n)) {
  for (int64_t k = 0; k < n; ++k) {
    double turns = sign * static_cast<double>(k) / static_cast<double>(n);
    roots_.push_back({static_cast<T>(root_part(turns, false)), static_cast<T>(root_part(turns, true))});
  }
}

// The transform of c[0, radix), in place.
template <class T>
void Fourier<T>::butterfly(int64_t radix, Complex* c) const {
  auto part = [](double turns, bool imaginary) { return static_cast<T>(root_part(turns, imaginary)); };
  Complex c0 = c[0];
  if (radix == 2) {
    c[0] = c0 + c[1];
    c[1] = c0 - c[1];
  } else if (radix == 3) {
    static const T re = part(1.0 / 3, false), im = part(1.0 / 3, true);
    Complex sum = c[1] + c[2], turn = turned(c[1] - c[2]) * (sign_ * im), low = c0 + sum * re;
    c[0] = c0 + sum;
    c[1] = low + turn;
    c[2] = low - turn;
  } else if (radix == 4) {
    Complex even = c0 + c[2], odd = c0 - c[2], sum = c[1] + c[3], turn = turned(c[1] - c[3]) * sign_;
    c[0] = even + sum;
    c[1] = odd + turn;
    c[2] = even - sum;
    c[3] = odd - turn;
  } else {
    static const T re1 = part(0.2, false), im1 = part(0.2, true), re2 = part(0.4, false), im2 = part(0.4, true);
    Complex outer = c[1] + c[4], d1 = c[1] - c[4], inner = c[2] + c[3], d2 = c[2] - c[3];
    c[0] = c0 + outer + inner;
    Complex low1 = c0 + outer * re1 + inner * re2, turn1 = turned(d1 * (sign_ * im1) + d2 * (sign_ * im2));
    Complex low2 = c0 + outer * re2 + inner * re1, turn2 = turned(d1 * (sign_ * im2) - d2 * (sign_ * im1));
    c[1] = low1 + turn1;
    c[4] = low1 - turn1;
    c[2] = low2 + turn2;
    c[3] = low2 - turn2;
  }
}

// One radix: `done` is the product of those before.
template <class T>
void Fourier<T>::pass(int64_t radix, int64_t done, const Complex* from, Complex* to) const {
  int64_t rest = n_ / (done * radix), unit = n_ / radix;
  for (int64_t k = 0; k < done; ++k)
    for (int64_t i = 0; i < rest; ++i) {
      const Complex* in = from + i + rest * radix * k;
      Complex* out = to + i + rest * k;
      auto put = [&](int64_t j, Complex z) { out[rest * done * j] = i > 0 && j > 0 ? times(z, roots_[static_cast<size_t>(i * j * done)]) : z; };
      if (radix <= kMaxFixed) {
        Complex c[kMaxFixed];
        for (int64_t j = 0; j < radix; ++j) c[j] = in[rest * j];
        butterfly(radix, c);
        for (int64_t j = 0; j < radix; ++j) put(j, c[j]);
        continue;
      }
      for (int64_t j = 0; j < radix; ++j) {
        Complex sum = 0;
        for (int64_t m = 0, turn = 0; m < radix; ++m, turn = (turn + j) % radix) sum += times(in[rest * m], roots_[static_cast<size_t>(turn * unit)]);
        put(j, sum);
      }
    }
}

template <class T>
std::complex<T>* Fourier<T>::run(Complex* data, Complex* other) const {
  int64_t done = 1;
  for (int64_t radix : radices_) {
    pass(radix, done, data, other);
    std::swap(data, other);
    done *= radix;
  }
  return data;
}

template class Fourier<float>;
template class Fourier<double>;

}  // namespace ge::kernels::reference
