// Reading the histograms of one application process: what was observed since the last time.
//
// The counts in the shared memory only grow, so the new observations are the difference to the
// counts read before; a count that falls is ignored, and nothing is taken twice. Where nothing was
// observed, two numbers of each distribution are read and nothing is allocated. A process that
// writes while it is read gives some observations now and the others the next time; the last read
// of a process that has ended finds all.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/status.h"
#include "libclient/layout.h"

namespace sonde::collect {

// What one histogram of a process observed between two reads.
struct AppObservations {
  // counts[i] fell into bucket `low` + i; some are 0.
  uint32_t low = 0;
  const std::vector<uint64_t>* counts = nullptr;
  uint64_t count = 0;  // of all; above 0
  double sum = 0;
  // Exact where the process's extremes changed, else the middle of the outermost bucket.
  double min = 0;
  double max = 0;
  // Since the process began.
  uint64_t total_count = 0;
  double total_sum = 0;
};

class AppDistributions {
 public:
  using Take = std::function<void(uint32_t histogram, const AppObservations& observations)>;

  // Observations of the histogram with this number are wanted; those of others are not read.
  void Want(uint32_t histogram);
  bool Wants(uint32_t histogram) const {
    return histogram < histograms_.size() && histograms_[histogram].wanted;
  }

  size_t wanted() const { return wanted_; }

  enum class Extent : unsigned char { kChanged, kAll };
  // Gives `take` the observations that each histogram got since the last call. kAll also looks
  // where nothing seems to have changed. After an error the process has broken the layout.
  Status Read(const char* base, Extent extent, const Take& take);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  // One distribution.
  struct Part {
    uint32_t histogram;
    uint32_t next;       // of the same histogram
    uint64_t sum = 0;    // bits of the sum, and observations that may not have changed it, when it
    uint64_t small = 0;  // was looked at last
    bool again = true;   // it had changed then: some may have come while it was read
  };
  struct Histogram {
    bool wanted = false;
    bool changed = false;
    uint32_t first = kNone;  // part
    uint32_t low = 0;        // bucket of seen[0]
    std::vector<uint64_t> seen;
    uint64_t count = 0;
    double sum = 0;
    double min = DBL_MAX;
    double max = -DBL_MAX;
  };
  // Of all parts of one histogram.
  struct Extremes {
    double min;
    double max;
    bool any() const { return min <= max; }
  };

  Status FindParts(const char* base);
  void LookForChanges(const char* base, Extent extent);
  void Collect(const char* base, uint32_t number, const Take& take);
  void AddCounts(const char* base, const Histogram& histogram, uint32_t low, uint32_t high);
  void Difference(Histogram& histogram, uint32_t low, AppObservations& out);
  static void Cover(Histogram& histogram, uint32_t low, uint32_t end);
  void SetExtremes(Histogram& histogram, const Extremes& extremes, AppObservations& out);
  Extremes ReadExtremes(const char* base, const Histogram& histogram) const;
  double ReadSum(const char* base, const Histogram& histogram) const;

  std::vector<Part> parts_;            // by number of the distribution
  std::vector<Histogram> histograms_;  // by number
  size_t wanted_ = 0;
  std::vector<uint64_t> counts_;  // of the histogram at hand, by bucket
  std::vector<uint64_t> came_;
};

}  // namespace sonde::collect
