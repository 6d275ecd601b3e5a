// The launch message: how the plugin, or `sonde run`, tells a sonded what to do.
//
// A daemon is started with the lifeline, one end of a SOCK_SEQPACKET socketpair, as descriptor 3
// (kLifelineFd); the head's rendezvous socket, if there is one, is descriptor 4 (kListenFd); the
// socket for applications is descriptor 5 (kApplicationFd), which listens before an application
// starts, as the application may be quicker than the daemon. Nobody but the daemon has it. So does,
// at a path of the file system, descriptor 6 (kProxyFd), for programs that are linked with
// metric-proxy's client library; it may be missing. The daemon removes its file.
// The daemon's parent is not the launcher. It knows the launcher by the lifeline alone: when one
// ends, so does the other. The daemon starts with the signals ignored that a job's processes get
// (TERM, INT, USR1, ...). Nothing secret stands in argv or the environment; argv is `sonded
// --head|--node|--solo JOB.STEP`, for people who look at ps. Packets, launcher to daemon:
//
//   'L' key=value\nkey=value\n...   once, first: the launch message, keys below
//   'T' rank=R\nlocal=L\npid=P\nperf=E,E,...\n
//                                   a task starts. perf has a number for every event of the
//                                   daemon's list, in its order: 0 if it opened, else the errno why
//                                   not. The descriptors of those that opened ride along as
//                                   SCM_RIGHTS, in the same order. No perf: the list was empty or
//                                   not there in time (1 s from the daemon's start)
//   'X' rank=R\nstatus=S\nuser=N\nsystem=N\nmax_rss=B\nminor_faults=C\nmajor_faults=C\n
//       read_bytes=B\nwritten_bytes=B\n
//                                   a task ended: its wait status, and what it and the descendants
//                                   it waited for have used, as wait4() gives it; a key is absent
//                                   if the launcher cannot know the value
//   'M' first=I\nperf=E,E,...\n      the machine's events from the I-th of the daemon's list on, as
//                                   in 'T'; several packets, as events are many. No perf: the step
//                                   may not have them: it shares the node or the site forbids it
//   'V' env=NAME=VALUE\n...         once, from the process of the node's first task before it runs
//                                   its program, if the launch message has variables=later: what
//                                   Slurm's switch plugin has put into the task's environment for
//                                   the fabric's libraries; it may be nothing. The fabric is opened
//                                   after that
//   end of file                     finish: deliver, report, leave
//
// and daemon to launcher:
//
//   'E' count u8, count * PerfEvent, count u8, count * MachineEvent
//                                   which events to open for every task, and once for the machine;
//                                   at level 3 and above, at once when the daemon starts
//   'R' text                        a piece of the closing report, to be printed as it is
//   'D' state=up\nlast=ended\n      the daemon has begun its work, and will say so when it ends.
//                                   last: it will say "ended" when all that it has started is gone
//   'D' state=done\nreason=TEXT\n   it has done its work, except for what the reason says, if any
//   'D' state=failed\nreason=TEXT\n it cannot go on, and why
//   'D' state=ended\n               all that it has started is gone; it leaves now
//   end of file                     it is gone. A daemon that was up and did neither is known to
//                                   have been killed or to have crashed (launcher/last_words.h)
//
// Descriptor 2 of a daemon is a socket to the launcher (launcher/user_socket.h). It tells what the
// daemon cannot: what the dynamic linker, an abort or a fatal signal had to say. The daemon's end
// does not block either.
//
// Perf descriptors count the task, its threads and its children from its exec on. read() gives
// PERF_FORMAT_GROUP with both times: the daemon reads only the first event of a group that opened,
// and gets the values of the group's events that opened, in order.
//
// A machine event counts one device beside the processors, whoever uses it, from its opening on:
// read() gives its value and both times.
//
// No descriptors go from daemon to launcher: the launcher reads nothing from a packet with
// descriptors on (launcher/user_socket.h).
//
// A packet is at most kMaxPacket bytes, a launch message kMaxLaunch. Values hold no newline and no
// zero byte. The reader ignores keys it does not know, so plugin and daemon may differ by a
// release.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/text/options.h"

