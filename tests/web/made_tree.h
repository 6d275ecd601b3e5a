// A data source with one running step whose daemons form a tree with a fanout of 16, in which one
// is lost, one away, one silent and one late, if there are that many.
//
// Thread safety: that of DataSource.
#pragma once

#include <atomic>

#include "web/source/data_source.h"

namespace sonde::web {

class MadeTree final : public DataSource {
 public:
  static constexpr uint32_t kFanout = 16;

  MadeTree(uint32_t nodes, Nanos now);

  // One more node is lost; the step ends.
  void LoseOne() { ++lost_; }
  void End() { ended_ = true; }

  void Jobs(size_t limit, JobsCallback callback) const override;
  void GetProfile(const JobStep& id, ProfileCallback callback) const override;
  void ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const override;
  // sonde_sent_bytes_total: a node sends 1000 bytes a second, and as much for each child.
  void Query(const QuerySpec& spec, Callback callback) const override;
  void Links(const JobStep& id, LinkTreeCallback callback) const override;

 private:
  uint32_t ChildrenOf(uint32_t node) const;
  Profile ProfileNow() const;

  Profile profile_;
  std::atomic<uint32_t> lost_ = 1;
  std::atomic<bool> ended_ = false;
};

}  // namespace sonde::web
