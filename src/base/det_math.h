// Elementary functions whose bits are the same on every machine: sums, products and std::fma only, all
// correctly rounded by IEEE 754. For rope tables, schedules and the scalar ends of kernels; the C library's
// versions differ from one release and processor to the next.
#pragma once

namespace retro {

/// e^x, within 1e-15 relative; 0 below and infinity above the range of a double.
double det_exp(double x);

/// Natural logarithm, within 1e-15 relative; -infinity at 0, NaN below.
double det_log(double x);

/// x^y, within 1e-15 relative. A negative x needs an integral y (else NaN), as in C.
double det_pow(double x, double y);

/// Sine and cosine of x radians, within 1e-15 relative for |x| <= 2^30, NaN beyond.
double det_sin(double x);
double det_cos(double x);

}  // namespace retro
