// What a process of the campaign does with an archive, and what it was told (campaign.py).
//
//   archive_actor write ARCHIVE JOB START BLOCKS HOW   a head: writes a step and, with HOW end,
//   ends
//                                                it and has the archive take it in; HOW leave: it
//                                                goes away in the middle
//   archive_actor check ARCHIVE [SECONDS]        opens the archive as the next program would and
//                                                says what is there
//
// Each line on stdout is written when the product has said so: "made KEY", "block KEY NUMBER",
// "finished KEY", "stored KEY". Of check: "profile KEY STATE BLOCKS TAGS live|db", "damaged KEY
// WHY", "problem WHAT", "note TEXT", "checked".
//
// Block n of a step has kRows rows, whose values come from the job's number and the time: a row
// that is there with another value is damaged.
#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "profiles/archive/ingest_one.h"
#include "profiles/archive/open_archive.h"
#include "profiles/live/live_archive.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/verify.h"
#include "series/block/block.h"

namespace sonde {
namespace {

constexpr int kRows = 8;
constexpr int kTries = 6;
constexpr const char* kShown = "campaign_value";

void Say(const std::string& line) {
  const std::string text = line + "\n";
  static_cast<void>(::write(STDOUT_FILENO, text.data(), text.size()));
}

JobDescription JobOf(const std::string& job, Nanos start) {
  JobDescription d;
  d.cluster = "faults";
  d.id = {job, "0"};
  d.name = "campaign";
  d.user = "ada";
  d.expected_nodes = 1;
  d.expected_tasks = 1;
  d.level = 1;
  d.start = start;
  NodeInfo node;
  node.host = "n1";
  node.tasks = 1;
  node.joined = start;
  d.nodes.push_back(node);
  return d;
}

double ValueAt(const std::string& job, int tick) {
  return std::fmod(std::strtod(job.c_str(), nullptr) * 7919 + tick * 104'729.0, 1e6);
}

Status PutBlock(LiveArchive& live, const JobDescription& job, int block) {
  Series series;
  series.metric.name = kShown;
  series.metric.type = MetricType::kGauge;
  series.metric.unit = "bytes";
  const auto schema = Schema::Make(std::vector<Series>{series});
  std::vector<Nanos> times;
  std::vector<double> values;
  for (int i = 1; i <= kRows; ++i) {
    const int tick = block * kRows + i;
    times.push_back(job.start + tick * kSecond);
    values.push_back(ValueAt(job.id.job, tick));
  }
  std::string bytes;
  BlockEncoder encoder;
  SONDE_RETURN_IF_ERROR(
      encoder.Encode(schema->id(), times, values.data(), schema->size(), times.size(), bytes));
  return live.PutBlock({0, "os", static_cast<uint64_t>(block + 1)}, *schema, bytes);
}

// As a head does, which tries for as long as its step runs.
bool Insist(const std::function<Status()>& f) {
  for (int i = 0; i < kTries; ++i) {
    const Status status = f();
    if (status.ok()) return true;
    fmt::print(stderr, "{}\n", status.message());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

int Write(const std::string& root, const std::string& number, Nanos start, int blocks, bool ends) {
  const JobDescription job = JobOf(number, start);
  const std::string key = keys::ProfileKey(job);
  std::unique_ptr<LiveArchive> live;
  const bool made = Insist([&] {
    auto created = LiveArchive::Create(root, job);
    if (created.ok()) live = *std::move(created);
    return created.status();
  });
  if (!made) return 1;
  Say("made " + key);
  for (int block = 0; block < blocks; ++block) {
    if (!Insist([&] { return PutBlock(*live, job, block); })) return 1;
    Say(fmt::format("block {} {}", key, block + 1));
  }
  if (!ends) return 0;
  Profile profile;
  profile.job = job;
  profile.job.state = EndState::kCompleted;
  profile.job.end = start + blocks * kRows * kSecond;
  const bool finished = Insist([&]() -> Status {
    SONDE_RETURN_IF_ERROR(live->PutProfile(profile));
    return live->Finish();
  });
  if (!finished) return 1;
  Say("finished " + key);
  const std::string path = live->path();
  live.reset();
  if (const Status taken = IngestLive(root, path, 0); taken.ok()) Say("stored " + key);
  return 0;
}

// The rows from the first one on; -1 if one has another value.
int RowsOf(const Archive& archive, const ProfileEntry& entry, std::string& why) {
  const auto read = archive.Read(
      entry.key, SeriesScope::kNodes, [](const Series& s) { return s.metric.name == kShown; }, 0,
      std::numeric_limits<Nanos>::max());
  if (!read.ok()) {
    why = read.status().message();
    return -1;
  }
  if (read->empty()) return 0;
  int tick = 0;
  for (const Point& point : read->front().points) {
    ++tick;
    if (point == Point{entry.job.start + tick * kSecond, ValueAt(entry.job.id.job, tick)}) continue;
    why = fmt::format("row {} is another", tick);
    return -1;
  }
  return tick;
}

int Check(const std::string& root, Nanos wait) {
  const auto archive = OpenArchive(root, wait);
  if (!archive.ok()) {
    Say("problem " + std::string(archive.status().message()));
    return 1;
  }
  if (!archive->reader->note().empty()) Say("note " + archive->reader->note());
  if (!archive->owned()) Say("problem it cannot be owned");
  const auto list = archive->reader->List();
  if (!list.ok()) {
    Say("problem " + std::string(list.status().message()));
    return 1;
  }
  for (const ProfileEntry& entry : *list) {
    std::string why;
    const int rows = RowsOf(*archive->reader, entry, why);
    if (rows < 0) Say(fmt::format("damaged {} {}", entry.key, why));
    std::string tags;
    for (const auto& [name, value] : entry.job.tags) tags += name + ",";
    Say(fmt::format("profile {} {} {} {} {}", entry.key, ToString(entry.job.state), rows / kRows,
                    tags.empty() ? "-" : tags, entry.live ? "live" : "db"));
  }
  const auto verified = VerifyArchive(root, nullptr);
  if (!verified.ok()) Say("problem " + std::string(verified.status().message()));
  if (verified.ok()) {
    for (const auto& problem : verified->problems) {
      Say(fmt::format("problem {}: {}", problem.profile, problem.what));
    }
  }
  Say("checked");
  return 0;
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 6 && words[0] == "write") {
    return sonde::Write(words[1], words[2], std::atoll(words[3].c_str()),
                        std::atoi(words[4].c_str()), words[5] == "end");
  }
  if (words.size() >= 2 && words[0] == "check") {
    const int seconds = words.size() > 2 ? std::atoi(words[2].c_str()) : 20;
    return sonde::Check(words[1], seconds * sonde::kSecond);
  }
  fmt::print(stderr, "see the first lines of archive_actor.cc\n");
  return 2;
}
