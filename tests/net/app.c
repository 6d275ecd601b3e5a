/* The application of a node: counts what it is told to, and says when it has.
 *
 * Lines on stdin: "add N" adds N to work_done_total; "level N" sets work_level; "remark TEXT" tells
 * TEXT; "chatter N" begins to set N gauges all the time. Each is answered with "done". Ends with
 * stdin. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libclient/sonde.h"

enum { MOST = 1000 };
static sonde_metric_t* gauges[MOST];
static int count;

static void* chatter(void* unused) {
  for (double value = 0;; value += 1.1) {
    for (int i = 0; i < count; ++i) sonde_set(gauges[i], value * (i + 1));
    usleep(5000);  // its pace: some times in every tick
  }
  return unused;
}

static void begin_chatter(int number) {
  for (count = 0; count < number && count < MOST; ++count) {
    char name[32];
    snprintf(name, sizeof name, "chatter_%d", count);
    gauges[count] = sonde_gauge(name, "1", "Changes all the time", 1, NULL, 0);
  }
  pthread_t thread;
  pthread_create(&thread, NULL, chatter, NULL);
}

int main(void) {
  sonde_metric_t* done = sonde_counter("work_done_total", "1", "Work done", 1, NULL, 0);
  if (done == NULL) {
    fprintf(stderr, "%s\n", sonde_error());
    return 1;
  }
  char line[256];
  setvbuf(stdout, NULL, _IOLBF, 0);
  puts("done");
  while (fgets(line, sizeof line, stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "add ", 4) == 0) sonde_add(done, atof(line + 4));
    if (strncmp(line, "level ", 6) == 0) {
      sonde_set(sonde_gauge("work_level", "1", "Stays as it is", 1, NULL, 0), atof(line + 6));
    }
    if (strncmp(line, "remark ", 7) == 0) sonde_annotate(line + 7);
    if (strncmp(line, "chatter ", 8) == 0) begin_chatter(atoi(line + 8));
    puts("done");
  }
  return 0;
}
