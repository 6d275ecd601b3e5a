// Turns what one exporter serves, scrape by scrape, into metrics of the step.
//
// Gauges are set; a series that the exporter serves no more is missing from then on. Counters count
// from the start of the step, as all of Sonde's do: if the exporter ran before the step, its count
// at the first scrape is left out; its process_start_time_seconds decides. An exporter that starts
// over goes on from its last value. Buckets, counts and sums of histograms and summaries are
// counters under their own names.
//
// Tags are the exporter's labels and `instance`, the target. Labels that mean something else here
// (task, host, job, instance) get the prefix exported_, as in Prometheus, and so do metrics whose
// names begin like Sonde's own (node_, task_, cgroup_, gpu_, sonde_). Series for which there is no
// room (too many labels, too many series) are left out, counted, and reported once.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cli/join/exposition.h"
#include "core/metric.h"
#include "core/status.h"
#include "core/time.h"

namespace sonde::join {

// Where the values go: libsonde, or a test.
class Sink {
 public:
  virtual ~Sink() = default;
  // A handle for the functions below; nullptr if the metric is not recorded.
  virtual void* Register(const Series& series) = 0;
  virtual void Set(void* handle, double value) = 0;
  virtual void Add(void* handle, double value) = 0;
};

class Joined {
 public:
  struct Options {
    std::string instance;   // HOST:PORT
    Nanos every = kSecond;  // between scrapes
    int level = 1;
    size_t max_series = 10000;
    // Seconds since 1970; exporters that started later are counted from zero. 0: none is.
    double step_start = 0;
  };

  Joined(Options options, Sink& sink);

  // One scrape, and how long it took. An error names the line; samples before that line count.
  Status Take(std::string_view exposition, double seconds);
  // The exporter could not be scraped: its gauges are unknown.
  void Lose();
  // It is not scraped any more: the daemon goes on with the last value of every gauge.
  void Stop();

  size_t series() const { return series_.size() - left_out_; }
  size_t left_out() const { return left_out_; }
  // The first series that was left out, and why; empty: none.
  const std::string& first_left_out() const { return first_left_out_; }

 private:
  struct Entry {
    void* handle = nullptr;  // nullptr: not recorded
    MetricType type = MetricType::kGauge;
    double last = 0;      // of a counter
    uint64_t scrape = 0;  // the last one in which it was seen
  };

  Result<Series> ToSeries(const Meaning& meaning) const;
  Entry Enlist(const Exposition& exposition, const Sample& sample);
  void Put(Entry& entry, double value);
  void MarkMissing();
  void SetOwn(double up, double seconds, double samples);

  Options options_;
  Sink& sink_;
  std::unordered_map<std::string, Entry> series_;
  uint64_t scrape_ = 0;
  bool from_zero_ = false;
  size_t left_out_ = 0;
  std::string first_left_out_;
  void* up_;
  void* seconds_;
  void* samples_;
  void* period_;
  void* tries_;
};

}  // namespace sonde::join
