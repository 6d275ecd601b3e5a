// What bench/archive.py needs of an archive beside the command `sonde`:
//
//   bench_archive generate DIR N    an archive of N finished profiles, as after `archive compact`
//   bench_archive step DIR JOB      a step of 4 nodes and 10 minutes in live/, finished
//   bench_archive ingest DIR JOB    takes that one in, as its head does
//   bench_archive job N I           the id of the I-th of N profiles
//
// Records are written in the order of their keys, so that LevelDB has nothing to merge and 100,000
// profiles take a minute or two.
#include <fmt/core.h>
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "profiles/archive/ingest_one.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/card.h"
#include "profiles/records/index.h"
#include "profiles/records/keys.h"
#include "profiles/records/stored_bytes.h"
#include "profiles/upkeep/lock.h"
#include "profiles/upkeep/open_db.h"
#include "series/block/block.h"
#include "series/store/reduced.h"

namespace sonde {
namespace {

constexpr size_t kBatch = size_t{1} << 20;
constexpr Nanos kFirst = 1'760'000'000 * kSecond;
constexpr Nanos kYear = 365 * 86400 * kSecond;
constexpr uint32_t kHosts = 512;
constexpr uint32_t kNodes = 4;
constexpr uint32_t kTasks = 64;  // a node
constexpr int kRows = 600;
constexpr int kBlockRows = 128;

bool Good(const Status& status) {
  if (!status.ok())
    std::fprintf(stderr, "bench_archive: %s\n", std::string(status.message()).c_str());
  return status.ok();
}

// Series as the daemon has them at level 2: what a node's footprint has, and more with devices.
std::vector<Series> StepSeries() {
  struct Kind {
    const char* name;
    const char* unit;
    MetricType type;
    const char* tag;
    int values;
  };
  constexpr Kind kKinds[] = {
      {"task_cpu_seconds_total", "seconds", MetricType::kCounter, "mode", 2},
      {"task_resident_memory_bytes", "bytes", MetricType::kGauge, "", 1},
      {"task_resident_memory_peak_bytes", "bytes", MetricType::kGauge, "", 1},
      {"task_read_bytes_total", "bytes", MetricType::kCounter, "", 1},
      {"task_written_bytes_total", "bytes", MetricType::kCounter, "", 1},
      {"node_cpu_seconds_total", "seconds", MetricType::kCounter, "mode", 8},
      {"node_memory_MemTotal_bytes", "bytes", MetricType::kGauge, "", 1},
      {"node_memory_bytes", "bytes", MetricType::kGauge, "field", 30},
      {"node_load1", "1", MetricType::kGauge, "", 1},
      {"node_network_receive_bytes_total", "bytes", MetricType::kCounter, "device", 2},
      {"node_network_transmit_bytes_total", "bytes", MetricType::kCounter, "device", 2},
      {"node_disk_read_bytes_total", "bytes", MetricType::kCounter, "device", 2},
      {"node_disk_written_bytes_total", "bytes", MetricType::kCounter, "device", 2},
      {"node_step_energy_joules_total", "joules", MetricType::kCounter, "", 1},
      {"cgroup_memory_bytes", "bytes", MetricType::kGauge, "field", 8}};
  std::vector<Series> all;
  for (const Kind& kind : kKinds) {
    for (int i = 0; i < kind.values; ++i) {
      Series series;
      series.metric.name = kind.name;
      series.metric.unit = kind.unit;
      series.metric.help = fmt::format("What the node's {} has come to.", kind.name);
      series.metric.type = kind.type;
      if (kind.tag[0] != '\0') series.tags.Set(kind.tag, fmt::format("{}{}", kind.tag, i));
      all.push_back(std::move(series));
    }
  }
  return all;
}

std::string JobId(int i) { return std::to_string(1'000'000 + i); }

// The I-th of N: a year of jobs by 40 users with 200 programs.
JobDescription DescribeJob(int i, int n) {
  std::mt19937_64 random(static_cast<uint64_t>(i));
  const auto any = [&](uint64_t most) { return random() % most; };
  constexpr const char* kPrograms[] = {"lammps/lmp", "gromacs/gmx_mpi",     "vasp/vasp_std",
                                       "python",     "openfoam/simpleFoam", "cp2k/cp2k.psmp",
                                       "namd/namd3", "wrf/wrf.exe"};
  JobDescription job;
  job.cluster = "frost";
  job.id = {JobId(i), "0"};
  const uint64_t program = any(std::size(kPrograms));
  job.name = fmt::format("run-{}-{}", program, any(25));
  job.user = fmt::format("user{:02}", any(40));
  job.account = fmt::format("group{}", any(8));
  job.partition = any(4) == 0 ? "long" : "standard";
  job.command = fmt::format("/opt/{} -in case{:03}.in -threads {}", kPrograms[program], any(200),
                            1 << any(4));
  job.workdir = fmt::format("/scratch/{}/{}", job.user, job.name);
  job.launch_host = "login1";
  job.level = 2;
  job.start = kFirst + static_cast<Nanos>(static_cast<double>(kYear) * i / n);
  job.end = job.start + static_cast<Nanos>(60 + any(7200)) * kSecond;
  const uint64_t luck = any(100);
  job.state = luck < 90   ? EndState::kCompleted
              : luck < 97 ? EndState::kFailed
              : luck < 99 ? EndState::kCancelled
                          : EndState::kOutOfMemory;
  job.expected_nodes = job.job_nodes = kNodes;
  job.expected_tasks = kNodes * kTasks;
  job.coverage = {2400, 2400 - any(3)};
  const uint64_t first = any(kHosts - kNodes);
  for (uint32_t node = 0; node < kNodes; ++node) {
    NodeInfo info;
    info.host = fmt::format("n{:04}", first + node);
    info.job = job.id.job;
    info.node_id = node;
    info.tasks = kTasks;
    info.joined = job.start;
    info.left = job.end;
    job.nodes.push_back(info);
  }
  if (any(10) == 0) job.tags["campaign"] = any(2) == 0 ? "winter" : "summer";
  for (const char* name : {"SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "OMP_NUM_THREADS"}) {
    job.environment[name] = std::to_string(1 + any(64));
  }
  if (any(3) == 0) job.figures.push_back({"speed", "steps/s", 0.1 * any(10000), 5, job.end, 0, 0});
  job.version = "bench";
  return job;
}

Profile MakeProfile(const JobDescription& job, const std::vector<Series>& series) {
  std::mt19937_64 random(static_cast<uint64_t>(job.start));
  Profile profile;
  profile.job = job;
  const double seconds = static_cast<double>(job.end - job.start) / kSecond;
  for (const Series& one : series) {
    FootprintEntry entry;
    entry.series = one;
    entry.ticks = static_cast<uint64_t>(seconds);
    const double value = static_cast<double>(random() % (uint64_t{1} << 36)) / 8;
    entry.last = value;
    entry.mean = value / seconds;
    entry.min = value / 5;
    entry.max = value / 3;
    entry.min_owner = {static_cast<uint32_t>(random() % kNodes), Owner::kNobody};
    entry.max_owner = {static_cast<uint32_t>(random() % kNodes), Owner::kNobody};
    profile.footprint.push_back(std::move(entry));
  }
  profile.cost = {1.5, 2e7, 3e6, 4e4};
  return profile;
}

// Rows of a block: counters that rise, gauges that wander.
std::string MakeRows(const Schema& schema, Nanos start, int rows, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Nanos> times;
  for (int i = 1; i <= rows; ++i) times.push_back(start + i * kSecond);
  std::vector<double> columns;
  for (const Series& series : schema.series()) {
    auto value = static_cast<double>(random() % 1'000'000);
    const bool rises = series.metric.type == MetricType::kCounter;
    for (int i = 0; i < rows; ++i) {
      columns.push_back(value);
      value += rises ? static_cast<double>(random() % 64) : static_cast<double>(random() % 3) - 1;
    }
  }
  std::string bytes;
  BlockEncoder encoder;
  if (!Good(
          encoder.Encode(schema.id(), times, columns.data(), schema.size(), times.size(), bytes))) {
    std::exit(1);
  }
  return bytes;
}

// Writes records that come in the order of their keys.
class Filler {
 public:
  explicit Filler(leveldb::DB& db) : db_(db) {}
  void Put(const std::string& key, const std::string& value) {
    batch_.Put(key, value);
    if (batch_.ApproximateSize() >= kBatch) Flush();
  }
  void Flush() {
    status_ = status_.ok() ? db_.Write({}, &batch_) : status_;
    batch_.Clear();
  }
  const leveldb::Status& status() const { return status_; }

 private:
  leveldb::DB& db_;
  leveldb::WriteBatch batch_;
  leveldb::Status status_;
};

// A short piece of each series, by which reading has something to read.
constexpr int kKeptRows = 32;

void FillProfiles(Filler& filler, int n) {
  const std::vector<Series> series = StepSeries();
  const auto schema = Schema::Make(series);
  const auto reduced = ReducedSchema(series);
  // Blocks of steps that differ only in their times and keys would not: a few are enough.
  constexpr int kVariants = 64;
  std::vector<std::string> blocks;
  for (int i = 0; i < kVariants; ++i) {
    blocks.push_back(
        MakeRows(*schema, DescribeJob(i, n).start, kKeptRows, static_cast<uint64_t>(i)));
  }
  const std::string whole = MakeRows(*reduced, kFirst, kKeptRows, 1);
  for (int i = 0; i < n; ++i) {
    const std::string key = keys::ProfileKey(DescribeJob(i, n));
    for (uint32_t node = 0; node < kNodes; ++node) {
      filler.Put(keys::Block(key, {node, "os", 1}),
                 blocks[(static_cast<size_t>(i) + node) % kVariants]);
    }
    filler.Put(keys::Block(key, {kReducedNode, "os", 1}), whole);
  }
  for (int i = 0; i < n; ++i) {
    const JobDescription job = DescribeJob(i, n);
    filler.Put(keys::Description(keys::ProfileKey(job)), DescriptionToJson(job));
  }
  std::vector<std::string> entries;
  for (int i = 0; i < n; ++i) {
    const std::vector<std::string> of_one = IndexKeys(DescribeJob(i, n));
    entries.insert(entries.end(), of_one.begin(), of_one.end());
  }
  std::sort(entries.begin(), entries.end());
  for (const std::string& entry : entries) filler.Put(entry, "");
  for (int i = 0; i < n; ++i) {
    filler.Put(keys::BlockCount(keys::ProfileKey(DescribeJob(i, n))), std::to_string(kNodes + 1));
  }
  std::vector<std::string> cards;
  for (int i = 0; i < n; ++i) {
    const Profile profile = MakeProfile(DescribeJob(i, n), series);
    const std::string json = ProfileToJson(profile);
    filler.Put(keys::Profile(keys::ProfileKey(profile.job)), json);
    cards.push_back(MakeCard(profile, json.size()));
  }
  for (int i = 0; i < n; ++i) {
    const Profile profile = MakeProfile(DescribeJob(i, n), series);
    filler.Put(keys::Part(keys::ProfileKey(profile.job), "head login1 1 1"),
               ProfileToJson(profile));
  }
  std::vector<const Schema*> schemas = {schema.get(), reduced.get()};
  std::sort(schemas.begin(), schemas.end(),
            [](const Schema* a, const Schema* b) { return a->id() < b->id(); });
  for (const Schema* one : schemas)
    filler.Put(keys::Schema(one->id()), std::string(one->encoded()));
  for (int i = n; i-- > 0;)
    filler.Put(keys::ByTime(DescribeJob(i, n)), cards[static_cast<size_t>(i)]);
}

int Generate(const std::string& root, int n) {
  const ArchivePaths paths(root);
  if (!Good(PrepareArchive(paths))) return 1;
  const auto lock = ArchiveLock::Acquire(paths, 0);
  if (!Good(lock.status())) return 1;
  auto db = OpenDb(paths);
  if (!Good(db.status())) return 1;
  Filler filler(**db);
  filler.Put(std::string(keys::kFormatKey), std::string(keys::kFormat));
  FillProfiles(filler, n);
  filler.Flush();
  if (!Good(FromLevelDb(filler.status(), "fill the archive"))) return 1;
  // The totals, as an archive that gets its indexes makes them.
  (*db)->Delete({}, std::string(keys::kIndexedKey));
  const auto complete = BuildIndexes(**db, kYear, nullptr);
  if (!Good(complete.status())) return 1;
  (*db)->CompactRange(nullptr, nullptr);
  return 0;
}

JobDescription StepOf(const std::string& id) {
  JobDescription job = DescribeJob(7, 10);
  job.id.job = id;
  job.start = Clock::System().Now();
  job.end = 0;
  job.state = EndState::kRunning;
  return job;
}

int Step(const std::string& root, const std::string& id) {
  JobDescription job = StepOf(id);
  auto live = LiveArchive::Create(root, job);
  if (!Good(live.status())) return 1;
  const std::vector<Series> series = StepSeries();
  const auto schema = Schema::Make(series);
  const auto reduced = ReducedSchema(series);
  for (int row = 0; row < kRows; row += kBlockRows) {
    const int rows = std::min(kBlockRows, kRows - row);
    const auto sequence = static_cast<uint64_t>(row / kBlockRows + 1);
    const Nanos at = job.start + row * kSecond;
    for (uint32_t node = 0; node < kNodes; ++node) {
      const std::string block = MakeRows(*schema, at, rows, sequence * kNodes + node);
      if (!Good((*live)->PutBlock({node, "os", sequence}, *schema, block))) return 1;
    }
    const std::string block = MakeRows(*reduced, at, rows, sequence);
    if (!Good((*live)->PutBlock({kReducedNode, "os", sequence}, *reduced, block))) return 1;
  }
  job.state = EndState::kCompleted;
  job.end = job.start + kRows * kSecond;
  Profile profile = MakeProfile(job, series);
  profile.cost.stored_bytes = StoredBytes((*live)->content_bytes(), profile);
  return Good((*live)->PutProfile(profile)) && Good((*live)->Finish()) ? 0 : 1;
}

int Ingest(const std::string& root, const std::string& id) {
  for (const std::string& name : NamesIn(ArchivePaths(root).live())) {
    const auto known = keys::DescribeKey(keys::KeyOfName(name));
    if (!known || known->id.job != id) continue;
    const Status status = IngestLive(root, ArchivePaths(root).live() + "/" + name, 0);
    // Locked is no failure: whoever opens the archive next ingests it.
    return status.code() == Code::kBusy || Good(status) ? 0 : 1;
  }
  std::fprintf(stderr, "bench_archive: %s is not in live/\n", id.c_str());
  return 1;
}

int Main(const std::vector<std::string>& words) {
  if (words.size() != 3) {
    std::fprintf(stderr,
                 "bench_archive: expected generate DIR N, step DIR JOB, ingest DIR JOB or "
                 "job N I\n");
    return 2;
  }
  if (words[0] == "generate") return Generate(words[1], std::atoi(words[2].c_str()));
  if (words[0] == "step") return Step(words[1], words[2]);
  if (words[0] == "ingest") return Ingest(words[1], words[2]);
  std::printf("%s\n", JobId(std::atoi(words[2].c_str())).c_str());
  return 0;
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) { return sonde::Main({argv + 1, argv + argc}); }
