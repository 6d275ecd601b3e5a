/* Tells phases, remarks, figures of merit and histograms whose values the test knows.
 *
 * moments MODE STEPS [GATE]: every rank begins "setup", ends it, and goes through STEPS phases
 * "step" of 0.2 s with one observation of 1 to STEPS in "step_size" and ten in "wait_seconds" each.
 * In mode "whole" it ends then. In mode "gate" it goes on until there is a file GATE.HOST, and
 * prints how many steps it made. In mode "wait" it says "waiting" within a phase "wait" until it is
 * killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libclient/sonde.h"

int main(int argc, char** argv) {
  const int wait = argc > 1 && strcmp(argv[1], "wait") == 0;
  const int steps = argc > 2 ? atoi(argv[2]) : 1;
  char gate[4096] = "";
  if (argc > 3) snprintf(gate, sizeof(gate), "%s.%s", argv[3], getenv("SLURMD_NODENAME"));
  const int rank = atoi(getenv("SLURM_PROCID"));
  const sonde_tag_t recv = {"call", "recv"};
  sonde_metric_t* size = sonde_histogram("step_size", "1", "Size of a step", 1, NULL, 0);
  sonde_metric_t* waited = sonde_histogram("wait_seconds", "seconds", "Waits", 1, &recv, 1);
  sonde_phase_begin("setup");
  sonde_annotate("mesh read");
  if (rank == 2) sonde_annotate("rank two is special");
  usleep(300000);
  sonde_phase_end("setup");
  int step = 0;
  while (step < steps || (gate[0] != 0 && access(gate, F_OK) != 0)) {
    ++step;
    sonde_phase_begin("step");
    sonde_observe(size, step);
    for (int i = 0; i < 10; ++i) sonde_observe(waited, 0.125 * (rank + 1));
    usleep(200000);
    sonde_phase_end("step");
    usleep(200000);
  }
  sonde_figure("speed", 100 + rank, "steps/s");
  if (rank == 0) sonde_figure("residual", 1.25e-7, "1");
  if (wait) {
    sonde_phase_begin("wait");
    sonde_annotate("waiting");
    printf("waiting\n");
    fflush(stdout);
    while (1) pause();
  }
  if (gate[0] != 0) printf("%d\n", step);
  return 0;
}
