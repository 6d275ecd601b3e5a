/* The metrics of an application, in as few lines as it takes.
 *
 *   cc -O2 example.c -o example -lsonde
 *   srun --telemetry-level=1 ./example
 *
 * It runs just the same without telemetry: then every metric is NULL and every update does nothing.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "sonde.h"

int main(void) {
  /* A gauge is what is true now. Name, unit and one line for people; the level 0 is the usual. */
  sonde_metric_t* error = sonde_gauge("example_error", "1", "Distance from pi", 0, NULL, 0);

  /* A counter only grows. Tags tell apart what is counted under one name: two series, one for each
   * kind of term. The task's rank is a tag of every series already. */
  const sonde_tag_t positive = {"kind", "positive"}, negative = {"kind", "negative"};
  sonde_metric_t* terms[2] = {
      sonde_counter("example_terms_total", "1", "Terms of the series", 0, &positive, 1),
      sonde_counter("example_terms_total", "1", "Terms of the series", 0, &negative, 1)};

  /* Only for the curious: why a metric is not recorded. The program needs no such test. */
  if (error == NULL) printf("not recorded: %s\n", sonde_strerror(sonde_status()));

  /* pi by Leibniz's series, four seconds long. Updates cost about as much as the arithmetic. */
  const time_t end = time(NULL) + 4;
  double sum = 0;
  for (long n = 0; n % 1000000 != 0 || time(NULL) < end; ++n) {
    sum += (n % 2 == 0 ? 4.0 : -4.0) / (double)(2 * n + 1);
    sonde_add(terms[n % 2], 1);
    sonde_set(error, fabs(sum - acos(-1.0)));
  }
  printf("pi is about %.9f\n", sum);

  /* Nothing has to be closed: what was set is recorded even when the program is killed. */
  return 0;
}
