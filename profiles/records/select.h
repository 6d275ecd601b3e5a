// Which profiles a list shows, and in which order: by their cards (card.h) and the indexes.
//
// Where a filter names something that an index knows, its entries are looked up there, as long as
// they are few; elsewhere the cards of the time in question are read one after the other, which
// takes a millisecond for a thousand. Both give the same.
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

enum class SortBy : uint8_t {
  kStart,     // the newest first
  kDuration,  // from here on the largest first, and what was not measured last
  kCpu,
  kMemory,
  kEnergy,
  kRead,  // of the tasks, where that is known; else of the nodes' disks
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
  // Tags that there must be; without a value any will do.
  std::vector<std::pair<std::string, std::optional<std::string>>> tags;

  SortBy sort = SortBy::kStart;
  bool reverse = false;
  size_t limit = std::numeric_limits<size_t>::max();
};

// One that was selected.
struct Selected {
  std::string key;
  std::string card;  // its bytes
  Nanos start = 0;
};

// Whether the card answers to all filters but those of time and node.
bool Matches(const Card& card, const Selection& selection);
// Whether it had not ended before the time in question.
bool Lasts(const Card& card, const Selection& selection);
// What the list is sorted by.
double SortValue(const Card& card, Nanos start, SortBy sort, Nanos now);

// Keeps the first `limit` in the order of the selection.
class SelectedList {
 public:
  // `now` ends steps that run.
  SelectedList(const Selection& selection, Nanos now) : selection_(selection), now_(now) {}
  void Add(std::string_view key, std::string_view bytes, const Card& card, Nanos start);
  // Whether nothing that began before `start` can get onto it.
  bool Full(Nanos start) const;
  std::vector<Selected> Take();

 private:
  struct Ranked {
    double value;  // sorted by this, descending, and then by start and key
    Selected selected;
  };
  bool Before(const Ranked& a, const Ranked& b) const;

  const Selection& selection_;
  const Nanos now_;
  std::vector<Ranked> heap_;  // the last of them on top
};

// Of a database of finished steps.
Status SelectFrom(leveldb::DB& db, const Selection& selection, SelectedList& list);

}  // namespace sonde
