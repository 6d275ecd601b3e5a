// The running step as a data source of the web server.
//
// Questions about the whole step are answered from the record's reduced series, on the web
// server's thread; questions by host travel down the tree, on the loop's.
//
// Thread safety: as DataSource says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/head/step_record.h"
#include "daemon/tree/query_fanout.h"
#include "web/data_source.h"

namespace sonde::head {

class LiveSource final : public web::DataSource {
 public:
  // Sends a query to the nodes; from any thread. The answer comes on the loop's thread.
  using AskNodes =
      std::function<void(QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done)>;

  // Tells the nodes to leave the processors' counters to others, or to count; from any thread.
  using PauseCountersOf = std::function<void(bool paused)>;

  // Has the nodes of these indexes scrape an exporter; from any thread.
  using JoinOn = std::function<void(std::vector<uint32_t> nodes, std::string url)>;

  LiveSource(const StepRecord& record, AskNodes ask, PauseCountersOf pause, JoinOn join)
      : record_(record), ask_(std::move(ask)), pause_(std::move(pause)), join_(std::move(join)) {}

  Result<std::vector<JobDescription>> Jobs(size_t limit) const override;
  Result<Profile> GetProfile(const JobStep& id) const override;
  Result<std::vector<Series>> ListSeries(std::string_view metric, size_t limit) const override;
  void Query(const QuerySpec& spec, Callback callback) const override;
  std::vector<web::Note> Notes(Nanos first, Nanos last) const override;
  Status PauseCounters(const JobStep& id, bool paused) const override;
  Result<std::string> Join(const JobStep& id, const web::ScrapeTarget& target,
                           const std::string& node) const override;

 private:
  Result<web::Answer> FromReduced(const QuerySpec& spec, const JobDescription& job) const;
  void FromNodes(QuerySpec spec, const JobDescription& job, Callback callback) const;

  const StepRecord& record_;
  AskNodes ask_;
  PauseCountersOf pause_;
  JoinOn join_;
};

}  // namespace sonde::head
