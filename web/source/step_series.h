// Questions about series: queries and their parts, names, notes, and the rows of a step that runs.
//
// Thread safety: methods from any thread, several at a time. A callback is called once, from any
// thread, and also before the method returns.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "series/query/part.h"
#include "series/query/query.h"
#include "series/store/reduced.h"
#include "web/source/notes.h"

namespace sonde::web {

struct Answer {
  std::vector<QueryResult> results;
  // Nodes that answered and that should have answered; a note for people if they differ.
  uint32_t nodes_answered = 0;
  uint32_t nodes_expected = 0;
  // Why rows of the whole step answer alone, though some nodes are not in all of them; "": they do
  // not, or all are.
  std::string rows_only = {};
};

// A part of an answer, which is merged with other parts.
struct PartAnswer {
  QueryPart part;
  uint32_t nodes_answered = 0;
  uint32_t nodes_expected = 0;
  std::string rows_only = {};  // as of Answer
};

// Rows of a running step's reduced series.
struct LiveRows {
  struct Row {
    Nanos time = 0;
    std::vector<Reduced> values;  // by `series`
    bool others = false;          // it may be of other nodes than the row before
  };
  bool running = false;
  Nanos period = kDefaultPeriod;
  Nanos newest = 0;  // time of the newest row; 0: none
  Nanos oldest = 0;  // time of the oldest row held; 0: not looked for (only a limit of 0 does)
  std::vector<Series> series;
  std::vector<Row> rows;  // oldest first
};

class TickSignal;

// All names that a query can use.
struct SeriesNames {
  std::set<std::string> metrics;
  std::set<std::string> keys;    // of tags
  std::set<std::string> values;  // of any tag

  void Add(const Series& series);
};

inline constexpr size_t kMaxListed = 1u << 20;  // series that are looked through

class StepSeries {
 public:
  virtual ~StepSeries() = default;

  // Every series that queries can name, with tags host and job; at most `limit` of them. An
  // empty metric means all. With a limit above kMaxListed it may be kLimit if there are more.
  using SeriesCallback = std::function<void(Result<std::vector<Series>>)>;
  virtual void ListSeries(std::string_view metric, size_t limit, SeriesCallback callback) const = 0;

  // All names. kLimit if there are more than kMaxListed series to look
  // through.
  using NamesCallback = std::function<void(Result<SeriesNames>)>;
  virtual void Names(NamesCallback callback) const;

  // Evaluates the query over all steps, or over those that a filter on the tag `job` names. Tags of
  // the per-node series: their own, host and job.
  using Callback = std::function<void(Result<Answer>)>;
  virtual void Query(const QuerySpec& spec, Callback callback) const = 0;

  // This running step's part of the answer, with values at the grid's times too
  // (series/query/part.h): a server with several steps merges their parts. For a query that
  // query_steps::HasParts. kNotFound on a server of several steps.
  using PartCallback = std::function<void(Result<PartAnswer>)>;
  virtual void QueryForPart(const QuerySpec& spec, const QueryGrid& grid,
                            PartCallback callback) const;

  // The events of the steps from `first` to `last`, by start; at most kMaxNotes, and of few steps
  // if there are many.
  using NotesCallback = std::function<void(std::vector<Note>)>;
  virtual void Notes(Nanos first, Nanos last, NotesCallback callback) const;

  // The signal for a running step's new rows; nullptr: there is none, look now and then.
  virtual TickSignal* ticks() const { return nullptr; }

  // The rows after `after`, the first `limit` of them, with the metrics that `wanted` accepts; if
  // it accepts none, rows without values. kNotFound for an unknown step; a step that has ended is
  // not running and has no rows.
  using IsWanted = std::function<bool(const Metric&)>;
  using RowsCallback = std::function<void(Result<LiveRows>)>;
  virtual void ReadLive(const JobStep& id, const IsWanted& wanted, Nanos after, size_t limit,
                        RowsCallback callback) const;
};

}  // namespace sonde::web
