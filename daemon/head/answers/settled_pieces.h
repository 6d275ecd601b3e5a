// What answers about the whole step remember of the pieces that they asked the nodes for
// (series/query/pieces/pieces.h), so that a page that asks every second does not have all nodes
// asked every second.
//
//   - Pieces that do not change any more: all of their points lie behind the newest row, and the
//     nodes' series had all that the rows have. They are kept for questions that are the same but
//     for their range.
//   - That nodes did not answer: for a while rows answer alone where that node would be asked
//   again.
//
// That a piece could not be had for another reason, such as its size, is not remembered.
//
// Thread safety: every method from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"
#include "series/query/pieces/pieces.h"
#include "series/query/query.h"

namespace sonde::head {

class SettledPieces {
 public:
  static constexpr size_t kMaxPoints = 1u << 20;  // 16 MiB; then all are forgotten
  static constexpr Nanos kSilence = 5 * kSecond;

  // What it gives to the answer; nothing if it is not kept.
  std::optional<std::vector<QueryResult>> Find(const QuerySpec& spec,
                                               const QueryPiece& piece) const;
  void Keep(const QuerySpec& spec, const QueryPiece& piece,
            const std::vector<QueryResult>& results);

  // By a clock that nobody sets.
  void NoteSilence(Nanos now) { silent_until_ = now + kSilence; }
  bool IsSilent(Nanos now) const { return now < silent_until_; }

 private:
  // The question without its range; the points that the piece needs.
  using Key = std::pair<std::string, std::pair<Nanos, Nanos>>;
  struct Kept {
    TimeRange times;
    std::vector<QueryResult> results;
  };
  static Key KeyOf(const QuerySpec& spec, const QueryPiece& piece);

  mutable std::mutex mutex_;
  std::map<Key, Kept> kept_;
  size_t points_ = 0;
  std::atomic<Nanos> silent_until_ = 0;
};

}  // namespace sonde::head
