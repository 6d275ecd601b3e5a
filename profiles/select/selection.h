// Which profiles a list shows, and in which order, told by their cards (records/card.h).
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job.h"
#include "profiles/records/card.h"

namespace sonde {

enum class SortBy : uint8_t {
  kStart,     // the newest first
  kDuration,  // from here on the largest first; unmeasured values last
  kCpu,
  kMemory,
  kEnergy,
  kRead,  // of the tasks, if known; else of the nodes' disks
  kWritten,
  kReceived,
  kSent,
  kSize,
  kNodes,
  kTasks,
  kUse,    // of the CPU time that the tasks had, the share that they used
  kState,  // those that run first, then in the order of EndState
};

struct Selection {
  // Steps that began in this time.
  Nanos since = 0;
  Nanos until = std::numeric_limits<Nanos>::max();
  Nanos lasting_to = 0;  // and had not ended before
  // "" and none: any.
  std::string command;  // a part of the first kMaxCardCommand bytes of the command line
  std::string name;     // a part of the job's name
  std::string node;     // a host's name
  std::string user;
  std::string account;
  std::string partition;
  std::optional<EndState> state;
  std::optional<int> level;
  // Words that must all be found, whatever the case of their letters: in the step's id, the job's
  // name, the user, the first kMaxCardCommand bytes of the command line or a tag; or a host's name.
  std::vector<std::string> search;
  // Tags that a profile must have; a tag without a value accepts any value.
  std::vector<std::pair<std::string, std::optional<std::string>>> tags;

  SortBy sort = SortBy::kStart;
  bool reverse = false;
  size_t limit = std::numeric_limits<size_t>::max();
  size_t offset = 0;  // so many of them are passed over
};

// A selected profile.
struct Selected {
  std::string key;
  std::string card;  // the card's bytes
  Nanos start = 0;
};

// Whether it leaves any profile out.
bool HasFilters(const Selection& selection);
// Whether the card passes all filters except those of time, node and search.
bool Matches(const Card& card, const Selection& selection);
// Whether a text on the card has the word, which is in small letters.
bool HasWord(const Card& card, std::string_view word);
// Whether all words of the search are found: on the card of this step, or as the name of a host of
// which `on_node` says that the step ran there.
bool Finds(const Card& card, const JobStep& id, const Selection& selection,
           const std::function<bool(const std::string& word)>& on_node);
// Whether the step had not ended before the time range.
bool Lasts(const Card& card, const Selection& selection);
// The value by which the list is sorted.
double SortValue(const Card& card, Nanos start, SortBy sort, Nanos now);

// Keeps the first `limit`, behind `offset`, in the order of the selection.
class SelectedList {
 public:
  // `now` ends steps that run. `count`: all profiles are looked at, so that `found` counts them.
  SelectedList(const Selection& selection, Nanos now, bool count = false)
      : selection_(selection), now_(now), count_(count) {}
  // Passes over these keys; before anything is added.
  void Skip(std::set<std::string, std::less<>> keys) { skipped_ = std::move(keys); }
  void Add(std::string_view key, std::string_view bytes, const Card& card, Nanos start);
  // Whether no profile that began before `start` can get onto the list.
  bool Full(Nanos start) const;
  // How many were added, also those that are not among the first.
  uint64_t found() const { return found_; }
  // With those of the offset.
  std::vector<Selected> Take();
  void Clear() {
    heap_.clear();
    found_ = 0;
  }

 private:
  struct Ranked {
    double value;  // sorted by this value, descending, and then by start and key
    Selected selected;
  };
  bool Before(const Ranked& a, const Ranked& b) const;
  size_t most() const {
    constexpr size_t kAll = std::numeric_limits<size_t>::max();
    return selection_.limit > kAll - selection_.offset ? kAll
                                                       : selection_.limit + selection_.offset;
  }

  const Selection& selection_;
  const Nanos now_;
  const bool count_;
  uint64_t found_ = 0;
  std::set<std::string, std::less<>> skipped_;
  std::vector<Ranked> heap_;  // the last of them is on top
};

}  // namespace sonde
