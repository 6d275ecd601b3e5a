#include "spank/node_launch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "core/text/first_hosts.h"
#include "core/text/port_range.h"
#include "launcher/launch.h"
#include "launcher/proxy_socket.h"
#include "launcher/random.h"
#include "launcher/site/site_policy.h"
#include "spank/describe.h"
#include "spank/job_items.h"
#include "spank/task_environment.h"

namespace sonde::spank {
namespace {

namespace key = launch::key;

constexpr std::string_view kSpecialized = "specialized";  // of daemon_cpus

// GPUs and counters; to learn who is alone takes a while.
bool LooksAtMachine(int level) { return level >= 3; }

void AddRendezvous(const launch::Environment& environment,
                   const std::optional<Rendezvous>& rendezvous, const std::string& solo_key,
                   launch::Writer& message) {
  if (!solo_key.empty()) {
    message.Add(key::kKey, solo_key);
    return;
  }
  message.Add(key::kKey, rendezvous->key);
  message.Add(key::kHeadHost, environment.First("SLURM_SRUN_COMM_HOST"));
  message.Add(key::kHeadPort, rendezvous->port);
}

void AddPorts(const PluginConfig& config, const NodeFacts& facts, launch::Writer& message) {
  const std::optional<PortRange> ports = AllowedPorts(config, facts.slurm.network);
  if (ports) message.Add(key::kPorts, PortRangeText(*ports));
}

void AddNode(spank_t spank, const launch::Environment& environment, int level,
             const NodeFacts& facts, launch::Writer& message) {
  // A batch script has one node, whatever its allocation has; Slurm calls that 0.
  const uint32_t nodes = Item<uint32_t>(spank, S_JOB_NNODES).value_or(0);
  const uint32_t tasks = Item<uint32_t>(spank, S_JOB_TOTAL_TASK_COUNT).value_or(0);
  message.Add(key::kNodes, std::max(nodes, 1u));
  message.Add(key::kTasks, std::max(tasks, 1u));
  message.Add(key::kLocalTasks, Item<uint32_t>(spank, S_JOB_LOCAL_TASK_COUNT).value_or(1));
  message.Add(key::kNodeId, Item<uint32_t>(spank, S_JOB_NODEID).value_or(0));
  const std::string_view job_nodes = environment.First("SLURM_JOB_NUM_NODES", "SLURM_NNODES");
  message.Add(key::kJobNodes, job_nodes.empty() ? std::to_string(nodes) : job_nodes);
  message.Add(key::kHost, facts.name);
  if (nodes > 1) {
    const std::string_view hosts = environment.First("SLURM_STEP_NODELIST");
    if (!hosts.empty()) message.AddIfRoom(key::kHosts, FirstHosts(hosts, launch::kMaxHosts));
  }
  if (const std::string_view at = environment.First("SLURM_TOPOLOGY_ADDR"); !at.empty()) {
    message.Add(key::kTopology, at);
    message.Add(key::kTopologyPattern, environment.First("SLURM_TOPOLOGY_ADDR_PATTERN"));
  }
  message.Add(key::kWorkDir, environment.First("SLURM_SUBMIT_DIR", "PWD"));
  if (const uint64_t memory = MemoryOfStep(spank); memory != 0) {
    message.Add(key::kMemory, std::to_string(memory));
  }
  if (!LooksAtMachine(level)) return;  // GPUs are of no interest
  const std::string_view gpus = launch::StepGpus(environment, facts.alone);
  if (!gpus.empty()) message.Add(key::kGpus, gpus);
}

// JOB.STEP with what stands before the number of the node behind it.
std::string StepAndNode(spank_t spank, uint32_t step, std::string_view before_node) {
  std::string text = std::to_string(Item<uint32_t>(spank, S_JOB_ID).value_or(0));
  text.append(".").append(StepName(step)).append(before_node);
  return text + std::to_string(Item<uint32_t>(spank, S_JOB_NODEID).value_or(0));
}

// Cannot be guessed: a process that knows it may still run as another user; the daemon checks that.
Result<std::string> SocketName(spank_t spank, uid_t uid, uint32_t step) {
  const Result<std::string> random = launch::RandomHex<8>();
  if (!random.ok()) return random.status();
  return "sonde/" + std::to_string(uid) + "/" + StepAndNode(spank, step, ".") + "." + *random;
}

// "" if the step is to have none.
std::string ProxyPath(spank_t spank, uid_t uid, uint32_t step, const PluginConfig& config) {
  const Result<std::string> random = launch::RandomHex<8>();
  if (!config.policy.proxy_socket || !random.ok()) return "";
  return proxy_socket::Path(uid, StepAndNode(spank, step, "-"), *random);
}

launch::Placement PlacementOf(const DaemonSettings& settings, const NodeFacts& facts) {
  launch::Placement placement;
  placement.oom_score = settings.oom_score;
  placement.nice = settings.nice;
  placement.memory = settings.memory;
  placement.processors = launch::ProcessorMask(
      settings.cpus == kSpecialized ? launch::SlurmdProcessors(facts.slurm.node) : settings.cpus);
  return placement;
}

}  // namespace

// By slurmd's own slurm.conf, not one that the job's environment names: root reads it.
NodeFacts LookAtNode(spank_t spank, const PluginConfig& config, int level) {
  NodeFacts facts;
  facts.name = NodeName();
  const bool machine = LooksAtMachine(level);
  if (machine || config.port_range.empty() || config.daemons.cpus == kSpecialized) {
    facts.slurm = launch::ReadSlurmOnNode(launch::Environment(environ), facts.name);
  }
  facts.alone = machine && IsAlone(spank, facts.slurm.node);
  if (machine && !facts.slurm.complete.ok()) {
    slurm_info("sonde: no job counts as alone on this node: %s",
               std::string(facts.slurm.complete.message()).c_str());
  }
  return facts;
}

Status PrepareDaemon(spank_t spank, const PluginConfig& config, const PluginOptions& options,
                     uint32_t step, std::string_view role,
                     const std::optional<Rendezvous>& rendezvous, const NodeFacts& facts,
                     StepDaemon& daemon) {
  Result<launch::Credentials> credentials = JobCredentials(spank);
  if (!credentials.ok()) return credentials.status();
  const Result<std::string> socket = SocketName(spank, credentials->uid, step);
  if (!socket.ok()) return socket.status();
  std::string solo_key;
  if (role == "solo") {
    Result<std::string> random = launch::RandomHex<kKeyDigits / 2>();
    if (!random.ok()) return random.status();
    solo_key = std::move(*random);
  }
  const launch::Environment environment = JobEnvironment(spank);
  const std::string job = std::to_string(Item<uint32_t>(spank, S_JOB_ID).value_or(0));
  launch::Writer message(launch::kLaunch);
  message.Add(key::kRole, role);
  message.Add(key::kUid, credentials->uid);
  message.Add(key::kSocket, *socket);
  AddRendezvous(environment, rendezvous, solo_key, message);
  AddPorts(config, facts, message);
  AddNode(spank, environment, options.level, facts, message);
  // Nothing of a batch script goes over a fabric.
  if (role != "solo") message.Add(key::kVariablesCome, "later");
  AddStep(spank, job, environment, options, config, message);
  SONDE_RETURN_IF_ERROR(message.Complete());

  launch::Process process;
  process.path = config.sonded;
  process.arguments = {"sonded", "--" + std::string(role), job + "." + StepName(step)};
  process.environment = DaemonEnvironment(environment);
  process.application = *socket;
  process.proxy = ProxyPath(spank, credentials->uid, step, config);
  process.placement = PlacementOf(config.daemons, facts);
  SONDE_RETURN_IF_ERROR(daemon.Prepare(
      std::move(process), std::move(*credentials), message.packet(),
      {.given = AllocatedMemory(spank), .allowance = config.daemons.memory_allowance}));
  // Last: it may move the array that `environment` reads.
  ShowDaemon(spank, config, options, *socket);
  return {};
}

}  // namespace sonde::spank
