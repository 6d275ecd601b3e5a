/* The application of a node: counts what it is told to, and says when it has.
 *
 * Lines on stdin: "add N" adds N to work_done_total; "remark TEXT" tells TEXT. Each is answered
 * with "done". Ends with stdin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libclient/sonde.h"

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
    if (strncmp(line, "remark ", 7) == 0) sonde_annotate(line + 7);
    puts("done");
  }
  return 0;
}
