// What the checks of the surfaces have in common: a step that runs or has ended, what the models
// know of it, and the web router over a data source.
//
// Thread safety: none.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "profiles/archive/archive.h"
#include "tests/surfaces/algebra.h"
#include "tests/surfaces/cluster.h"
#include "tests/surfaces/plan.h"
#include "tests/surfaces/rows.h"
#include "tests/surfaces/tally.h"
#include "web/source/data_source.h"

namespace sonde::surfaces {

struct Scene {
  const StepPlan& plan;
  const Rows& rows;
  Chance& chance;
  Tally& tally;
  const web::DataSource& source;
  const Clock& clock;
  // Lets what is under way arrive; the answer comes then.
  std::function<void()> settle;
  // And has nobody wait any longer for nodes that do not answer: silent ones, and those that have
  // ended, of which the head has not heard it yet.
  std::function<void()> lose_patience;
  std::string job;
  Nanos start = 0;
  Nanos end = 0;  // of what there is: the end of the step, or now
  bool running = false;
  std::vector<NodeState> states;           // of the daemons
  bool was_silent = false;                 // one did not answer when the step was asked before
  std::shared_ptr<const Archive> archive;  // of a step that has ended
  std::string key;                         // and its profile there
};

using Params = std::vector<std::pair<std::string, std::string>>;
struct Shown {
  int status = 0;
  std::string body;
  // What the headers say of the answer: whether rows alone made some of it, and of how many nodes
  // it is, NaN if they do not.
  bool rows_only = false;
  double nodes_answered = std::nan("");
  double nodes_expected = std::nan("");
};
Shown Get(const Scene& scene, const std::string& path, Params params);
// Server-sent events: what there is now.
struct Event {
  std::string name;
  std::string data;
};
std::vector<Event> GetEvents(const Scene& scene, const std::string& path, Params params);

// The aggregator that does as a reduction does, by OpenTSDB's name.
std::string AggregatorOf(Reduction reduction);

// --- What nodes have measured, up to the scene's end ---

enum class Points { kAll, kAtTicks };
enum class Who { kWhoAnswers, kAll };
// The series of a metric by host and task; daemons of one host have one.
std::vector<Line> LinesOf(const Scene& scene, const std::string& metric, Points points,
                          Who who = Who::kWhoAnswers);
LineTags OwnTags(const SeriesPlan& series);
// The metric's declaration; nullptr: the step has none.
const Metric* FindMetric(const StepPlan& plan, const std::string& name);
// Each once.
std::vector<std::string> MetricsOf(const StepPlan& plan);
// Whether it is in some row. What is in none yet is not known to be measured.
bool InRows(const Scene& scene, const std::string& metric);
// Hosts on which something was measured.
std::vector<std::string> HostsOf(const Scene& scene);

// --- Who answers ---

enum class Way {
  kSeries,   // the nodes' series
  kWhole,    // the rows of the whole step, and the nodes' series where these are not right
  kUnknown,  // rows of which the models do not know enough (AnySwapped)
};
inline constexpr const char* kSwapped = "gauges that swap in the rows";
Way WayOf(const Scene& scene, const Question& question);
// The tags by which the question groups.
LineTags GroupOf(const LineTags& tags, const Question& question);
// What the answer must be. `rows_only`: it says that rows alone made some of it.
std::vector<Result> Expect(const Scene& scene, const Question& question, Way way,
                           bool rows_only = false);
bool AnySilent(const Scene& scene);
// Whether rows alone may make some of an answer, and what they give is known.
bool RowsMayAnswer(const Scene& scene);
bool RowsAreKnown(const Scene& scene, const Question& question);
// How many nodes an answer is of, and of how many it should be.
void CompareNodes(const Scene& scene, Way way, double answered, double expected);

// By which an answer's results are told apart: with rows only by what groups them.
std::string NameOf(const LineTags& tags, const Question& question, Way way);

// --- The checks ---

// A random one, for /api/query.
Question DrawQuestion(const Scene& scene);

void CheckOpenTsdb(const Scene& scene, int questions);
void CheckSeries(const Scene& scene);       // /api/v1/series, as the page draws it
void CheckTraces(const Scene& scene);       // /trace/plot, /trace/read, /trace/json
void CheckLive(const Scene& scene);         // /api/live of a running step
void CheckFigures(const Scene& scene);      // /metrics, /job, /api/v1/profile
void CheckNodeMetrics(const Scene& scene);  // /metrics?scope=node
void CheckReport(const Scene& scene);       // the report, and what `sonde show --json` gives
void CheckExports(const Scene& scene);

}  // namespace sonde::surfaces
