// What `sonde top` knows of one running step, and what it has to ask to know what is shown.
//
// The model never asks by itself: Due says what is to be asked now, and Take is told what came
// back. Of a step of up to kAllRows nodes every tick brings the values of all of them. Of a larger
// one it brings those that are shown; all nodes are asked at most every so many seconds as there
// are thousands of nodes, for the column that sorts and, in turn, for one of the others in which a
// node can stand out.
//
// Host names and all other texts are held as they came: layout.h makes them safe to show.
//
// Thread safety: one thread.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/top/columns.h"
#include "cli/top/questions.h"
#include "cli/top/view.h"
#include "core/job.h"
#include "core/status.h"
#include "core/time.h"
#include "profiles/model/profile.h"

namespace sonde::cli::top {

inline constexpr size_t kAllRows = 128;
// How often the description is asked for; of large steps less often.
inline constexpr Nanos kProfileEvery = 5 * kSecond;

struct Node {
  std::string host;
  uint32_t tasks = 0;
  Nanos left = 0;  // 0: it is there, or lost
  bool lost = false;
  std::string note;           // why something is missing, as the head has it
  double cpus = kNoValue;     // allotted
  double memory = kNoValue;   // bytes that the tasks may use
  Values values = kNoValues;  // of the last answer
  Nanos taken = 0;            // when that came
  Nanos newest = 0;           // the time of its last value; 0: not known
  bool silent = false;        // the last answer had no value of it
};

struct Rank {
  uint32_t rank = 0;
  Values values = kNoValues;
  double core = kNoValue;  // on which its main thread was last
};

struct Core {
  uint32_t number = 0;
  double busy = kNoValue;     // share of time; NaN: not measured
  std::vector<size_t> ranks;  // whose main threads were on it, by place in Model::ranks()
};

// A column over time, of the whole step, a node or a rank.
struct Series {
  Column column = Column::kCpu;
  std::string host;  // "": the whole step
  std::string rank;
  Nanos start = 0;
  Nanos end = 0;
  std::vector<std::pair<Nanos, double>> points;
  bool known = false;  // an answer has come
};

class Model {
 public:
  // `interval`: how often to ask; 0: the step's period, a second at least.
  Model(std::string id, Nanos interval) : id_(std::move(id)), wanted_interval_(interval) {}

  // The questions to ask now, each of which Take is to be told the answer of. `width`: how many
  // points a plot has at most.
  std::vector<Ask> Due(const View& view, size_t width, Nanos now);
  // When Due has something again, if nothing is answered until then.
  Nanos NextDue(const View& view) const;
  void Take(const Ask& ask, const Result<std::string>& answer, Nanos now);
  // The step is over: `job` as the archive has it.
  void End(const JobDescription& job, Nanos now);

