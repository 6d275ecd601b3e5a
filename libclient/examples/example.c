/* The metrics of an application, in as few lines as it takes: pi by Leibniz's series.
 *
 *   cc -O2 example.c -o example -lsonde -lm
 *   srun --telemetry-level=1 ./example [BLOCKS]
 *
 * It runs just the same without telemetry: then every metric is NULL and every update does nothing.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sonde.h"

enum { BLOCK = 100000 }; /* terms */

int main(int argc, char** argv) {
  const long blocks = argc > 1 ? atol(argv[1]) : 5000;

  /* A gauge is what is true now. Name, unit and one line for people; the level 0 is the usual. */
  sonde_metric_t* error = sonde_gauge("example_error", "1", "Distance from pi", 0, NULL, 0);

  /* A counter only grows. Tags tell apart what is counted under one name: two series, one for each
   * kind of term. The task's rank is a tag of every series already. */
  const sonde_tag_t positive = {"kind", "positive"}, negative = {"kind", "negative"};
  sonde_metric_t* terms[2] = {
      sonde_counter("example_terms_total", "1", "Terms of the series", 0, &positive, 1),
      sonde_counter("example_terms_total", "1", "Terms of the series", 0, &negative, 1)};

  /* A histogram is how values are distributed. */
  sonde_metric_t* correction =
      sonde_histogram("example_correction", "1", "What a block adds to the sum", 0, NULL, 0);

  /* Only for the curious: why a metric is not recorded. The program needs no such test. */
  if (error == NULL) printf("not recorded: %s\n", sonde_strerror(sonde_status()));

  /* Shown as a band on every plot. Updates cost about as much as the arithmetic. */
  sonde_phase_begin("sum");
  double sum = 0;
  long n = 0;
  for (long block = 0; block < blocks; ++block) {
    const double before = sum;
    for (; n < (block + 1) * BLOCK; ++n) {
      sum += (n % 2 == 0 ? 4.0 : -4.0) / (double)(2 * n + 1);
      sonde_add(terms[n % 2], 1);
    }
    sonde_set(error, fabs(sum - acos(-1.0)));
    sonde_observe(correction, fabs(sum - before));
  }
  sonde_phase_end("sum");
  sonde_annotate("the sum is there");

  /* What the run is judged by, in the report and in comparisons. */
  sonde_figure("example_pi", sum, "1");
  printf("pi is about %.9f\n", sum);

  /* Nothing has to be closed: what was set is recorded even when the program is killed. */
  return 0;
}
