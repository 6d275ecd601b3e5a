// What the web room asks for its data: the running step's head and `sonde serve` both answer, so
// every page and endpoint works during the run and after it by the same code.
//
// Thread safety: methods are called from the web server's threads, several at a time; a Query's
// callback may be called from any thread, once, and also before Query returns.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/profile.h"
#include "profiles/summary.h"
#include "series/alarm_evaluator.h"
#include "series/query.h"
#include "series/query_part.h"
#include "series/reduced.h"
#include "web/http.h"
#include "web/notes.h"
#include "web/pushed_value.h"
#include "web/scrape_target.h"

namespace sonde::web {

struct Answer {
  std::vector<QueryResult> results;
  // Nodes that answered and that should have; a note for people if they differ.
  uint32_t nodes_answered = 0;
  uint32_t nodes_expected = 0;
};

// A part of an answer, which others' parts are added to.
struct PartAnswer {
  QueryPart part;
  uint32_t nodes_answered = 0;
  uint32_t nodes_expected = 0;
};

// A rule of a running step for one of its series.
struct AlarmState {
  alarms::Evaluator::State state;
  std::string host;  // whose value it is; "": nobody's
};

// Rows of a running step's reduced series.
struct LiveRows {
  struct Row {
    Nanos time = 0;
    std::vector<Reduced> values;  // by `series`
  };
  bool running = false;
  Nanos period = kDefaultPeriod;
  Nanos newest = 0;  // of all rows there are; 0: none
  Nanos oldest = 0;  // that is still held; 0: not looked for, which is done with a limit of 0 only
  std::vector<Series> series;
  std::vector<Row> rows;  // oldest first
};

class PointSink;
class TickSignal;

// Every name that a query can have.
struct SeriesNames {
  std::set<std::string> metrics;
  std::set<std::string> keys;    // of tags
  std::set<std::string> values;  // of any tag

  void Add(const Series& series);
};

inline constexpr size_t kMaxListed = 1u << 20;  // series that are looked through

// Who sends to whom on the way from the nodes to the head: names of hosts, the head's with ":head".
struct TreeEdge {
  std::string parent;
  std::string child;
};

// A step of a job, as a list shows it.
struct StepInShort {
  std::string key;  // of its profile; "": it has none yet
  JobStep id;
  std::string name;
  EndState state = EndState::kRunning;
  Nanos start = 0;
  Nanos end = 0;  // 0 while it runs
  uint32_t nodes = 0;
  uint32_t tasks = 0;
  UserTags tags;
  Summary summary;
};

class DataSource {
 public:
  virtual ~DataSource() = default;

  // Running and archived steps, newest first.
  virtual Result<std::vector<JobDescription>> Jobs(size_t limit) const = 0;
  // The profile of a step, so far or final. kNotFound for an unknown one.
  virtual Result<Profile> GetProfile(const JobStep& id) const = 0;

  // The steps of a job, newest first; `now` ends those that run. kNotFound if there is none.
  virtual Result<std::vector<StepInShort>> StepsOf(const std::string& job, Nanos now) const;

  // Changes the tags of a step that has ended, and gives what it has then. kBusy: it runs, or
  // somebody else has the archive open; kPermission: nobody may write it here; kLimit: it would
  // have too many.
  virtual Result<UserTags> ChangeTags(const JobStep& id, const UserTags& set,
                                      const std::vector<std::string>& remove) const;

  // Runs that have ended beside each other, each a step or a profile's key, or several between
  // commas; aligned by "start" or "phase:NAME". The JSON of `sonde diff` (docs/archive.md).
  using CompareCallback = std::function<void(Result<std::string>)>;
  virtual void Compare(const std::vector<std::string>& groups, const std::string& align,
                       CompareCallback callback) const;

  // Every series that queries can name, with tags host and job; at most `limit` of them. An
  // empty metric means all.
  virtual Result<std::vector<Series>> ListSeries(std::string_view metric, size_t limit) const = 0;

