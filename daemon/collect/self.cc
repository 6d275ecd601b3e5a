#include "daemon/collect/self.h"

#include <unistd.h>

#include <ctime>
#include <iterator>

#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

// In the order of the columns.
constexpr MetricDecl kMetrics[] = {
    {"sonde_cpu_seconds_total", "seconds", MetricType::kCounter, 1, Reduction::kSum,
     "Processor time of Sonde's daemon."},
    {"sonde_memory_bytes", "bytes", MetricType::kGauge, 1, Reduction::kSum,
     "Memory of Sonde's daemon that no file backs: resident less file and shared pages."},
    {"sonde_samples_total", "1", MetricType::kCounter, 1, Reduction::kSum,
     "Samples taken before this one."},
    {"sonde_late_ticks_total", "1", MetricType::kCounter, 1, Reduction::kSum,
     "Ticks that were taken more than half a period late."},
    {"sonde_skipped_ticks_total", "1", MetricType::kCounter, 1, Reduction::kSum,
     "Ticks that were not taken at all: the node was too busy, or suspended."},
    {"sonde_sample_seconds_total", "seconds", MetricType::kCounter, 1, Reduction::kSum,
     "Time the samples before this one took, by the wall clock."},
    {"sonde_sent_bytes_total", "bytes", MetricType::kCounter, 1, Reduction::kSum,
     "Bytes the daemon sent over its links before this sample, of others' frames too."},
    {"sonde_db_bytes", "bytes", MetricType::kGauge, 1, Reduction::kSum,
     "Compressed blocks of the node's series so far: what they take in the archive."},
    {"sonde_queued_bytes", "bytes", MetricType::kGauge, 4, Reduction::kMax,
     "Bytes that waited for the link upwards to take them."},
    {"sonde_unacknowledged_bytes", "bytes", MetricType::kGauge, 4, Reduction::kMax,
     "Blocks on their way that were not known to be in the archive yet."},
    {"sonde_dropped_samples_total", "1", MetricType::kCounter, 4, Reduction::kSum,
     "Samples of a group that no block holds: out of order, or forgotten for lack of memory."},
    {"sonde_left_out_series_total", "1", MetricType::kCounter, 4, Reduction::kSum,
     "Series of the node and of those below it that had no room in what it sends up."},
};
constexpr MetricDecl kReading = {
    "sonde_source_seconds_total",
    "seconds",
    MetricType::kCounter,
    4,
    Reduction::kSum,
    "Part of it that reading one source took. Tag source, as in the program's folder `collect`."};

double ProcessorSeconds() {
  timespec time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return kMissing;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double Seconds(Nanos time) { return static_cast<double>(time) / static_cast<double>(kSecond); }

}  // namespace

SelfSource::SelfSource(const Roots& roots, int level, ReadBuffer& buffer)
    : statm_(roots.proc + "/self/statm", Shape::kWhole, 128),
      buffer_(buffer),
      page_size_(static_cast<double>(sysconf(_SC_PAGESIZE))) {
  for (const MetricDecl& decl : kMetrics) {
    if (decl.level > level) continue;
    series_.emplace_back().metric = Metric(decl);
    values_.push_back(kMissing);
  }
  own_ = series_.size();
}

void SelfSource::CountSample(Nanos took) {
  ++samples_;
  sampling_ += took;
}

void SelfSource::Sample(Nanos now) {
  values_[0] = ProcessorSeconds();
  if (samples_ < kMemoryEvery || samples_ % kMemoryEvery == 0) ReadMemory(now);
  values_[2] = static_cast<double>(samples_);
  values_[3] = static_cast<double>(late_ticks_);
  values_[4] = static_cast<double>(skipped_ticks_);
  values_[5] = Seconds(sampling_);
  values_[6] = daemon_.sent_bytes;
  values_[7] = daemon_.stored_bytes;
  if (own_ == std::size(kMetrics)) {
    values_[8] = daemon_.queued_bytes;
    values_[9] = daemon_.unacknowledged_bytes;
    values_[10] = daemon_.dropped_rows;
    values_[11] = daemon_.left_out_series;
  }
  for (size_t i = 0; i < reading_.size(); ++i) {
    values_[own_ + i] = Seconds(reading_[i]);
  }
}

size_t SelfSource::AddSource(std::string_view name) {
  for (size_t i = 0; i < reading_.size(); ++i) {
    if (*series_[own_ + i].tags.Find("source") == name) return i;
  }
  Series& s = series_.emplace_back();
  s.metric = Metric(kReading);
  s.tags.Set("source", name);
  values_.push_back(kMissing);
  reading_.push_back(0);
  ++generation_;
  return reading_.size() - 1;
}

// statm and not smaps_rollup, which walks all page tables: milliseconds per GiB.
void SelfSource::ReadMemory(Nanos now) {
  Cursor statm(statm_.Read(buffer_, now));
  statm.Number();  // virtual size
  const double resident = statm.Number();
  const double shared = statm.Number();
  values_[1] = (resident - shared) * page_size_;
}

std::vector<MetricDecl> SelfMetrics() {
  std::vector<MetricDecl> metrics(std::begin(kMetrics), std::end(kMetrics));
  metrics.push_back(kReading);
  return metrics;
}

}  // namespace sonde::collect
