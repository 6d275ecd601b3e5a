// A SPANK plugin that does for the tasks of a step what Slurm's switch/hpe_slingshot does: it puts
// variables into the environment of each task, in the task's own process, when the daemon of the
// node has been started, and before the callbacks of plugins that run as the user. For steps with
// SLINGSHOT in their environment, whose value becomes the network's number.
#include <slurm/spank.h>
#include <unistd.h>

SPANK_PLUGIN(sonde_slingshot_switch, 1)

int slurm_spank_task_init_privileged(spank_t spank, int argc, char** argv) {
  (void)argc, (void)argv;
  char network[64];
  if (spank_getenv(spank, "SLINGSHOT", network, sizeof(network)) != ESPANK_SUCCESS) return 0;
  // Longer than a daemon that did not wait would need to open its fabric.
  usleep(500 * 1000);
  spank_setenv(spank, "SLINGSHOT_VNIS", network, 1);
  spank_setenv(spank, "SLINGSHOT_DEVICES", "cxi0,cxi1", 1);
  spank_setenv(spank, "SLINGSHOT_SVC_IDS", "5,6", 1);
  spank_setenv(spank, "SLINGSHOT_TCS", "0xf", 1);
  spank_setenv(spank, "SLINGSHOTS_OF_OTHERS", "1", 1);
  return 0;
}
