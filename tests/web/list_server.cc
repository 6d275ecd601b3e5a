// An archive of made steps behind the server of `sonde serve`, for the test of the list in a
// browser.
//
//   list_server DIR [N]    an archive of N steps (312) in DIR, which must be empty, one of them
//   running
//
// Prints its address with the token and ends when its standard input does. There 'n' begins another
// step, and 'e' ends the one that began last.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/time.h"
#include "profiles/live/live_archive.h"
#include "tests/web/archive_server.h"

namespace {

using namespace sonde;
using web::Need;

constexpr double kMiB = 1024 * 1024;

struct Kind {
  const char* name;
  const char* command;
};
// The job's name is often only that of the interpreter.
constexpr Kind kKinds[] = {
    {"python3", "/usr/bin/python3 -u -X dev /home/ada/src/train.py --epochs 30 --batch 64"},
    {"lmp", "/opt/lammps/bin/lmp -in melt.in -var steps 100000"},
    {"cavity", "./cavity --grid 512"},
    {"bash", "bash -e run_all.sh night"},
    {"resnet50", "python3 -m torch.distributed.run --nproc-per-node 4 resnet.py"},
    {"gmx", "gmx mdrun -deffnm topol"}};
constexpr EndState kStates[] = {EndState::kCompleted, EndState::kCompleted, EndState::kCompleted,
                                EndState::kFailed,    EndState::kCompleted, EndState::kOutOfMemory,
                                EndState::kCompleted, EndState::kTimeout,   EndState::kCompleted,
                                EndState::kCancelled, EndState::kNodeFail,  EndState::kLost,
                                EndState::kPreempted};

// Numbers without a pattern that is easily seen, the same in each run.
uint64_t Mixed(uint64_t i) {
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ULL;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebULL;
  return i ^ (i >> 31);
}

FootprintEntry Entry(const char* name, const char* unit, MetricType type, double last, Tags tags) {
  FootprintEntry entry;
  entry.series.metric.name = name;
  entry.series.metric.unit = unit;
  entry.series.metric.type = type;
  entry.series.metric.reduction = Reduction::kSum;
  entry.series.tags = std::move(tags);
  entry.ticks = 10;
  entry.last = entry.mean = entry.max = last;
  return entry;
}

// The i-th step, which began i * 37 minutes before `now`.
Profile StepOf(uint64_t i, Nanos now, bool runs) {
  const uint64_t r = Mixed(i + 1);
  const Kind& kind = kKinds[r % std::size(kKinds)];
  Profile profile;
  JobDescription& job = profile.job;
  job.cluster = "lab";
  job.id = {std::to_string(8000 - i), "0"};
  job.name = kind.name;
  job.command = kind.command;
  job.user = r % 3 == 0 ? "grace" : "ada";
  job.account = "physics";
  job.partition = r % 5 == 0 ? "gpu" : "batch";
  job.level = static_cast<int>(1 + r % 4);
  job.expected_nodes = static_cast<uint32_t>(1 + r / 7 % 8);
  job.expected_tasks = job.expected_nodes * 4;
  job.start = now - static_cast<Nanos>(i) * 37 * 60 * kSecond - 90 * kSecond;
  const auto seconds = static_cast<double>(5 + r / 11 % 1800);
  for (uint32_t n = 0; n < job.expected_nodes; ++n) {
    NodeInfo node;
    node.host = "node" + std::to_string(r / 13 % 40 + n);
    node.tasks = 4;
    node.joined = job.start;
    job.nodes.push_back(node);
  }
  job.coverage = {1000, i % 9 == 4 ? 900u : 1000u, 0};
  if (!runs) {
    job.state = kStates[r / 17 % std::size(kStates)];
    job.end = job.start + static_cast<Nanos>(seconds * static_cast<double>(kSecond));
  }
  if (r % 4 == 0) job.tags["campaign"] = r % 8 == 0 ? "winter" : "summer";
  if (r % 10 == 0) job.tags["keep"] = "";
  if (r % 6 == 2)
    job.figures.push_back(
        {"cell_updates", "Mcells/s", 100.0 + static_cast<double>(r % 1000) / 7, 1});
  const double used = seconds * job.expected_tasks * (0.05 + static_cast<double>(r % 90) / 100);
  profile.footprint.push_back(Entry("task_cpu_seconds_total", "seconds", MetricType::kCounter,
                                    used * 0.9, {{"mode", "user"}}));
  profile.footprint.push_back(Entry("task_cpu_seconds_total", "seconds", MetricType::kCounter,
                                    used * 0.1, {{"mode", "system"}}));
  // A few measured no memory.
  if (r % 12 != 5) {
    const double peak = static_cast<double>(r % 60'000) * kMiB / 10;
    profile.footprint.push_back(
        Entry("task_resident_memory_peak_bytes", "bytes", MetricType::kGauge, peak, {}));
    profile.footprint.push_back(
        Entry("node_memory_MemTotal_bytes", "bytes", MetricType::kGauge, 16384 * kMiB, {}));
  }
  return profile;
}

class Steps {
 public:
  explicit Steps(std::string root) : root_(std::move(root)) {}
  void Record(const Profile& profile) { Need(Begun(profile)->Finish()); }
  void Begin(const Profile& profile) {
    running_.push_back(Begun(profile));
    profiles_.push_back(profile);
  }
  void EndLast() {
    if (running_.empty()) return;
    Profile& profile = profiles_.back();
    profile.job.state = EndState::kCompleted;
    profile.job.end = Clock::System().Now();
    Need(running_.back()->PutProfile(profile));
    Need(running_.back()->Finish());
    running_.pop_back();
    profiles_.pop_back();
  }

 private:
  std::unique_ptr<LiveArchive> Begun(const Profile& profile) const {
    auto live = Need(LiveArchive::Create(root_, profile.job));
    Need(live->PutProfile(profile));
    return live;
  }

  const std::string root_;
  std::vector<std::unique_ptr<LiveArchive>> running_;
  std::vector<Profile> profiles_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "list_server DIR [N]: expected an empty directory\n");
    return 2;
  }
  const std::string root = argv[1];
  const uint64_t count = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 312;
  const Nanos now = Clock::System().Now();
  Steps steps(root);
  for (uint64_t i = 1; i < count; ++i) steps.Record(StepOf(i, now, false));
  steps.Begin(StepOf(0, now, true));
  uint64_t more = 100'000;
  web::ServeArchive(root, [&](char c) {
    if (c == 'n') {
      Profile profile = StepOf(0, Clock::System().Now(), true);
      profile.job.id.job = std::to_string(more++);
      profile.job.start += 60 * kSecond;
      steps.Begin(profile);
    }
    if (c == 'e') steps.EndLast();
    std::printf("done\n");
    std::fflush(stdout);
  });
  return 0;
}