  // The names of all of them. kLimit if they are more than kMaxListed and have to be looked
  // through.
  virtual Result<SeriesNames> Names() const;

  // Evaluates the query over all steps, or those a filter on the tag `job` names. Tags of the
  // per-node series: their own, host and job.
  using Callback = std::function<void(Result<Answer>)>;
  virtual void Query(const QuerySpec& spec, Callback callback) const = 0;

  // What the series of the step that runs here come to, with values at the grid's times too
  // (series/query_part.h): who asks several steps puts their parts together. For a query that
  // query_steps::HasParts. kNotFound where several steps are.
  using PartCallback = std::function<void(Result<PartAnswer>)>;
  virtual void QueryForPart(const QuerySpec& /*spec*/, const QueryGrid& /*grid*/,
                            PartCallback callback) const {
    callback(Status(Code::kNotFound,
                    "parts of answers are given by the head of a running step; see /api/query"));
  }

  // What happened in the steps from `first` to `last`, by start; at most kMaxNotes, and of few
  // steps if there are many.
  virtual std::vector<Note> Notes(Nanos /*first*/, Nanos /*last*/) const { return {}; }

  // Who tells that a running step has a new row; nullptr: nobody does, look now and then.
  virtual TickSignal* ticks() const { return nullptr; }
  // The rows after `after`, the first `limit` of them, of the metrics that `wanted` accepts; where
  // it accepts none, rows without values. kNotFound for an unknown step; one that has ended is not
  // running and has no rows.
  virtual Result<LiveRows> ReadLive(const JobStep& id,
                                    const std::function<bool(const Metric&)>& /*wanted*/,
                                    Nanos /*after*/, size_t /*limit*/) const {
    const Result<Profile> profile = GetProfile(id);
    if (!profile.ok()) return profile.status();
    LiveRows none;
    none.running = profile->job.end == 0;
    return none;
  }

  // Where points that are put over HTTP go (web/point_sink.h); nullptr if none are taken.
  virtual PointSink* sink() const { return nullptr; }

  // Passes a request about a running step on to the server that knows more of it, such as the
  // step's head. False if there is none: it is answered here. The reply comes from any thread.
  virtual bool Forward(const JobStep& /*id*/, const Request& /*request*/,
                       const Reply& /*reply*/) const {
    return false;
  }

  // The tree of a running step, each node once; called back from any thread. kNotFound for a step
  // that does not run.
  using TreeCallback = std::function<void(Result<std::vector<TreeEdge>>)>;
  virtual void Tree(const JobStep& id, TreeCallback callback) const {
    callback(Status(Code::kNotFound, "step " + id.ToString() + " does not run any more"));
  }

  // Registers, sets or adds to a metric of the application in a running step, as the application
  // would. kInvalid for one that was not registered, kLimit if there are too many.
  virtual Status Push(const JobStep& id, const PushedValue& /*value*/) const {
    return {Code::kNotFound, "step " + id.ToString() + " does not run any more"};
  }

  // Has the nodes of a running step leave the processors' counters to other programs, or count
  // again. kInvalid for a step that counts nothing, kNotFound for one that does not run.
  virtual Status PauseCounters(const JobStep& id, bool /*paused*/) const {
    return {Code::kNotFound, "step " + id.ToString() + " does not run any more"};
  }

  // The alarm rules of a running step, more of them, and fewer. kNotFound for a step that does not
  // run, and for a rule that is not there; kBusy for a name that is taken.
  virtual Result<std::vector<AlarmState>> Alarms(const JobStep& id) const {
    return Status(Code::kNotFound, "step " + id.ToString() + " does not run any more");
  }
  virtual Status AddAlarm(const JobStep& id, const alarms::Rule& /*rule*/) const {
    return {Code::kNotFound, "step " + id.ToString() + " does not run any more"};
  }
  virtual Status RemoveAlarm(const JobStep& id, const std::string& /*name*/) const {
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
