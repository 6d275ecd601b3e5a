// Which data of a node a step may have: what the administrator allows, and what a step may learn of
// a node that it shares with others.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/text/daemon_settings.h"
#include "launcher/environment.h"
#include "launcher/site/slurm_node.h"

namespace sonde::launch {

struct SitePolicy {
  // machine_counters= in plugstack.conf: whether a step may read the node's energy and memory
  // traffic, and count all entries into system calls. These counters cover everybody on the node,
  // and finely resolved energy reveals what others compute (CVE-2020-8694). kExclusive: only a step
  // that has the node to itself may.
  enum class Machine : unsigned char { kExclusive, kAlways, kNever };
  Machine machine_counters = Machine::kExclusive;
  // Of sonde.conf; see core/config.h.
  bool monitor_steps = true;
  bool monitor_batch = true;
  bool monitor_interactive = false;
  bool proxy_socket = true;
};

// Whether slurmstepd, which is root, opens perf events of the step's tasks. kNever forbids the
// machine's events too (MayCountMachine).
bool MayOpenEvents(DaemonSettings::PerfEvents choice, int perf_event_paranoid);

enum class StepKind : unsigned char { kBatch, kInteractive, kOther };
// The role of a step's daemon, a value of the launch message's key role; "": there is no daemon.
// `has_head`: srun offered a rendezvous. Without one there is no head: srun could not start one, or
// lacks the plugin.
std::string_view RoleOf(StepKind step, int level, const SitePolicy& policy, bool has_head);

// Whether a job has a node to itself: whether Slurm gave it there all cores that it gives to jobs,
// or as many cores, or the step as many CPUs, as processors are online. `cores` is
// S_JOB_ALLOC_CORES, `cpus` S_JOB_NCPUS, both from the credential that slurmctld signed; the
// environment is the user's to write. Slurm gives a core to one job, so hardware threads that a
// step leaves idle belong to nobody else. Where it gives a core to several, or that is not known,
// nobody is alone.
bool HasNodeAlone(std::string_view cores, uint32_t cpus, long processors_online,
                  const SlurmNode& node);
// How many numbers a list such as "0-3,8" names; 0 if the text is no list.
long CountListed(std::string_view list);
// Whether a step may have the machine's counters. No perf_event_paranoid matters: users never have
// these by themselves.
bool MayCountMachine(SitePolicy::Machine choice, DaemonSettings::PerfEvents events, bool alone);

// Which GPUs of the node are the step's, by its environment, for the launch message's key gpus; ""
// if nothing says which. Points into the environment. `alone`: nobody else is on the node.
//
// slurmstepd puts SLURM_STEP_GPUS (of a step) or SLURM_JOB_GPUS (of a batch script or an
// interactive step) into it before any plugin runs, with the node's own numbers: positions among
// the GPUs of gres.conf, which are those on the PCI bus. A step without GPUs, in a job that has
// some, has its script's SLURM_JOB_GPUS.
//
// A step to which Slurm gives no GPUs has none or, where Slurm does not manage GPUs, all. Only a
// step that has its node alone may look at them, as otherwise they may be another job's.
//
// MIG instances are numbered as if each were a device, so there their UUIDs count. Without Slurm's
// variables, it is what the vendors' libraries would let the program see.
std::string_view StepGpus(const Environment& environment, bool alone);

}  // namespace sonde::launch
