#include "daemon/head/answers/settled_pieces.h"

namespace sonde::head {
namespace {

size_t PointsOf(const std::vector<QueryResult>& results) {
  size_t points = 1;
  for (const QueryResult& result : results) points += result.points.size() + 1;
  return points;
}

}  // namespace

SettledPieces::Key SettledPieces::KeyOf(const QuerySpec& spec, const QueryPiece& piece) {
  QuerySpec same = spec;
  same.start = same.end = 0;
  std::string bytes;
  EncodeQuery(same, bytes);
  return std::make_pair(std::move(bytes), std::make_pair(piece.data.first, piece.data.last));
}

std::optional<std::vector<QueryResult>> SettledPieces::Find(const QuerySpec& spec,
                                                            const QueryPiece& piece) const {
  const Key key = KeyOf(spec, piece);
  const std::lock_guard lock(mutex_);
  const auto at = kept_.find(key);
  if (at == kept_.end()) return std::nullopt;
  const TimeRange& times = at->second.times;
  if (times.first > piece.times.first || times.last < piece.times.last) return std::nullopt;
  return InPiece(piece, at->second.results);
}

void SettledPieces::Keep(const QuerySpec& spec, const QueryPiece& piece,
                         const std::vector<QueryResult>& results) {
  Key key = KeyOf(spec, piece);
  const size_t points = PointsOf(results);
  if (points > kMaxPoints) return;
  const std::lock_guard lock(mutex_);
  if (const auto at = kept_.find(key); at != kept_.end()) {
    points_ -= PointsOf(at->second.results);
    kept_.erase(at);
  }
  if (points_ + points > kMaxPoints) {
    kept_.clear();
    points_ = 0;
  }
  points_ += points;
  kept_.emplace(std::move(key), Kept{piece.times, results});
}

}  // namespace sonde::head
