/* Numbers for panels: gauges that rise and fall, stop for a while, are huge and tiny, counters, and
 * names that have to be escaped. Ends when the file that is its argument is there.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "libclient/sonde.h"

static sonde_metric_t* gauge(const char* name, const char* key, const char* value) {
  const sonde_tag_t tag = {key, value};
  return sonde_gauge(name, "1", "For a panel", 1, &tag, 1);
}

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  const int rank = atoi(getenv("SLURM_PROCID"));
  const double values[] = {DBL_MIN, 4.9e-324, -1e-7, 9007199254740993.0, 1e21, -DBL_MAX};
  const char* texts[] = {"a b", "<\"|\\>&", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\x8c",
                         "A",   "{x=*}",    "%20+"};
  for (int i = 0; i < 6; ++i) sonde_set(gauge("panel_odd", "text", texts[i]), values[i]);
  sonde_set(gauge("panel_huge", "of", "all"), 1e308);
  sonde_metric_t* saw = gauge("panel_saw", "Side", rank % 2 ? "Left" : "right");
  sonde_metric_t* gaps = gauge("panel_gaps", "of", "all");
  sonde_metric_t* parts = sonde_counter("panel_parts_total", "1", "Parts", 1, NULL, 0);
  int64_t turn = -1;
  char name[16];
  for (int64_t i = 0; access(argv[1], F_OK) != 0; ++i) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t tenths = (int64_t)now.tv_sec * 10 + now.tv_nsec / 100000000;
    sonde_set(saw, (double)(tenths % 7) * (rank + 1) + 0.1);
    if (tenths / 20 != turn) {
      if (turn >= 0) sonde_phase_end(name);
      turn = tenths / 20;
      snprintf(name, sizeof name, "turn %d", (int)(turn % 100));
      sonde_phase_begin(name);
    }
    /* Two seconds with values, two without. */
    sonde_set(gaps, tenths / 20 % 2 ? NAN : (double)(tenths % 20) / 3);
    sonde_add(parts, rank + 1);
    usleep(50000);
  }
  sonde_phase_end(name);
  return 0;
}
