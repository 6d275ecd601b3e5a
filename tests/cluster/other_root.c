// A SPANK plugin that gives a task another root, as plugins for containers do: one in which a
// directory is empty. Argument: hide=DIR. It does so for steps with HIDE in their environment;
// those with IN_CONTAINER it has named as Slurm names the containers that it makes itself.
#define _GNU_SOURCE
#include <sched.h>
#include <slurm/spank.h>
#include <string.h>
#include <sys/mount.h>

SPANK_PLUGIN(sonde_other_root, 1)

static int Has(spank_t spank, const char* name) {
  char value[8];
  return spank_getenv(spank, name, value, sizeof(value)) == ESPANK_SUCCESS;
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char** argv) {
  (void)argc, (void)argv;
  if (spank_context() == S_CTX_REMOTE && Has(spank, "IN_CONTAINER")) {
    spank_setenv(spank, "SLURM_CONTAINER", "/bundle", 1);
  }
  return 0;
}

int slurm_spank_task_init_privileged(spank_t spank, int argc, char** argv) {
  if (argc != 1 || strncmp(argv[0], "hide=", 5) != 0 || !Has(spank, "HIDE")) return 0;
  if (unshare(CLONE_NEWNS) != 0) return -1;
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
  return mount("none", argv[0] + 5, "tmpfs", 0, NULL);
}
