// What the web room asks for its data: the running step's head and `sonde serve` both answer, so
// every page and endpoint works during the run and after it by the same code.
//
// Thread safety: methods are called from the web server's threads, several at a time; a Query's
// callback may be called from any thread, once, and also before Query returns.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/profile.h"
#include "series/query.h"
#include "web/notes.h"
#include "web/scrape_target.h"

namespace sonde::web {

struct Answer {
  std::vector<QueryResult> results;
  // Nodes that answered and that should have; a note for people if they differ.
  uint32_t nodes_answered = 0;
  uint32_t nodes_expected = 0;
};

class PointSink;

class DataSource {
 public:
  virtual ~DataSource() = default;

  // Running and archived steps, newest first.
  virtual Result<std::vector<JobDescription>> Jobs(size_t limit) const = 0;
  // The profile of a step, so far or final. kNotFound for an unknown one.
  virtual Result<Profile> GetProfile(const JobStep& id) const = 0;

  // Every series that queries can name, with tags host and job; at most `limit` of them. An
  // empty metric means all.
  virtual Result<std::vector<Series>> ListSeries(std::string_view metric, size_t limit) const = 0;

  // Evaluates the query over all steps, or those a filter on the tag `job` names. Tags of the
  // per-node series: their own, host and job.
  using Callback = std::function<void(Result<Answer>)>;
  virtual void Query(const QuerySpec& spec, Callback callback) const = 0;

  // What happened in the steps from `first` to `last`, by start; at most kMaxNotes, and of few
  // steps if there are many.
  virtual std::vector<Note> Notes(Nanos /*first*/, Nanos /*last*/) const { return {}; }

  // Where points that are put over HTTP go (web/point_sink.h); nullptr if none are taken.
  virtual PointSink* sink() const { return nullptr; }

  // Has the nodes of a running step leave the processors' counters to other programs, or count
  // again. kInvalid for a step that counts nothing, kNotFound for one that does not run.
  virtual Status PauseCounters(const JobStep& id, bool /*paused*/) const {
    return {Code::kNotFound, "step " + id.ToString() + " does not run any more"};
  }

  // Has nodes of a running step scrape an exporter until the step ends: the one named, all ("*"),
  // or for "" the one that the target's host names, else the first. Gives their names; that they
  // could reach it is told by the metric join_up. kNotFound as above, or for a node the step has
  // not.
  virtual Result<std::string> Join(const JobStep& id, const ScrapeTarget& /*target*/,
                                   const std::string& /*node*/) const {
    return Status(Code::kNotFound, "step " + id.ToString() + " does not run any more");
  }
};

}  // namespace sonde::web
