#include "daemon/collect/app/app.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <new>
#include <utility>

#include "core/log.h"
#include "daemon/collect/read/parse.h"
#include "series/store/past.h"

namespace sonde::collect {
namespace {

using Link = AppProcess::Link;
using State = AppProcess::State;

size_t TextSize(const Series& series) {
  size_t size = series.metric.name.size() + series.metric.unit.size() + series.metric.help.size();
  for (const auto& [key, value] : series.tags.pairs()) size += key.size() + value.size();
  return size;
}

// For one more element, so that push_back cannot fail.
template <typename T>
void MakeRoom(std::vector<T>& vector) {
  if (vector.size() == vector.capacity()) vector.reserve(2 * vector.size() + 16);
}

}  // namespace

Result<std::unique_ptr<AppSource>> AppSource::Open(Options options) {
  std::unique_ptr<AppSource> source(new AppSource(std::move(options)));
  SONDE_RETURN_IF_ERROR(source->door_.Open());
  return source;
}

AppSource::AppSource(Options options)
    : options_(std::move(options)), door_(options_, [this](Nanos now) { Reap(now); }) {}

AppSource::~AppSource() = default;

AppSource::Counts AppSource::counts() const {
  const AppDoor::Counts& door = door_.counts();
  return {.attached = door.attached,
          .refused = door.refused,
          .dropped = door.dropped,
          .left_out = left_out_};
}

void AppSource::Poll(Nanos now) {
  if (before_ == 0) before_ = now;
  past_.Begin(now);
  door_.Poll(now);
  Reap(now);
}

void AppSource::Sample(Nanos now) {
  try {
    Poll(now);
    for (const auto& process : door_.processes()) ReadProcess(*process, now);
  } catch (const std::bad_alloc&) {
    LeaveOut("the daemon is out of memory");
  }
  before_ = now;
  AddUp();
  histograms_.Fill(values_);
}

Moments AppSource::TakeMoments() {
  Moments moments;
  annotations_.Take(moments);
  histograms_.Take(moments);
  return moments;
}

// --- One process ---

void AppSource::ReadProcess(AppProcess& process, Nanos now) {
  if (!process.segment.has_value()) return;
  Status good = FindNew(process);
  ReadValues(process, now);
  if (good.ok()) good = ReadHistograms(process);
  if (good.ok()) ReadMoments(process, now);
  if (good.ok()) good = ReadPast(process, now);
  if (!good.ok()) door_.Drop(process, good);
}

Status AppSource::FindNew(AppProcess& process) {
  const size_t room = std::min(client::kMaxMetrics - process.registered,
                               options_.max_metrics - std::min(links_, options_.max_metrics));
  found_.clear();
  const Status status = process.segment->ReadNew(room, found_);
  process.registered += found_.size();
  if (!function_names_.Translate(found_)) SayMangled();
  for (AppMetric& metric : found_) {
    if (metric.series.metric.level > options_.level) continue;
    metric.series.tags.Set(client::kTaskTag, std::to_string(process.rank));
    if (metric.series.metric.type == MetricType::kHistogram) {
      SONDE_RETURN_IF_ERROR(EnlistHistogram(process, std::move(metric)));
    } else {
      Enlist(process, std::move(metric));
    }
  }
  SONDE_RETURN_IF_ERROR(status);
  if (found_.size() < room || !process.segment->HasNew()) return {};
  if (process.registered == client::kMaxMetrics) {
    return {Code::kLimit, fmt::format("more than {} metrics", client::kMaxMetrics)};
  }
  LeaveOut(
      fmt::format("the processes of this node have registered {} metrics; more are not "
                  "recorded",
                  options_.max_metrics));
  return {};
}

void AppSource::Enlist(AppProcess& process, AppMetric metric) {
  const bool counter = metric.series.metric.type == MetricType::kCounter;
  const std::optional<uint32_t> column = Column(std::move(metric.series));
  if (!column) return;
  process.links.push_back({.from = counter ? Link::From::kCounter : Link::From::kGauge,
                           .column = *column,
                           .slot = metric.slot,
                           .last = counter ? 0.0 : kMissing});
  if (counter) {
    process.counters = std::max(process.counters, metric.slot + 1);
  } else {
    process.gauges.resize(std::max<size_t>(process.gauges.size(), metric.slot + 1));
    process.gauges[metric.slot] = column;
  }
  ++links_;
}

Status AppSource::EnlistHistogram(AppProcess& process, AppMetric metric) {
  if (process.distributions.Wants(metric.slot)) {
    return {Code::kCorrupt, fmt::format("two histograms with the number {}", metric.slot)};
  }
  if (process_histograms_ == options_.max_histograms) {
    LeaveOut(fmt::format("the processes of this node have {} histograms; more are not recorded",
                         options_.max_histograms));
    return {};
  }
  const std::optional<uint32_t> number = HistogramOf(metric.series);
  if (!number) return {};
  const size_t first = process.links.size();
  for (const size_t series : {AppHistograms::kCount, AppHistograms::kSum}) {
    process.links.push_back({.from = Link::From::kHistogram,
                             .column = histograms_.ColumnOf(*number, series),
                             .slot = metric.slot,
                             .last = 0});
  }
  if (process.histograms.size() <= metric.slot) process.histograms.resize(metric.slot + 1);
  process.histograms[metric.slot] = {.number = *number, .count = first, .sum = first + 1};
  process.distributions.Want(metric.slot);
  links_ += 2;
  ++process_histograms_;
  return {};
}

void AppSource::ReadValues(AppProcess& process, Nanos now) {
  totals_.assign(process.counters, {});
  process.segment->AddCounters(totals_);
  for (Link& link : process.links) {
    if (link.from == Link::From::kHistogram) continue;
    if (link.from == Link::From::kCounter) {
      const client::Count& total = totals_[link.slot];
      // A counter that falls, or is no number, was written by other means than libsonde's.
      const double sum = static_cast<double>(total.whole) + total.fraction;
      if (std::isfinite(sum)) link.last = std::max(link.last, sum);
      continue;
    }
    const AppGauge gauge = process.segment->ReadGauge(link.slot);
    // The gauge's time has not come. For a process that ended within a tick it never comes.
    const Nanos time = gauge.time == 0 ? 0 : options_.clock->OfWall(gauge.time);
    if (time > now && process.state != State::kEnded) continue;
    if (std::bit_cast<uint64_t>(gauge.value) == std::bit_cast<uint64_t>(link.last)) continue;
    link.last = gauge.value;
    values_[link.column] = std::isfinite(gauge.value) ? gauge.value : kMissing;
  }
}

Status AppSource::ReadHistograms(AppProcess& process) {
  using Extent = AppDistributions::Extent;
  const Extent extent = process.state == State::kEnded ? Extent::kAll : Extent::kChanged;
  return process.distributions.Read(
      process.mapping->base(), extent, [&](uint32_t slot, const AppObservations& observations) {
        const AppProcess::Histogram& histogram = process.histograms[slot];
        process.links[histogram.count].last = static_cast<double>(observations.total_count);
        // The sum is a counter, so it never falls, whatever was observed.
        double& sum = process.links[histogram.sum].last;
        sum = std::max(sum, observations.total_sum);
        histograms_.Observe(histogram.number, observations);
      });
}

void AppSource::ReadMoments(AppProcess& process, Nanos now) {
  // What is read now was told since the last sample, or shortly before: a clock that was set since
  // then is why another time is said.
  const Nanos slack = std::max<Nanos>(10 * kSecond, 2 * options_.period);
  const auto take = [&](Annotation annotation) {
    Nanos& time = annotation.first;
    time = options_.clock->OfWall(time);
    if (time < before_ - slack || time > now + slack) time = now;
    annotation.last = time;
    annotation.task = static_cast<uint32_t>(process.rank);
    annotations_.Add(std::move(annotation));
  };
  const bool last = process.state == State::kEnded;
  // By reference: a copy of it would be allocated.
  annotations_.Lose(process.ring.Read(process.mapping->base(), now, last, std::ref(take)));
}

Status AppSource::ReadPast(AppProcess& process, Nanos now) {
  Status status;
  bool looked = false;  // for what was registered since metrics were looked for
  std::string why;
  const auto gauge_of = [&](uint32_t slot) {
    const bool known = slot < process.gauges.size() && process.gauges[slot];
    if (!known && !std::exchange(looked, true)) status = FindNew(process);
    return slot < process.gauges.size() ? process.gauges[slot] : std::nullopt;
  };
  const uint64_t lost = process.past.Read(
      process.mapping->base(), now, process.state == State::kEnded,
      [&](const client::PastValue& told) {
        if (told.slot >= client::kMaxMetrics || !std::isfinite(told.value)) return false;
        const std::optional<uint32_t> column = gauge_of(told.slot);
        if (!column) return true;  // it is not recorded at this level
        const Nanos time = std::min(options_.clock->OfWall(told.time), now);
        if (const Status kept = KeepPast({time, *column, told.value}); !kept.ok()) {
          if (why.empty()) why = kept.message();
        }
        return true;
      });
  if (lost > 0) {
    why = fmt::format("a process told more than {} between two samples", client::kPastValues);
  }
  if (!why.empty() && !std::exchange(said_past_lost_, true)) {
    notes_.push_back("values of the past are missing: " + why);
  }
  return status;
}

Status AppSource::KeepPast(const PastValue& value) {
  SONDE_RETURN_IF_ERROR(past_.Check(value));
  if (!CountPast(value.column)) {
    return {Code::kLimit, fmt::format("more than {} metrics have some", AppPast::kMaxMetrics)};
  }
  past_.Add(value);
  return {};
}

// False: there are too many metrics with values of the past.
bool AppSource::CountPast(uint32_t column) {
  const std::string& metric = series_[column].metric.name;
  uint32_t counter = past_.CounterOf(metric);
  if (counter == AppPast::kNone) {
    if (!past_.HasRoom()) return false;
    Series series = PastCounterOf(metric);
    std::string name = SeriesName(series.metric.name, series.tags);
    const std::string of = metric;  // series_ may move
    const std::optional<uint32_t> made = AddColumn(std::move(name), std::move(series), true);
    if (!made) return false;
    counter = *made;
    past_.AddCounter(of, counter);
  }
  ++ended_[counter];
  return true;
}

// Reads the processes that have ended for the last time and lets go of them and of those that were
// dropped; what they counted stays.
void AppSource::Reap(Nanos now) {
  std::erase_if(door_.processes(), [&](const std::unique_ptr<AppProcess>& process) {
    if (process->state == State::kEnded) ReadProcess(*process, now);
    if (process->state != State::kEnded && process->state != State::kDropped) return false;
    for (const Link& link : process->links) {
      if (link.adds()) ended_[link.column] += link.last;
    }
    links_ -= process->links.size();
    process_histograms_ -= process->distributions.wanted();
    return true;
  });
}

// --- The series ---

// The column of a series, made now if there is none; nothing if it cannot have one.
std::optional<uint32_t> AppSource::Column(Series series) {
  std::string name = SeriesName(series.metric.name, series.tags);
  if (const auto found = columns_.find(name); found != columns_.end()) {
    const MetricType type = series_[found->second].metric.type;
    if (type == series.metric.type && !derived_[found->second]) return found->second;
    LeaveOut(derived_[found->second]
                 ? fmt::format("{} is part of a histogram and was registered by itself, too", name)
                 : fmt::format("{} is a {} of one process and a {} of another", name,
                               ToString(type), ToString(series.metric.type)));
    return {};
  }
  if (histograms_.Find(name)) {
    LeaveOut(fmt::format("{} is a histogram of one process and a {} of another", name,
                         ToString(series.metric.type)));
    return {};
  }
  return AddColumn(std::move(name), std::move(series), false);
}

std::optional<uint32_t> AppSource::AddColumn(std::string name, Series series, bool derived) {
  const size_t text = TextSize(series);
  if (series_.size() >= options_.max_metrics || text_ + text > options_.max_text) {
    LeaveOut(fmt::format("there are {} series with {} bytes of text; more are not recorded",
                         series_.size(), text_));
    return {};
  }
  const auto column = static_cast<uint32_t>(series_.size());
  const double start = series.metric.type == MetricType::kCounter ? 0.0 : kMissing;
  // Should memory run out half way, the columns still have one length.
  MakeRoom(values_);
  MakeRoom(ended_);
  MakeRoom(derived_);
  MakeRoom(series_);
  columns_.emplace(std::move(name), column);
  series_.push_back(std::move(series));
  values_.push_back(start);
  ended_.push_back(0.0);
  derived_.push_back(derived);
  text_ += text;
  ++generation_;
  return column;
}

// The number of a rank's histogram, made now if there is none; nothing if it cannot have one.
std::optional<uint32_t> AppSource::HistogramOf(const Series& histogram) {
  std::string name = SeriesName(histogram.metric.name, histogram.tags);
  if (const std::optional<uint32_t> found = histograms_.Find(name)) return found;
  std::array<Series, AppHistograms::kSeries> all = AppHistograms::SeriesOf(histogram);
  std::array<std::string, AppHistograms::kSeries> series_names;
  bool taken = columns_.contains(name);
  for (size_t i = 0; i < all.size(); ++i) {
    series_names[i] = SeriesName(all[i].metric.name, all[i].tags);
    taken = taken || columns_.contains(series_names[i]);
  }
  if (taken) {
    LeaveOut(
        fmt::format("the histogram {} has the name of another metric, or its series have", name));
    return {};
  }
  std::array<uint32_t, AppHistograms::kSeries> columns;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::optional<uint32_t> column =
        AddColumn(std::move(series_names[i]), std::move(all[i]), true);
    if (!column) return {};
    columns[i] = *column;
  }
  return histograms_.Add(std::move(name), histogram, columns);
}

void AppSource::SayMangled() {
  constexpr char kWhy[] =
      "names of C++ functions stay as the compiler made them: translating them takes too long";
  log::Warning("application: {}", kWhy);
  notes_.emplace_back(kWhy);
}

void AppSource::LeaveOut(const std::string& why) {
  ++left_out_;
  if (std::exchange(said_left_out_, true)) return;
  log::Warning("application: {}", why);
  notes_.push_back("application metrics are missing: " + why);
}

// Counters: what ended processes counted and what the others have counted so far.
void AppSource::AddUp() {
  for (size_t i = 0; i < series_.size(); ++i) {
    if (series_[i].metric.type == MetricType::kCounter) values_[i] = ended_[i];
  }
  for (const auto& process : door_.processes()) {
    for (const Link& link : process->links) {
      if (link.adds()) values_[link.column] += link.last;
    }
  }
}

}  // namespace sonde::collect
