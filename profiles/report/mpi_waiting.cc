#include "profiles/report/mpi_waiting.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

#include "profiles/report/calls.h"

namespace sonde {
namespace {

constexpr double kSameCalls = 0.98;  // of the most calls: all take part in all of them

// The entries of one class, or of one function of it.
struct Timed {
  const FootprintEntry* calls = nullptr;
  const FootprintEntry* seconds = nullptr;
  const FootprintEntry* waits = nullptr;
  bool collective = false;
};

constexpr std::pair<std::string_view, const FootprintEntry * Timed::*> kPlaces[] = {
    {"mpi_calls_total", &Timed::calls},
    {"mpi_seconds_total", &Timed::seconds},
    {"mpi_wait_seconds_total", &Timed::waits}};

std::map<Tags, Timed> TimedCalls(const Profile& profile) {
  std::map<Tags, Timed> found;
  for (const FootprintEntry& entry : profile.footprint) {
    const auto at = std::find_if(std::begin(kPlaces), std::end(kPlaces), [&](const auto& place) {
      return place.first == entry.series.metric.name;
    });
    if (at == std::end(kPlaces) || !CountsCalls(entry.series) || std::isnan(entry.last)) continue;
    Timed& timed = found[entry.series.tags];
    timed.*at->second = &entry;
    timed.collective = *entry.series.tags.Find("class") == "collective";
  }
  return found;
}

// What all ranks have above the least of them; 0 where that is not known to be waiting.
double AboveTheLeast(const Timed& timed, double tasks) {
  if (!timed.collective || timed.calls == nullptr || timed.seconds == nullptr) return 0;
  if (!(timed.calls->min >= kSameCalls * timed.calls->max)) return 0;
  const double above = timed.seconds->last - tasks * timed.seconds->min;
  return above > 0 ? above : 0;
}

// Where a rank is, as far as it is the one with the least or most of something.
Owner OwnerOf(uint32_t rank, const Profile& profile) {
  for (const FootprintEntry& entry : profile.footprint) {
    for (const Owner& owner : {entry.min_owner, entry.max_owner}) {
      if (owner.rank == rank && owner.node != Owner::kNobody) return owner;
    }
  }
  return {Owner::kNobody, rank};
}

}  // namespace

MpiWaiting WaitingInMpi(const Profile& profile, double tasks) {
  MpiWaiting waiting;
  std::map<Owner, double> for_whom;
  for (const auto& [tags, timed] : TimedCalls(profile)) {
    if (timed.seconds == nullptr && timed.waits == nullptr) continue;
    const double above = AboveTheLeast(timed, tasks);
    const double waits = timed.waits == nullptr ? 0 : timed.waits->last;
    waiting.seconds = (std::isnan(waiting.seconds) ? 0 : waiting.seconds) + std::max(above, waits);
    if (above > 0) for_whom[timed.seconds->min_owner] += above;
  }
  for (const auto& [rank, seconds] : AwaitedInReceives(profile)) {
    for_whom[OwnerOf(rank, profile)] += seconds;
  }
  const auto most =
      std::max_element(for_whom.begin(), for_whom.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != for_whom.end() && most->second >= waiting.seconds / 2) {
    waiting.slowest = most->first;
  }
  return waiting;
}

}  // namespace sonde