  const std::string& id() const { return id_; }
  bool known() const { return known_; }  // the description has come
  bool ended() const { return ended_at_ != 0; }
  Nanos ended_at() const { return ended_at_; }
  const JobDescription& job() const { return job_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Values& totals() const { return totals_; }
  const std::vector<Rank>& ranks() const { return ranks_; }
  const std::vector<Core>& cores() const { return cores_; }
  const Series& series() const { return series_; }
  const std::vector<Alarm>& alarms() const { return alarms_; }
  // Columns that the step has values of, in order.
  std::vector<Column> columns() const;
  // Those of them that the rows of this view have.
  std::vector<Column> Shown(const View& view) const;
  // Whether all values of this column are of the present. Of a large step they are only for a while
  // after all nodes were asked.
  bool KnowsAll(Column column, Nanos now) const;
  Nanos interval() const;
  // Since when the head has not answered, and what was wrong then; 0: it answers.
  Nanos silent_since() const { return silent_since_; }
  const std::string& problem() const { return problem_; }
  const Node* Find(std::string_view host) const;
  // The nodes that are missing: lost, or not come yet.
  std::vector<std::string> LostHosts() const;
  size_t NotCome() const;
  // Rows by place in nodes(), ranks() or cores(), in the order in which they are shown.
  const std::vector<uint32_t>& Order(const View& view) const;
  // Grows with everything that changes what is shown.
  uint64_t version() const { return version_; }

 private:
  using Kind = Ask::Kind;

  bool Has(std::string_view metric) const { return metrics_.contains(metric); }
  bool Pending(Kind kind) const { return pending_.test(static_cast<size_t>(kind)); }
  bool TickPending() const;
  void Add(Ask ask, std::vector<Ask>& out);
  std::vector<Wanted> WantedOf(bool of_tasks) const;
  std::vector<Wanted> WantedOf(Column column) const;
  Span TickSpan() const;
  void AddTick(const View& view, Nanos now, std::vector<Ask>& out);
  void AddRows(const View& view, std::vector<Ask>& out);
  void AddOrder(const View& view, Nanos now, std::vector<Ask>& out);
  void AddRanks(const View& view, std::vector<Ask>& out);
  void AddSeries(const View& view, size_t width, Nanos now, std::vector<Ask>& out);
  void AddSilent(Nanos now, std::vector<Ask>& out);
  std::vector<std::string> ShownHosts(const View& view) const;

  Status TakeProfile(const std::string& answer, Nanos now);
  void TakeNodes();
  void TakeLimits(const std::vector<Line>& lines);
  void TakeTotals(const std::vector<Line>& lines);
  void TakeRows(const Ask& ask, const std::vector<Line>& lines, Nanos now);
  void TakeOrder(const Ask& ask, const std::vector<Line>& lines, Nanos now);
  void TakeRanks(const Ask& ask, const std::vector<Line>& lines);
  void TakeCores(const std::vector<Line>& lines);
  void TakeSeries(const Ask& ask, const std::vector<Line>& lines);
  void TakeSilent(const std::vector<Line>& lines);
  Status TakeLines(const Ask& ask, const std::string& answer, Nanos now);
  // What the nodes that give values have together.
  struct Whole {
    double cpus = 0;
    double memory = 0;
    double tasks = 0;
  };
  Whole WholeOf() const;
  void AddUp();
  bool AllRows(const View& view) const;
  // Those in which a node can stand out, but for the one that sorts.
  std::vector<Column> OthersThan(Column sort) const;
  void PlaceRanks();
  double Scaled(Column column, double value, double cpus, double memory, double tasks) const;
  Node* Known(std::string_view host);
  bool Before(const View& view, uint32_t a, uint32_t b) const;

  const std::string id_;
  const Nanos wanted_interval_;
  JobDescription job_;
  bool known_ = false;
  Nanos ended_at_ = 0;
  std::set<std::string, std::less<>> metrics_;  // of the footprint
  std::vector<Node> nodes_;
  std::unordered_map<std::string, uint32_t> by_host_;
  Values totals_ = kNoValues;
  std::vector<Rank> ranks_;
  std::vector<Core> cores_;
  std::string ranks_of_;  // the host
  Series series_;
  std::vector<Alarm> alarms_;
  Nanos silent_since_ = 0;
  std::string problem_;

  std::bitset<Ask::kKinds> pending_;
  Nanos profile_due_ = 0;
  Nanos limits_due_ = 0;
  size_t limits_of_ = 0;  // nodes that were there when they were asked
  Nanos tick_due_ = 0;
  Nanos last_tick_ = 0;
  Nanos order_due_ = 0;
  Column ordered_by_ = Column::kCpu;      // of the last kOrder
  size_t next_other_ = 0;                 // whose turn it is
  std::array<Nanos, kColumns> all_at_{};  // when all nodes were asked for a column; 0: never
  Nanos series_due_ = 0;
  std::string series_of_;  // what series_ is asked for: column, host, rank
  Nanos silent_due_ = 0;
  bool look_for_silent_ = false;
  std::string shown_;   // level and host when the last tick was asked
  std::string window_;  // and which rows
  uint64_t version_ = 1;
  uint64_t rows_version_ = 1;  // grows with what decides their order

  mutable std::vector<uint32_t> order_;
  mutable std::string order_of_;
  mutable uint64_t order_version_ = 0;
};

}  // namespace sonde::cli::top
