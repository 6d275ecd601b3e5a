// The metrics of this process: checked, written as records into the shared memory, found again.
//
// Entries lie in private memory that a fork copies; what the daemon needs lies in the segment.
//
// Thread safety: none; the caller holds the library's mutex. Entries stay where they are until the
// process ends.
#pragma once

#include <cstddef>
#include <cstdint>

#include "libclient/declaration.h"
#include "libclient/layout.h"
#include "libclient/segment.h"
#include "libclient/sonde.h"

namespace sonde::client {

class Registry {
 public:
  constexpr Registry() = default;

  // Gets memory for the entries, once. False, with errno set, if there is none.
  bool Create();

  // The metric's entry, made now or found. If there can be none: nullptr, with a code of sonde.h in
  // `code` and the reason in words (libclient/error.h). `step_level` is -1 while the step's level
  // is not known.
  sonde_metric_t* Add(Segment& segment, const Declaration& declaration, int step_level, int* code);

  size_t records_end() const { return records_end_; }
  size_t gauges() const { return gauges_; }

 private:
  struct Entry {
    sonde_metric_t metric;
    uint32_t record;  // offset among the records
    uint32_t hash;    // of name and tags

    uint8_t type() const {
      return metric.cell != nullptr              ? kTypeGauge
             : metric.histogram < kMaxHistograms ? kTypeHistogram
                                                 : kTypeCounter;
    }
  };
  static constexpr size_t kBuckets = 2 * kMaxMetrics;

  int Place(Segment& segment, Record* head, sonde_metric_t* metric);
  Entry* Append(Segment& segment, const char* record, uint32_t hash, int* code);

  Entry* entries_ = nullptr;
  uint16_t* buckets_ = nullptr;  // entry + 1; 0: free
  size_t count_ = 0;
  size_t gauges_ = 0;
  size_t counters_ = 0;
  size_t histograms_ = 0;
  size_t records_end_ = 0;
};

}  // namespace sonde::client
