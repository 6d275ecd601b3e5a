// The discrete Fourier transform of a series of any length, and what is quickly had by it.
//
//   X_k = sum over t of x_t exp(-2 pi i k t / n),   k = 0 ... n / 2
//
// By kissfft, a transform of mixed radix (BSD; FFTW's licence, the GPL, cannot be passed on under
// Apache-2.0), and for lengths with a large prime factor by Bluestein's algorithm on it, which
// makes of the sum a convolution ("A linear filtering approach to the computation of discrete
// Fourier transform", IEEE Trans. Audio Electroacoust. 18, 1970): n log n operations for every n.
//
// Thread safety: any thread; each keeps the roots of unity of its last few lengths.
#pragma once

#include <complex>
#include <span>
#include <vector>

namespace sonde::insight {

// Of the values, all of which are finite. None for no values.
std::vector<std::complex<double>> Dft(std::span<const double> values);

// sum over t of x_t x_(t + lag), for every lag from 0 to n - 1.
std::vector<double> LagSums(std::span<const double> values);

}  // namespace sonde::insight
