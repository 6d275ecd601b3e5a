#include "cli/join/joined.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "core/text/names.h"
#include "libclient/layout.h"

namespace sonde::join {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kMaxLeftOut = 10000;  // left out and remembered
constexpr std::string_view kStartTime = "process_start_time_seconds";

bool IsTaken(std::string_view label) {
  return label == client::kTaskTag || label == "host" || label == "job" || label == "instance";
}

// Whether a metric of this name could be Sonde's own: node_exporter has similar names, and its
// counts are not the step's.
bool IsOwnName(std::string_view name) {
  for (const std::string_view prefix : {"node_", "task_", "cgroup_", "gpu_", "sonde_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

// When the exporter's process started; 0 if it does not say.
double StartOf(std::string_view text) {
  Exposition exposition(text);
  for (;;) {
    const Result<std::optional<Sample>> sample = exposition.Next();
    if (!sample.ok() || !*sample) return 0;
    if ((*sample)->series == kStartTime) return (*sample)->value;
  }
}

}  // namespace

Joined::Joined(Options options, Sink& sink) : options_(std::move(options)), sink_(sink) {
  const auto own = [&](std::string name, std::string unit, std::string help,
                       MetricType type = MetricType::kGauge) {
    Series series;
    series.metric.type = type;
    series.metric.name = std::move(name);
    series.metric.unit = std::move(unit);
    series.metric.help = std::move(help);
    series.metric.level = static_cast<uint8_t>(options_.level);
    series.tags.Set("instance", options_.instance);
    return sink_.Register(series);
  };
  up_ = own("join_up", "1",
            "1: the exporter answered the last scrape, 0: it did not, or is not scraped any more");
  seconds_ = own("join_scrape_seconds", "seconds", "Time that the last scrape took");
  samples_ = own("join_samples", "1", "Values that the last scrape gave");
  period_ = own("join_period_seconds", "seconds", "Time between scrapes");
  tries_ = own("join_scrapes_total", "1", "Scrapes, with those that failed", MetricType::kCounter);
}

void Joined::SetOwn(double up, double seconds, double samples) {
  sink_.Set(up_, up);
  sink_.Set(seconds_, seconds);
  sink_.Set(samples_, samples);
  sink_.Set(period_, static_cast<double>(options_.every) / kSecond);
}

Status Joined::Take(std::string_view text, double seconds) {
  if (scrape_ == 0) {
    from_zero_ = options_.step_start > 0 && StartOf(text) >= options_.step_start;
  }
  ++scrape_;
  Exposition exposition(text);
  Status status;
  size_t samples = 0;
  for (;; ++samples) {
    const Result<std::optional<Sample>> sample = exposition.Next();
    status = sample.status();
    if (!sample.ok() || !*sample) break;
    auto found = series_.find(std::string((*sample)->series));
    if (found == series_.end()) {
      if (series_.size() >= options_.max_series + kMaxLeftOut) continue;  // not even remembered
      found = series_.emplace((*sample)->series, Enlist(exposition, **sample)).first;
    }
    Put(found->second, (*sample)->value);
  }
  MarkMissing();
  SetOwn(1, seconds, static_cast<double>(samples));
  sink_.Add(tries_, 1);
  return status;
}

void Joined::Lose() {
  Stop();
  sink_.Add(tries_, 1);
}

void Joined::Stop() {
  ++scrape_;
  MarkMissing();
  SetOwn(0, kMissing, kMissing);
}

// Gauges that were not in the last scrape.
void Joined::MarkMissing() {
  for (auto& [name, entry] : series_) {
    if (entry.scrape != scrape_ && entry.type == MetricType::kGauge && entry.handle != nullptr) {
      sink_.Set(entry.handle, kMissing);
    }
  }
}

Result<Series> Joined::ToSeries(const Meaning& meaning) const {
  Series series;
  series.metric.name = (IsOwnName(meaning.name) ? "exported_" : "") + std::string(meaning.name);
  SONDE_RETURN_IF_ERROR(CheckMetricName(series.metric.name));
  series.metric.type = meaning.type;
  series.metric.unit = meaning.unit.size() <= kMaxNameLength ? meaning.unit : "";
  if (names::IsPlainText(meaning.help)) series.metric.help = meaning.help.substr(0, kMaxTextLength);
  if (!names::IsPlainText(series.metric.help)) series.metric.help.clear();  // cut within a letter
  series.metric.level = static_cast<uint8_t>(options_.level);
  series.tags.Set("instance", options_.instance);
  for (const auto& [key, value] : meaning.labels) {
    if (value.empty()) continue;  // to Prometheus the same as no label
    const std::string tag = IsTaken(key) ? "exported_" + key : key;
    if (series.tags.Find(tag) != nullptr) {
      return Status(Code::kInvalid, fmt::format("the label {} is there twice", key));
    }
    SONDE_RETURN_IF_ERROR(CheckTag(tag, value));
    series.tags.Set(tag, value);
  }
  if (series.tags.pairs().size() > client::kMaxAppTags) {
    return Status(Code::kLimit,
                  fmt::format("{} labels; {} are recorded beside 'instance'",
                              series.tags.pairs().size() - 1, client::kMaxAppTags - 1));
  }
  return series;
}

Joined::Entry Joined::Enlist(const Exposition& exposition, const Sample& sample) {
  Entry entry;
  const auto leave_out = [&](std::string_view why) {
    ++left_out_;
    if (first_left_out_.empty()) first_left_out_ = fmt::format("{}: {}", sample.series, why);
    return entry;
  };
  if (series() >= options_.max_series) {
    return leave_out(fmt::format("more than {} series", options_.max_series));
  }
  const Result<Meaning> meaning = exposition.Explain(sample);
  if (!meaning.ok()) return leave_out(meaning.status().message());
  const Result<Series> series = ToSeries(*meaning);
  if (!series.ok()) return leave_out(series.status().message());
  entry.type = series->metric.type;
  entry.handle = sink_.Register(*series);
  if (entry.handle == nullptr) return leave_out("the step does not record it");
  // The counts of an exporter that is older than the step are not the step's so far.
  if (scrape_ == 1 && !from_zero_ && std::isfinite(sample.value)) entry.last = sample.value;
  return entry;
}

void Joined::Put(Entry& entry, double value) {
  entry.scrape = scrape_;
  if (entry.handle == nullptr) return;
  if (entry.type == MetricType::kGauge) return sink_.Set(entry.handle, value);
  if (!std::isfinite(value) || value < 0) return;
  sink_.Add(entry.handle, value >= entry.last ? value - entry.last : value);
  entry.last = value;
}

}  // namespace sonde::join
