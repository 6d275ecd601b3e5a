#include "daemon/collect/self.h"

#include <unistd.h>

#include <ctime>

#include "daemon/collect/parse.h"

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
     "Ticks that were taken too late or not at all."},
    {"sonde_sample_seconds_total", "seconds", MetricType::kCounter, 1, Reduction::kSum,
     "Time the samples before this one took, by the wall clock."},
};

double ProcessorSeconds() {
  timespec time{};
  if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) != 0) return kMissing;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

SelfSource::SelfSource(const Roots& roots, ReadBuffer& buffer)
    : statm_(roots.proc + "/self/statm", Shape::kWhole, 128),
      buffer_(buffer),
      page_size_(static_cast<double>(sysconf(_SC_PAGESIZE))) {
  for (const MetricDecl& decl : kMetrics) {
    series_.emplace_back().metric = Metric(decl);
    values_.push_back(kMissing);
  }
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
  values_[4] = static_cast<double>(sampling_) / static_cast<double>(kSecond);
}

// statm and not smaps_rollup, which walks all page tables: milliseconds per GiB.
void SelfSource::ReadMemory(Nanos now) {
  Cursor statm(statm_.Read(buffer_, now));
  statm.Number();  // virtual size
  const double resident = statm.Number();
  const double shared = statm.Number();
  values_[1] = (resident - shared) * page_size_;
}

std::vector<MetricDecl> SelfMetrics() { return {std::begin(kMetrics), std::end(kMetrics)}; }

}  // namespace sonde::collect
