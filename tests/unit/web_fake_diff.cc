// What the tests' data source says of jobs, tags and runs beside each other.
#include <cmath>
#include <utility>

#include "profiles/compare/run_bands.h"
#include "profiles/json/writer.h"
#include "tests/unit/web_fake_source.h"

namespace sonde::web {
namespace {

constexpr size_t kBins = 60;

void WriteGroups(JsonWriter& w, const std::vector<std::string>& groups, const JobDescription& job) {
  w.Key("groups").BeginArray();
  for (size_t g = 0; g < groups.size(); ++g) {
    JobDescription one = job;
    one.id = JobStep::Parse(groups[g]);
    w.BeginObject().Field("label", std::string(1, static_cast<char>('A' + g)));
    w.Key("runs").BeginArray().BeginObject().Field("key", groups[g]).Field("title", one.name);
    w.Key("job").Raw(DescriptionToJson(one)).EndObject().EndArray().EndObject();
  }
  w.EndArray();
}

void WriteRow(JsonWriter& w, std::string_view section, std::string_view name, std::string_view unit,
              double base, double step, size_t groups, double weight = std::nan(""),
              std::string_view standing = "same") {
  w.BeginObject().Field("section", section).Field("name", name).Field("unit", unit);
  w.Field("weight", weight).Field("standing", standing);
  w.Field("beyond", step > 0.05).Field("noise_from", "rule").Key("groups").BeginArray();
  for (size_t g = 0; g < groups; ++g) {
    const double value = base * std::pow(1 + step, static_cast<double>(g));
    w.BeginObject().Field("mean", value).Field("min", value).Field("max", value);
    w.Key("runs").BeginArray().Value(value).EndArray().EndObject();
  }
  w.EndArray().Key("changes").BeginArray();
  for (size_t g = 1; g < groups; ++g) {
    const double ratio = std::pow(1 + step, static_cast<double>(g)) - 1;
    w.BeginObject().Field("difference", base * ratio).Field("noise", 0.05 * base);
    w.Field("ratio", ratio).Field("beyond", ratio > 0.05).EndObject();
  }
  w.EndArray().EndObject();
}

void WriteSeries(JsonWriter& w, std::string_view name, std::string_view unit, bool per_second,
                 double base, size_t groups) {
  w.BeginObject().Field("name", name).Field("unit", unit).Field("per_second", per_second);
  w.Key("groups").BeginArray();
  for (size_t g = 0; g < groups; ++g) {
    w.BeginObject();
    for (const char* which : {"mean", "min", "max"}) {
      w.Key(which).BeginArray();
      for (size_t i = 0; i < kBins; ++i) {
        const double x = static_cast<double>(i) / 9 + static_cast<double>(g);
        // The first ends before the others.
        w.Value(g == 0 && i > 50 ? std::nan("") : base * (1 + 0.2 * std::sin(x)));
      }
      w.EndArray();
    }
    w.EndObject();
  }
  w.EndArray().EndObject();
}

}  // namespace

void FakeSource::StepsOf(const std::string& job, Nanos now, StepsCallback callback) const {
  if (job != "4711") return DataSource::StepsOf(job, now, std::move(callback));
  DataSource::StepsOf("4711.0", now, [&](Result<std::vector<StepInShort>> steps) {
    if (!steps.ok()) return callback(std::move(steps));
    steps->front().key = "4711.0";
    StepInShort batch = steps->front();
    batch.key = "4711.batch";
    batch.id.step = "batch";
    batch.start -= 5 * kSecond;
    batch.nodes = batch.tasks = 1;
    batch.tags.clear();
    steps->push_back(batch);
    callback(std::move(steps));
  });
}

void FakeSource::ChangeTags(const JobStep& id, const UserTags& set,
                            const std::vector<std::string>& remove, TagsCallback callback) const {
  if (id.job == "locked") return callback(Status(Code::kBusy, "the archive cannot be written now"));
  if (id.job == "forbidden") {
    return callback(Status(Code::kPermission, "the archive is only read here"));
  }
  const Result<Profile> profile = ProfileOf(id);
  if (!profile.ok()) return callback(profile.status());
  if (profile->job.state == EndState::kRunning) {
    return DataSource::ChangeTags(id, set, remove, std::move(callback));
  }
  UserTags now;
  {
    const std::lock_guard lock(tags_mutex_);
    for (const auto& [name, value] : set) tags_[name] = value;
    for (const std::string& name : remove) tags_.erase(name);
    now = tags_;
  }
  callback(std::move(now));
}

void FakeSource::Conclude(const JobStep& id, const std::string& of,
                          ConcludeCallback callback) const {
  const Result<Profile> profile = ProfileOf(id);
  if (!profile.ok()) return callback(profile.status());
  callback("{\"step\":\"" + profile->job.id.ToString() + "\",\"" + of + "\":[]}");
}

void FakeSource::CompareMany(const ManyRunsQuestion& question, CompareCallback callback) const {
  const Result<Profile> profile = ProfileOf({"4711", "0"});
  if (question.names.size() == 1) {
    return callback(Status(Code::kInvalid, "a comparison needs two or more"));
  }
  ManyRuns runs;
  for (const char* job : {"4711", "4710", "4709"}) {
    ProfileEntry entry;
    entry.key = std::string(job) + ".0";
    entry.job = profile->job;
    entry.job.id.job = job;
    runs.found.entries.push_back(std::move(entry));
  }
  SpreadRow row;
  row.kind = {CompareSection::kTime, "duration", "seconds"};
  row.runs = {0, 1, 2};
  row.values = {600, 610, 900};
  row.min = 600;
  row.p10 = 602;
  row.median = 610;
  row.p90 = 842;
  row.max = 900;
  row.apart = {2};
  row.weight = 1.0 / 3;
  row.standing = Standing::kWeighty;
  runs.rows.push_back(row);
  callback(ManyRunsToJson(runs));
}

void FakeSource::Bands(const ManyRunsQuestion& /*question*/,
                       const std::vector<std::string>& metrics, BandAxis axis,
                       CompareCallback callback) const {
  RunBands bands;
  bands.axis = axis;
  bands.end = axis == BandAxis::kShare ? 1 : 600;
  bands.bins = 2;
  bands.runs = 3;
  RunBand band;
  band.series.metric.name = metrics.front();
  band.count = {3, 2};
  band.min = band.p10 = {1, 2};
  band.median = {2, 3};
  band.p90 = band.max = {3, 4};
  bands.series.push_back(band);
  callback(RunBandsToJson(bands));
}

void FakeSource::Models(const ModelsQuestion& question, ModelsCallback callback) const {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Key("parameters").BeginArray();
  w.Value(question.by.empty() ? "nodes" : question.by.c_str()).EndArray();
  for (const char* list : {"runs", "notes", "models"}) w.Key(list).BeginArray().EndArray();
  w.EndObject();
  callback(out);
}

void FakeSource::Compare(const std::vector<std::string>& groups, const std::string& align,
                         CompareCallback callback) const {
  const Result<Profile> profile = ProfileOf({"4711", "0"});
  if (groups.back() == "9.0") {
    return callback(Status(Code::kNotFound, "there is no profile of job 9.0"));
  }
  std::string out;
  JsonWriter w(out);
  w.BeginObject();
  WriteGroups(w, groups, profile->job);
  w.Field("noise", "Noise is a rule of thumb: 5 %.").Field("noise_runs", groups.size());
  w.Key("rows").BeginArray();
  const size_t n = groups.size();
  WriteRow(w, "time", "duration", "seconds", 600, 0.2, n, 0.2, "weighty");
  WriteRow(w, "phases", "time loop", "seconds", 540, 0.2, n, 0.18, "weighty");
  WriteRow(w, "figures", "cell_updates", "Mcells/s", 245, 0.21, n, 0.17, "weighty");
  WriteRow(w, "other", "node_load1", "1", 3.5, 0.3, n, std::nan(""), "unweighed");
  WriteRow(w, "CPU", "CPU time", "seconds", 2400, 0, n, 0);
  WriteRow(w, "memory", "memory of a node", "bytes", 8e9, 0.01, n, 0.001);
  WriteRow(w, "other", "node_procs_running", "1", 4, 0, n);
  w.EndArray().Key("axis").BeginObject().Field("align", align).Field("from", 0.0);
  w.Field("to", 720.0).Field("bins", kBins).Field("bin_seconds", 12.0).EndObject();
  w.Key("series").BeginArray();
  WriteSeries(w, "node_cpu_seconds_total{mode=\"user\"}", "seconds", true, 8, n);
  WriteSeries(w, "node_procs_running", "1", false, 4, n);
  WriteSeries(w, "task_resident_memory_bytes", "bytes", false, 8e9, n);
  w.EndArray().EndObject();
  callback(out);
}

}  // namespace sonde::web
