// A provider of libfabric's that provides nothing: when libfabric is loaded into a process it adds
// a line to the file of FI_SHOW_ENVIRONMENT, the process's command and what it finds of Slingshot's
// variables then, which is what the provider cxi would find.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char** environ;

void* fi_prov_ini(void);
void* fi_prov_ini(void) {
  const char* name = getenv("FI_SHOW_ENVIRONMENT");
  FILE* file = name != NULL ? fopen(name, "a") : NULL;
  if (file == NULL) return NULL;
  char line[4096] = {0};
  FILE* command = fopen("/proc/self/cmdline", "r");
  if (command != NULL) {
    size_t size = fread(line, 1, sizeof(line) - 1, command);
    for (size_t i = 0; i + 1 < size; ++i) {
      if (line[i] == '\0') line[i] = ' ';
    }
    fclose(command);
  }
  for (char** at = environ; *at != NULL; ++at) {
    if (strncmp(*at, "SLINGSHOT", 9) != 0) continue;
    strncat(line, " ", sizeof(line) - strlen(line) - 1);
    strncat(line, *at, sizeof(line) - strlen(line) - 1);
  }
  fprintf(file, "%s\n", line);
  fclose(file);
  return NULL;
}
