// A process of the application that has attached, as the daemon knows it.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/time.h"
#include "core/unique_fd.h"
#include "daemon/collect/app/distributions.h"
#include "daemon/collect/app/ring.h"
#include "daemon/collect/app/segment.h"

namespace sonde::collect {

struct AppProcess {
  enum class State : uint8_t {
    kSilent,  // no hello yet
    kLive,
    kEnded,    // gone; to be read once more
    kDropped,  // not to be read any more
  };

  // What the process adds to a series of its rank.
  struct Link {
    enum class From : uint8_t { kGauge, kCounter, kHistogram };
    From from;
    uint32_t column;
    uint32_t slot;
    double last;  // as read; a gauge's counts when it changes
    bool adds() const { return from != From::kGauge; }
  };

  // One of the process's histograms; its count and its sum are links.
  struct Histogram {
    uint32_t number;  // in AppHistograms
    size_t count;     // of the links
    size_t sum;
  };

  UniqueFd connection;
  pid_t pid = 0;
  Nanos since = 0;
  State state = State::kSilent;
  int rank = 0;
  size_t registered = 0;
  uint32_t counters = 0;                        // highest slot + 1
  std::vector<std::optional<uint32_t>> gauges;  // by slot, their columns
  std::optional<AppMapping> mapping;
  std::optional<AppSegment> segment;
  std::vector<Link> links;
  std::vector<Histogram> histograms;  // by its own number; those that are not wanted are empty
  AppDistributions distributions;
  AppRing ring;
  PastReader past;
};

}  // namespace sonde::collect
