#include "base/det_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace retro {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Successive parts of the constants, each the double nearest to what the parts before it leave.
constexpr double kLn2[] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
constexpr double kHalfPi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// An unevaluated sum with |lo| <= ulp(hi).
struct Pair {
  double hi;
  double lo;
};

// Knuth's exact sum.
Pair two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

Pair two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

// Nearest integer, ties to even, for |x| < 2^51: the sum leaves no fraction bits.
double round_nearest(double x) {
  constexpr double kShift = 0x1.8p52;
  return (x + kShift) - kShift;
}

// x·2^n for n in [-1100, 1100], in two exact steps but for a subnormal result.
double scale_by_power(double x, int n) {
  const auto power = [](int e) { return std::bit_cast<double>(static_cast<uint64_t>(e + 1023) << 52); };
  const int half = n / 2;
  return x * power(half) * power(n - half);
}

// 1/k! for k from `last` down to `first`: the Taylor series in Horner's form, to be divided out at compile
// time.
template <int kTerms>
struct Series {
  double terms[kTerms];
  constexpr double at(double x) const {
    double sum = terms[kTerms - 1];
    for (int i = kTerms - 2; i >= 0; --i) sum = std::fma(sum, x, terms[i]);
    return sum;
  }
};

constexpr double factorial(int n) {
  double product = 1;
  for (int i = 2; i <= n; ++i) product *= i;
  return product;
}

// (e^r - 1 - r) / r² = 1/2! + r/3! + …; at |r| <= ln2/2 the first term left out is below 2^-60.
constexpr Series<13> exp_series() {
  Series<13> series{};
  for (int i = 0; i < 13; ++i) series.terms[i] = 1 / factorial(i + 2);
  return series;
}

// (sin r - r) / r³ in r².
constexpr Series<8> sin_series() {
  Series<8> series{};
  for (int i = 0; i < 8; ++i) series.terms[i] = (i % 2 == 0 ? -1 : 1) / factorial(2 * i + 3);
  return series;
}

// (cos r - 1 + r²/2) / r⁴ in r².
constexpr Series<8> cos_series() {
  Series<8> series{};
  for (int i = 0; i < 8; ++i) series.terms[i] = (i % 2 == 0 ? 1 : -1) / factorial(2 * i + 4);
  return series;
}

// (2 atanh f - 2f) / f³ in f².
constexpr Series<12> atanh_series() {
  Series<12> series{};
  for (int i = 0; i < 12; ++i) series.terms[i] = 2.0 / (2 * i + 3);
  return series;
}

// e^(x.hi + x.lo) by e^x = 2^n · e^r, |r| <= ln2/2.
double exp_pair(Pair x) {
  if (std::isnan(x.hi)) return x.hi;
  if (x.hi > 710) return kInfinity;
  if (x.hi < -746) return 0;
  static constexpr Series<13> kSeries = exp_series();
  const double n = round_nearest(x.hi * kLog2E);
  const double r = std::fma(-n, kLn2[0], x.hi);  // exact
  const double rest = std::fma(-n, kLn2[1], x.lo);
  const double square = r * r;
  const double series = kSeries.at(r);
  const double minus_one = std::fma(square, series, r);  // e^r - 1
  const double tail = std::fma(square, series, std::fma(minus_one, rest, rest));
  return scale_by_power(1 + (r + tail), static_cast<int>(n));
}

// log x of a positive finite x, to about 2^-63 relative: x = 2^e·m with m in [√½, √2), log m = 2 atanh f with
// f = (m - 1) / (m + 1).
Pair log_pair(double x) {
  static constexpr Series<12> kSeries = atanh_series();
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  uint64_t bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffU) | 0x3ff0000000000000U);
  if (m > 0x1.6a09e667f3bcdp+0) {
    m *= 0.5;
    exponent += 1;
  }
  const double above = m - 1;  // exact
  const Pair below = two_sum(m, 1);
  const double f = above / below.hi;
  const double f_rest = std::fma(-f, below.lo, std::fma(-f, below.hi, above)) / below.hi;
  const double square = f * f;
  const double tail = 2 * f_rest + f * square * kSeries.at(square);
  const Pair scaled = two_product(exponent, kLn2[0]);
  const Pair sum = two_sum(scaled.hi, 2 * f);
  const double rest = sum.lo + (scaled.lo + std::fma(exponent, kLn2[1], tail));
  const double hi = sum.hi + rest;
  return {hi, (sum.hi - hi) + rest};
}