namespace sonde::launch {

inline constexpr int kLifelineFd = 3;
inline constexpr int kListenFd = 4;
inline constexpr int kApplicationFd = 5;
inline constexpr int kProxyFd = 6;
inline constexpr size_t kMaxPacket = 32768;
// A node's daemon adds to its launch message when it starts an acting head.
inline constexpr size_t kMaxLaunch = kMaxPacket - 1024;
using sonde::kMaxEvents;
inline constexpr size_t kMaxMachineEvents = 64;
// Of key::kHosts, but for a bracket.
inline constexpr size_t kMaxHosts = 8192;

inline constexpr char kLaunch = 'L';
inline constexpr char kTask = 'T';
inline constexpr char kTaskExit = 'X';
inline constexpr char kMachine = 'M';
inline constexpr char kVariables = 'V';
inline constexpr char kEvents = 'E';
inline constexpr char kReport = 'R';
inline constexpr char kDaemonState = 'D';

// The variables of a 'V' packet have names that begin so: those of Slurm's switch/hpe_slingshot, of
// which libfabric's provider cxi learns the network that the job may use.
inline constexpr std::string_view kFabricVariable = "SLINGSHOT_";

// One perf event as the daemon asks for it and the plugin opens it. The plugin accepts only types
// that count the task itself (hardware, software, cache, raw) and sets every other field of
// perf_event_attr on its own: the daemon runs as the user and must not gain by asking root.
//
// The one tracepoint is entries into system calls: PERF_TYPE_TRACEPOINT with kSyscalls. The plugin
// replaces kSyscalls by the kernel's number for the tracepoint, which only root can read.
inline constexpr uint64_t kSyscalls = 0x73797363616c6c73;
struct PerfEvent {
  uint32_t type;
  uint32_t leader;  // 1: starts a group; 0: belongs to the group before
  uint64_t config;
  uint64_t config1;
  uint64_t config2;
};
static_assert(sizeof(PerfEvent) == 32);

// One event of a device that has counters of its own: energy meters, memory controllers. The plugin
// opens it only for devices that it knows to be of these kinds, and only on a processor that the
// device names.
struct MachineEvent {
  char pmu[32];  // as in /sys/bus/event_source/devices, zero-terminated
  uint32_t cpu;
  uint32_t unused;
  uint64_t config;
};
static_assert(sizeof(MachineEvent) == 48);

// Keys of the launch message. Times are decimal nanoseconds.
namespace key {
inline constexpr std::string_view kRole = "role";           // head | node | solo
inline constexpr std::string_view kJob = "job";             // job id; 0 outside Slurm
inline constexpr std::string_view kStep = "step";           // number | batch | interactive | run
inline constexpr std::string_view kArrayJob = "array_job";  // array master, absent if none
inline constexpr std::string_view kArrayTask = "array_task";
inline constexpr std::string_view kHetJob = "het_job";  // het leader's job id, absent if none
inline constexpr std::string_view kCluster = "cluster";
inline constexpr std::string_view kJobName = "job_name";
inline constexpr std::string_view kUser = "user";
inline constexpr std::string_view kUid = "uid";
inline constexpr std::string_view kAccount = "account";
inline constexpr std::string_view kPartition = "partition";
inline constexpr std::string_view kCommand = "command";  // blank-separated, cut at 4096 bytes
inline constexpr std::string_view kWorkDir = "workdir";
inline constexpr std::string_view kHome = "home";
inline constexpr std::string_view kNodes = "nodes";         // of the step (het: of the component)
inline constexpr std::string_view kJobNodes = "job_nodes";  // of the allocation
inline constexpr std::string_view kTasks = "tasks";
inline constexpr std::string_view kLocalTasks = "local_tasks";  // of them on this node
inline constexpr std::string_view kNodeId = "node_id";          // within the step (het: component)
inline constexpr std::string_view kHost = "host";  // this node's name as Slurm calls it
// The step's nodes in the order of their numbers, as Slurm writes them (n[001-003,007]), perhaps
// only the first of them; absent if Slurm does not tell. Large steps need the first ones.
inline constexpr std::string_view kHosts = "hosts";
// Where the node is in the network, as Slurm tells it: SLURM_TOPOLOGY_ADDR and ..._PATTERN; absent
// if Slurm does not tell.
inline constexpr std::string_view kTopology = "topology";
inline constexpr std::string_view kTopologyPattern = "topology_pattern";
inline constexpr std::string_view kLevel = "level";
inline constexpr std::string_view kPeriod = "period";
inline constexpr std::string_view kEventList = "events";  // --telemetry-events, as granted
// The step's GPUs on this node: numbers as Slurm counts them, or UUIDs, separated by commas; absent
// if nobody says which they are.
inline constexpr std::string_view kGpus = "gpus";
// Bytes that Slurm has allocated to the step on this node; absent if it does not allocate memory.
inline constexpr std::string_view kMemory = "memory";
inline constexpr std::string_view kKey = "key";  // 64 hex digits: the step key
inline constexpr std::string_view kHeadHost = "head_host";
inline constexpr std::string_view kHeadPort = "head_port";
// "60000-60100": the ports on which the daemons of this step listen; absent: as sonde.conf says,
// else any.
inline constexpr std::string_view kPorts = "ports";
inline constexpr std::string_view kSocket = "socket";  // abstract name for the application
inline constexpr std::string_view kConfig = "config";  // path of sonde.conf
// Of the terminal on which the head's report is read, in characters; absent: there is none.
inline constexpr std::string_view kColumns = "columns";
inline constexpr std::string_view kArchive = "archive";  // SONDE_ARCHIVE of the user, if set
inline constexpr std::string_view kAlarms = "alarms";    // file of the user's alarm rules
inline constexpr std::string_view kTags = "tags";        // --telemetry-tag: a=1,b=2
// What is to be counted because it was asked for by name, of mpi, io and functions, separated by
// commas; absent: nothing.
inline constexpr std::string_view kCalls = "calls";
// What the launcher has to tell the readers of the profile; a line for each note.
inline constexpr std::string_view kNote = "note";
// NAME=VALUE of the step's environment that its profile keeps; a line for each.
inline constexpr std::string_view kEnvironment = "env";
// "later": a 'V' packet comes; absent: none.
inline constexpr std::string_view kVariablesCome = "variables";
inline constexpr std::string_view kTimeLimit =
    "time_limit";  // of the job, a duration; absent: not known or none
// For a head: when srun asked for the step, ns since the epoch; the head begins its own work a
// little later.
inline constexpr std::string_view kBegun = "begun";
// Only for an acting head, which a node's daemon starts when the head has died: when the step
// began.
inline constexpr std::string_view kStart = "start";
// And what the step's time is ahead of the machine's wall clock, ns, negative if behind.
inline constexpr std::string_view kAhead = "ahead";
// And its node's index in the step, by which the others know it.
inline constexpr std::string_view kPlace = "place";
// And where nodes with lower indexes listen, or did, that stood by to go on: INDEX HOST PORT, with
// commas between.
inline constexpr std::string_view kBefore = "before";
// Of 'D' packets.
inline constexpr std::string_view kState = "state";    // up | done | failed | ended
inline constexpr std::string_view kLast = "last";      // the state that it will tell last
inline constexpr std::string_view kReason = "reason";  // for people
// Of 'T' and 'X' packets.
inline constexpr std::string_view kRank = "rank";    // in the step
inline constexpr std::string_view kLocal = "local";  // on the node
inline constexpr std::string_view kPid = "pid";
inline constexpr std::string_view kPerf = "perf";
inline constexpr std::string_view kFirst = "first";
inline constexpr std::string_view kStatus = "status";      // as wait() gives it
inline constexpr std::string_view kUserTime = "user";      // nanoseconds
inline constexpr std::string_view kSystemTime = "system";  // nanoseconds
inline constexpr std::string_view kMaxRss = "max_rss";     // bytes
inline constexpr std::string_view kMinorFaults = "minor_faults";
inline constexpr std::string_view kMajorFaults = "major_faults";
inline constexpr std::string_view kReadBytes = "read_bytes";        // from storage
inline constexpr std::string_view kWrittenBytes = "written_bytes";  // to storage
}  // namespace key

// Builds a packet of key=value lines. A value is cut at a newline or zero byte; a line that does
// not fit is left out.
class Writer {
 public:
  // In a file of its own, launch.cc, since releases differ in what lines they write: the tests link
  // programs that have another one in its place (tests/next_release/).
  explicit Writer(char kind);
  // A line that the reader needs: if it is left out, the packet is not complete.
  void Add(std::string_view key, std::string_view value) {
    if (!AddIfRoom(key, value)) complete_ = false;
    if (value.size() <= longest_) return;
    longest_ = value.size();
    longest_key_ = key;
  }
  void Add(std::string_view key, long long value) { Add(key, std::to_string(value)); }
  // A line that may be left out: the last ones, lest they take others' room.
  bool AddIfRoom(std::string_view key, std::string_view value) {
    value = value.substr(0, value.find_first_of(std::string_view("\n\0", 2)));
    if (text_.size() + key.size() + value.size() + 2 > most_) return false;
    text_.append(key).append("=").append(value).append("\n");
    return true;
  }
  // An error that names what is too long, if a line that the reader needs was left out.
  Status Complete() const {
    if (complete_) return {};
    return Status(Code::kInvalid, "tell sonded what to do: that takes more than " +
                                      std::to_string(most_) + " bytes, " +
                                      std::to_string(longest_) + " of them for '" + longest_key_ +
                                      "'");
  }
  const std::string& packet() const { return text_; }

 private:
  const size_t most_;
  std::string text_;
  bool complete_ = true;
  size_t longest_ = 0;  // of the values of lines that the reader needs
  std::string longest_key_;
};

// Calls f(key, value) for every line of a packet's body (what follows the kind); lines without '='
// are passed over.
template <typename F>
void ForEach(std::string_view body, F&& f) {
  while (!body.empty()) {
    const size_t eol = body.find('\n');
    const std::string_view line = body.substr(0, eol);
    if (const size_t eq = line.find('='); eq != std::string_view::npos) {
      f(line.substr(0, eq), line.substr(eq + 1));
    }
    if (eol == std::string_view::npos) break;
    body.remove_prefix(eol + 1);
  }
}

}  // namespace sonde::launch
