// The metrics of an application in C++, in as few lines as it takes: pi by Leibniz's series.
//
//   c++ -O2 example.cc -o example -lsonde
//   srun --telemetry-level=1 ./example [BLOCKS]
//
// It runs just the same without telemetry: then every update does nothing.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "sonde.hpp"

constexpr long kBlock = 100000;  // terms

int main(int argc, char** argv) {
  const long blocks = argc > 1 ? std::atol(argv[1]) : 5000;

  // A gauge is a value as it is now; a counter only grows; a histogram tells how values are
  // distributed. Tags tell series of one name apart. The rank is a tag of every series already.
  const sonde::Gauge error("example_error", "1", "Distance from pi");
  const sonde::Counter terms[2] = {
      sonde::Counter("example_terms_total", "1", "Terms of the series", {{"kind", "positive"}}),
      sonde::Counter("example_terms_total", "1", "Terms of the series", {{"kind", "negative"}})};
  const sonde::Histogram correction("example_correction", "1", "What a block adds to the sum");
  const sonde::Histogram block_seconds("example_block_seconds", "seconds", "Time of a block");

  double sum = 0;
  {
    const sonde::ScopedPhase phase("sum");  // a band on every plot
    long n = 0;
    for (long block = 0; block < blocks; ++block) {
      const sonde::ScopedTimer timer(block_seconds);
      const double before = sum;
      for (; n < (block + 1) * kBlock; ++n) {
        sum += (n % 2 == 0 ? 4.0 : -4.0) / static_cast<double>(2 * n + 1);
        terms[n % 2].Add();
      }
      error.Set(std::fabs(sum - std::acos(-1.0)));
      correction.Observe(std::fabs(sum - before));
    }
  }
  sonde::Annotate("the sum is there");
  sonde::Figure("example_pi", sum, "1");  // the run is judged by this number
  std::printf("pi is about %.9f\n", sum);
}