// x - n·π/2 and n mod 4.
struct Reduced {
  Pair angle;
  int quadrant;
};

Reduced reduce(double x) {
  const double n = round_nearest(x * kTwoOverPi);
  const double first = std::fma(-n, kHalfPi[0], x);  // exact: a multiple of 2^-52 below 1, or n is 0
  const Pair second = two_product(n, kHalfPi[1]);
  const Pair difference = two_sum(first, -second.hi);
  const double rest = std::fma(-n, kHalfPi[2], difference.lo - second.lo);
  const double hi = difference.hi + rest;
  return {{hi, (difference.hi - hi) + rest}, static_cast<int>(static_cast<int64_t>(n) & 3)};
}

double sin_kernel(Pair r) {
  static constexpr Series<8> kSeries = sin_series();
  const double square = r.hi * r.hi;
  const double correction = std::fma(-0.5 * square, r.lo, r.lo);
  return r.hi + std::fma(r.hi * square, kSeries.at(square), correction);
}

double cos_kernel(Pair r) {
  static constexpr Series<8> kSeries = cos_series();
  const double square = r.hi * r.hi;
  const double half = 0.5 * square;
  const double head = 1 - half;
  const double tail = std::fma(square * square, kSeries.at(square), -(r.hi * r.lo));
  return head + (((1 - head) - half) + tail);
}

// `quarters` is 0 for sine and 1 for cosine, which is a sine a quarter turn on.
double sin_shifted(double x, int quarters) {
  if (!(x >= -0x1p30 && x <= 0x1p30)) return kNaN;
  const Reduced reduced = reduce(x);
  const int quadrant = (reduced.quadrant + quarters) & 3;
  const double value = quadrant % 2 == 0 ? sin_kernel(reduced.angle) : cos_kernel(reduced.angle);
  return quadrant < 2 ? value : -value;
}

}  // namespace

double det_exp(double x) {
  return exp_pair({x, 0});
}

double det_log(double x) {
  if (std::isnan(x) || x == kInfinity) return x;
  if (x < 0) return kNaN;
  if (x == 0) return -kInfinity;
  return log_pair(x).hi;
}

double det_pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y)) return kNaN;
  double sign = 1;
  if (std::signbit(x)) {
    const bool integral = std::abs(y) >= 0x1p52 || round_nearest(y) == y;
    const bool odd = integral && std::abs(y) < 0x1p53 && (static_cast<int64_t>(y) & 1) != 0;
    if (x != 0 && !integral && x != -kInfinity && std::abs(y) != kInfinity) return kNaN;
    if (odd) sign = -1;
    x = -x;
  }
  if (x == 0 || x == kInfinity) return sign * ((x == 0) == (y > 0) ? 0 : kInfinity);
  if (std::abs(y) == kInfinity) {
    if (x == 1) return 1;
    return (x > 1) == (y > 0) ? kInfinity : 0;
  }
  const Pair logarithm = log_pair(x);
  const Pair product = two_product(y, logarithm.hi);
  if (!(std::abs(product.hi) < 800)) return product.hi > 0 ? sign * kInfinity : sign * 0.0;
  return sign * exp_pair({product.hi, std::fma(y, logarithm.lo, product.lo)});
}

double det_sin(double x) {
  return x == 0 ? x : sin_shifted(x, 0);
}

double det_cos(double x) {
  return sin_shifted(x, 1);
}

}  // namespace retro
