// Which profiles a list shows, and in which order: by their cards (card.h) and the indexes.
//
// If a filter names something that an index knows, its entries are looked up there, as long as they
// are few; otherwise the cards of the time range are read one after the other, which takes a
// millisecond for a thousand. Both ways give the same result.
//
// Thread safety: values and functions without state.
#pragma once

#include <leveldb/db.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/records/card.h"

namespace sonde {

class Damage;

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
  // Tags that a profile must have; a tag without a value accepts any value.
  std::vector<std::pair<std::string, std::optional<std::string>>> tags;

  SortBy sort = SortBy::kStart;
  bool reverse = false;
  size_t limit = std::numeric_limits<size_t>::max();
};

// A selected profile.
struct Selected {
  std::string key;
  std::string card;  // the card's bytes
  Nanos start = 0;
};

// Whether the card passes all filters except those of time and node.
bool Matches(const Card& card, const Selection& selection);
// Whether the step had not ended before the time range.
bool Lasts(const Card& card, const Selection& selection);
// The value by which the list is sorted.
double SortValue(const Card& card, Nanos start, SortBy sort, Nanos now);

// Keeps the first `limit` in the order of the selection.
class SelectedList {
 public:
  // `now` ends steps that run.
  SelectedList(const Selection& selection, Nanos now) : selection_(selection), now_(now) {}
  void Add(std::string_view key, std::string_view bytes, const Card& card, Nanos start);
  // Whether no profile that began before `start` can get onto the list.
  bool Full(Nanos start) const;
  std::vector<Selected> Take();
  void Clear() { heap_.clear(); }

 private:
  struct Ranked {
    double value;  // sorted by this value, descending, and then by start and key
    Selected selected;
  };
  bool Before(const Ranked& a, const Ranked& b) const;

  const Selection& selection_;
  const Nanos now_;
  std::vector<Ranked> heap_;  // the last of them is on top
};

// Of a database of finished steps. Where its indexes are damaged, profiles are looked for one by
// one, and `damage` hears of it.
Status SelectFrom(leveldb::DB& db, const Selection& selection, SelectedList& list, Damage& damage);
// The same without the indexes.
void SelectOneByOne(leveldb::DB& db, const Selection& selection, SelectedList& list);

}  // namespace sonde
