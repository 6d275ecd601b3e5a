// What `sonde top` asks a step's head, and what comes back, as values: nothing is sent here.
//
// Everything about the nodes' present values goes into one question of /api/query for all nodes or
// ranks that are shown; there is never one for each of them.
//
// Thread safety: values, and functions without state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/top/columns.h"
#include "core/status.h"
#include "core/time.h"

namespace sonde::cli::top {

struct Ask {
  enum class Kind : uint8_t {
    kProfile,  // the step's description, nodes and metrics
    kLimits,   // CPUs and memory of each node
    kTotals,   // the columns of the whole of a large step
    kRows,     // those of the nodes that are shown
    kOrder,    // the column that sorts, of all nodes of a large step
    kOthers,   // of all nodes, too: one of the others in which a node can stand out
    kRanks,    // the columns of a node's ranks
    kCores,    // of a node's processors
    kSeries,   // a column over time
    kSilent,   // when nodes without values gave one last
    kAlarms,
  };
  static constexpr size_t kKinds = 11;

  Kind kind = Kind::kProfile;
  std::string target;
  std::string body;                // "": GET, else POST
  std::vector<std::string> hosts;  // that it is about; empty: all
  Column column = Column::kCpu;    // of kOrder, kOthers and kSeries
  std::string rank = {};           // of kSeries; "": no single one
};

// One metric in a question.
struct Wanted {
  std::string metric;
  bool mean = false;  // of several series; else their sum
  bool counter = false;
  bool without_loopback = false;
  std::vector<std::string> by;  // keys by which the answer is grouped, besides `hosts`
};

// The range and the interval of a question about series.
struct Span {
  Nanos ago = 0;  // from so long ago on; 0: from `start` on
  Nanos start = 0;
  Nanos interval = 0;   // one point for each; 0: every sample
  bool all = false;     // one point of all: the largest
  bool latest = false;  // of counters the value, not the rate
};

// The body of /api/query. `hosts`: those that count, each by itself; empty with `by_host`: all,
// each by itself; empty without: the whole step.
std::string QueryBody(const std::vector<Wanted>& wanted, const Span& span,
                      const std::vector<std::string>& hosts, bool by_host);
inline constexpr std::string_view kQueryTarget = "/api/query?arrays=true&unknown=none&nan=null";

// One result of /api/query; the texts are as they came and may hold anything.
struct Line {
  std::string metric;
  std::string host;
  std::string task;
  std::string cpu;
  std::string mode;
  std::vector<std::pair<Nanos, double>> points;  // by time, none is NaN
};
Result<std::vector<Line>> ParseLines(std::string_view answer);

struct Alarm {
  std::string name;
  std::string severity;
  std::string text;
  std::string node;
  std::string rank;
  Nanos since = 0;
};
Result<std::vector<Alarm>> ParseAlarms(std::string_view answer);

}  // namespace sonde::cli::top
