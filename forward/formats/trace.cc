// A step as a trace that ui.perfetto.dev and chrome://tracing show, in the trace event format
// (JSON object form: "Trace Event Format", Duc et al., Google):
//
//   process of the step    a track for each phase (X), alarms (b, e), remarks (i)
//   process of each node   counter tracks (C); those of the whole step are the step's
//
// Times are microseconds since the step's start, which `otherData` has. Counters are shown as rates
// per second, since a line that only rises shows nothing: a rate is at the time of the previous
// sample and holds until the next one. Infinities and NaN are left out, as JSON has none.
#include <fmt/core.h>

#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "forward/formats/columns.h"
#include "forward/formats/table.h"
#include "profiles/json/writer.h"
#include "profiles/model/summary.h"

namespace sonde::forward {
namespace {

constexpr int kStepProcess = 1;

class Trace : public TableSink {
 public:
  explicit Trace(TextSink sink) : sink_(std::move(sink)) {}

  Status Begin(const Profile& profile, const std::vector<Column>& columns) override;
  Status Add(const TableWindow& window) override;
  Status End() override { return sink_("\n]}\n"); }

 private:
  // A column's track and, of a counter, its last sample.
  struct Track {
    std::string head;  // everything before the time
    bool counts = false;
    bool any = false;
    Nanos time = 0;
    double value = 0;
  };

  std::string Micros(Nanos time) const;
  // An event's object is opened and has these; the caller ends it.
  JsonWriter Event(std::string& out, std::string_view kind, std::string_view name, int process,
                   int thread);
  void Name(std::string& out, std::string_view what, int process, int thread,
            std::string_view name);
  void AddPhases(const Profile& profile, std::string& out);
  void AddAlarms(const Profile& profile, std::string& out);
  void AddRemarks(const Profile& profile, std::string& out);
  void AddCounter(Track& track, Nanos time, double value, std::string& out) const;
  int ProcessOf(const std::string* host, std::string& out);

