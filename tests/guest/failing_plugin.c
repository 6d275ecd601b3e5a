// A SPANK plugin that fails, in slurmstepd, in the callback that a file names: as another plugin of
// a site may. Argument: file=PATH; its content is the callback's name, or nothing.
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>

SPANK_PLUGIN(sonde_failing, 1)

static int Fails(int argc, char** argv, const char* callback) {
  char name[64] = "";
  FILE* file = argc > 0 && strncmp(argv[0], "file=", 5) == 0 ? fopen(argv[0] + 5, "r") : NULL;
  if (file == NULL) return 0;
  if (fgets(name, sizeof(name), file) == NULL) name[0] = '\0';
  fclose(file);
  name[strcspn(name, "\n")] = '\0';
  return spank_context() == S_CTX_REMOTE && strcmp(name, callback) == 0 ? -1 : 0;
}

#define CALLBACK(name)                                       \
  int slurm_spank_##name(spank_t spank, int ac, char** av) { \
    (void)spank;                                             \
    return Fails(ac, av, #name);                             \
  }

CALLBACK(init_post_opt)
CALLBACK(user_init)
CALLBACK(task_init_privileged)
CALLBACK(task_init)
CALLBACK(task_post_fork)
CALLBACK(task_exit)