  const TextSink sink_;
  Nanos start_ = 0;
  Nanos end_ = 0;
  int threads_ = 0;
  bool first_ = true;
  std::map<std::string, int> processes_;  // of nodes
  std::vector<Track> tracks_;
};

std::string Trace::Micros(Nanos time) const {
  const Nanos since = time - start_;
  return fmt::format("{}{}.{:03}", since < 0 ? "-" : "", std::abs(since) / 1000,
                     std::abs(since) % 1000);
}

JsonWriter Trace::Event(std::string& out, std::string_view kind, std::string_view name, int process,
                        int thread) {
  out += std::exchange(first_, false) ? "\n" : ",\n";
  JsonWriter w(out);
  w.BeginObject().Field("ph", kind).Field("name", name).Field("pid", process);
  w.Field("tid", thread);
  return w;
}

void Trace::Name(std::string& out, std::string_view what, int process, int thread,
                 std::string_view name) {
  JsonWriter w = Event(out, "M", what, process, thread);
  w.Key("args").BeginObject().Field("name", name).EndObject().EndObject();
}

void Trace::AddPhases(const Profile& profile, std::string& out) {
  std::map<std::string, int> threads;
  for (const Phase& phase : profile.moments.phases) {
    const auto [at, is_new] = threads.try_emplace(phase.name, threads_ + 1);
    if (is_new) {
      ++threads_;
      Name(out, "thread_name", kStepProcess, at->second, "phase " + phase.name);
    }
    const bool open = phase.began > phase.ended || phase.end == 0;
    const Nanos end = std::max(open ? std::max(end_, phase.end) : phase.end, phase.begin);
    JsonWriter w = Event(out, "X", phase.name, kStepProcess, at->second);
    w.Field("cat", "phase").Key("ts").Raw(Micros(phase.begin));
    w.Key("dur").Raw(
        fmt::format("{}.{:03}", (end - phase.begin) / 1000, (end - phase.begin) % 1000));
    w.Key("args").BeginObject().Field("began", phase.began).Field("ended", phase.ended);
    w.Field("pauses_seconds", static_cast<double>(phase.pauses) / kSecond);
    w.Field("first", OwnerName(phase.by, profile.job)).EndObject().EndObject();
  }
}

void Trace::AddAlarms(const Profile& profile, std::string& out) {
  if (profile.moments.alarms.empty()) return;
  const int thread = ++threads_;
  Name(out, "thread_name", kStepProcess, thread, "alarms");
  int id = 0;
  for (const RaisedAlarm& alarm : profile.moments.alarms) {
    ++id;
    for (const bool begin : {true, false}) {
      const Nanos over = alarm.over == 0 ? std::max(end_, alarm.raised) : alarm.over;
      JsonWriter w = Event(out, begin ? "b" : "e", alarm.rule, kStepProcess, thread);
      w.Field("cat", "alarm").Field("id", id);
      w.Key("ts").Raw(Micros(begin ? alarm.raised : over));
      if (begin) {
        w.Key("args").BeginObject().Field("severity", alarm.severity).Field("text", alarm.text);
        w.Field("series", SeriesName("", alarm.tags)).Field("value", alarm.value);
        w.Field("by", OwnerName(alarm.by, profile.job)).EndObject();
      }
      w.EndObject();
    }
  }
}

void Trace::AddRemarks(const Profile& profile, std::string& out) {
  if (profile.moments.remarks.empty()) return;
  const int thread = ++threads_;
  Name(out, "thread_name", kStepProcess, thread, "remarks");
  for (const Remark& remark : profile.moments.remarks) {
    JsonWriter w = Event(out, "i", remark.text, kStepProcess, thread);
    w.Field("cat", "remark").Field("s", "p").Key("ts").Raw(Micros(remark.first));
    w.Key("args").BeginObject().Field("count", remark.count);
    w.Field("first", OwnerName(remark.by, profile.job)).EndObject().EndObject();
  }
}

int Trace::ProcessOf(const std::string* host, std::string& out) {
  if (host == nullptr) return kStepProcess;
  const auto [at, is_new] =
      processes_.try_emplace(*host, kStepProcess + 1 + static_cast<int>(processes_.size()));
  if (is_new) Name(out, "process_name", at->second, 0, *host);
  return at->second;
}

Status Trace::Begin(const Profile& profile, const std::vector<Column>& columns) {
  const JobDescription& job = profile.job;
  start_ = job.start;
  end_ = job.end;
  std::string out = "{\"displayTimeUnit\":\"ms\",\"otherData\":";
  JsonWriter(out)
      .BeginObject()
      .Field("job", job.id.ToString())
      .Field("cluster", job.cluster)
      .Field("command", job.command)
      .Field("start", FormatTime(job.start))
      .Field("start_ns", job.start)
      .Field("version", job.version)
      .EndObject();
  out += ",\"traceEvents\":[";
  Name(out, "process_name", kStepProcess, 0, fmt::format("{} {}", job.id.ToString(), job.name));
  AddPhases(profile, out);
  AddAlarms(profile, out);
  AddRemarks(profile, out);
  for (const Column& column : columns) {
    const Metric& metric = column.series.metric;
    Track track;
    track.counts = IsCounting(metric.type);
    Tags tags = column.series.tags;
    const int process = ProcessOf(tags.Find("host"), out);
    tags.Erase("host");
    const std::string name = (tags.empty() ? metric.name + column.suffix
                                           : SeriesName(metric.name + column.suffix, tags)) +
                             (track.counts ? " /s" : "");
    JsonWriter w(track.head);
    w.BeginObject().Field("ph", "C").Field("name", name).Field("pid", process).Field("tid", 0);
    track.head += ",\"ts\":";
    tracks_.push_back(std::move(track));
  }
  return sink_(out);
}

void Trace::AddCounter(Track& track, Nanos time, double value, std::string& out) const {
  Nanos at = time;
  double shown = value;
  if (track.counts) {
    const Track before = track;
    track.any = true;
    track.time = time;
    track.value = value;
    if (!before.any || time <= before.time) return;
    at = before.time;
    shown = (value - before.value) / (static_cast<double>(time - before.time) / kSecond);
  }
  if (!std::isfinite(shown)) return;
  out += ",\n";
  out += track.head;
  out += Micros(at);
  out += ",\"args\":{\"value\":";
  AppendNumber(shown, out);
  out += "}}";
}

Status Trace::Add(const TableWindow& window) {
  std::string out;
  for (size_t row = 0; row < window.times.size(); ++row) {
    for (size_t c = 0; c < window.columns; ++c) {
      const double value = window.At(row, c);
      if (std::isfinite(value)) AddCounter(tracks_[c], window.times[row], value, out);
    }
    if (out.size() < kPiece) continue;
    SONDE_RETURN_IF_ERROR(sink_(out));
    out.clear();
  }
  return sink_(out);
}

}  // namespace

std::unique_ptr<TableSink> MakeTrace(TextSink sink) {
  return std::make_unique<Trace>(std::move(sink));
}

}  // namespace sonde::forward
