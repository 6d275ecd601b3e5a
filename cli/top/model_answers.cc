// What comes back of the questions of model.cc.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "cli/top/model.h"
#include "profiles/model/summary.h"
#include "profiles/report/used.h"

namespace sonde::cli::top {
namespace {

constexpr uint32_t kMostRanks = 65536;  // of a node

std::optional<Column> ColumnOf(std::string_view metric) {
  for (size_t i = 0; i < kColumns; ++i) {
    const auto& metrics = InfoOf(ColumnAt(i)).metrics;
    if (std::find(metrics.begin(), metrics.end(), metric) != metrics.end()) return ColumnAt(i);
  }
  return std::nullopt;
}

std::optional<uint32_t> NumberOf(std::string_view text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The newest value. Of samples that are put together the newest second is not over yet.
std::optional<std::pair<Nanos, double>> NewestOf(const Line& line, bool together) {
  if (line.points.empty()) return std::nullopt;
  const size_t behind = together && line.points.size() > 1 ? 2 : 1;
  return line.points[line.points.size() - behind];
}

double Sum(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : a + b; }
double Least(double a, double b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b); }

// "2(x4),8" as a number for each node; empty if it is not so.
std::vector<double> CpusOfEach(std::string_view text) {
  constexpr size_t kMostNodes = 1 << 20;
  std::vector<double> out;
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    size_t times = 1;
    if (const size_t open = one.find("(x"); open != std::string_view::npos && one.back() == ')') {
      times = NumberOf(one.substr(open + 2, one.size() - open - 3)).value_or(0);
      one = one.substr(0, open);
    }
    const auto cpus = NumberOf(one);
    if (!cpus || times == 0 || out.size() + times > kMostNodes) return {};
    out.insert(out.end(), times, *cpus);
  }
  return out;
}

}  // namespace

double Model::Scaled(Column column, double value, double cpus, double memory, double tasks) const {
  switch (column) {
    case Column::kCpu:
      return cpus > 0 ? value / cpus : kNoValue;
    case Column::kMemory:
      return memory > 0 ? value / memory : kNoValue;
    case Column::kMpi:
      return tasks > 0 ? value / tasks : kNoValue;
    default:
      return value;
  }
}

Status Model::TakeProfile(const std::string& answer, Nanos now) {
  Result<Profile> profile = ProfileFromJson(answer);
  if (!profile.ok()) return profile.status();
  job_ = std::move(profile->job);
  known_ = true;
  for (const FootprintEntry& entry : profile->footprint) metrics_.insert(entry.series.metric.name);
  TakeNodes();
  if (!columns().empty()) profile_due_ = std::max(profile_due_, now + kProfileEvery);
  if (job_.state != EndState::kRunning && job_.end != 0) End(job_, now);
  return {};
}

// A host whose daemon was started anew is in the description twice: the later entry counts.
void Model::TakeNodes() {
  const auto each = job_.environment.find("SLURM_JOB_CPUS_PER_NODE");
  std::vector<double> cpus;
  if (each != job_.environment.end()) cpus = CpusOfEach(each->second);
  const double in_the_mean = job_.expected_nodes > 0 ? AskedCpus(job_) / job_.expected_nodes : 0;
  for (const NodeInfo& info : job_.nodes) {
    const auto [at, is_new] = by_host_.try_emplace(info.host, static_cast<uint32_t>(nodes_.size()));
    if (is_new) {
      nodes_.emplace_back().host = info.host;
      Node& node = nodes_.back();
      if (cpus.size() == job_.expected_nodes && info.node_id < cpus.size()) {
        node.cpus = cpus[info.node_id];
      } else if (in_the_mean > 0) {
        node.cpus = in_the_mean;
      } else if (info.tasks > 0) {
        node.cpus = info.tasks;  // as reports do where nobody told
      }
      node.memory = AskedMemory(job_);
    }
    Node& node = nodes_[at->second];
    node.tasks = info.tasks;
    node.left = info.left;
    node.lost = info.lost;
    node.note = info.note;
  }
  ++rows_version_;
}

void Model::TakeLimits(const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    Node* node = Known(line.host);
    const auto value = NewestOf(line, false);
    if (node == nullptr || !value || !(value->second > 0)) continue;
    if (line.metric == "cgroup_cpuset_cpus") {
      node->cpus = value->second;
    } else {
      node->memory = Least(node->memory, value->second);
    }
  }
}

Model::Whole Model::WholeOf() const {
  Whole whole;
  for (const Node& node : nodes_) {
    if (node.lost || node.left != 0 || node.silent) continue;
    whole.cpus = Sum(whole.cpus, node.cpus);
    whole.memory = Sum(whole.memory, node.memory);
    whole.tasks += node.tasks;
  }
  return whole;
}

void Model::TakeTotals(const std::vector<Line>& lines) {
  Values raw = kNoValues;
  const bool together = TickSpan().interval > 0;
  for (const Line& line : lines) {
    const auto column = ColumnOf(line.metric);
    const auto value = NewestOf(line, together);
    if (column && value) raw[IndexOf(*column)] = Sum(raw[IndexOf(*column)], value->second);
  }
  const Whole whole = WholeOf();
  for (size_t i = 0; i < kColumns; ++i) {
    totals_[i] = Scaled(ColumnAt(i), raw[i], whole.cpus, whole.memory, whole.tasks);
  }
}

// Of a step of which every node is asked: what the nodes have that gave a value.
void Model::AddUp() {
  for (size_t i = 0; i < kColumns; ++i) {
    const Column column = ColumnAt(i);
    double sum = kNoValue, weights = 0;
    for (const Node& node : nodes_) {
      if (std::isnan(node.values[i])) continue;
      const double weight = column == Column::kCpu      ? node.cpus
                            : column == Column::kMemory ? node.memory
                            : column == Column::kMpi    ? node.tasks
                                                        : 1;
      sum = Sum(sum, node.values[i] * weight);
      weights += weight;
    }
    totals_[i] = InfoOf(column).ratio ? sum / weights : sum;
  }
}

void Model::TakeRows(const Ask& ask, const std::vector<Line>& lines, Nanos now) {
  struct Raw {
    Values values = kNoValues;
    Nanos newest = 0;
  };
  std::unordered_map<std::string_view, Raw> by_host;
  const bool together = TickSpan().interval > 0;
  for (const Line& line : lines) {
    const auto column = ColumnOf(line.metric);
    const auto value = NewestOf(line, together);
    if (!column || !value) continue;
    Raw& raw = by_host[line.host];
    double& sum = raw.values[IndexOf(*column)];
    sum = Sum(sum, value->second);
    raw.newest = std::max(raw.newest, line.points.back().first);
  }
  const auto take = [&](Node& node) {
    const auto at = by_host.find(node.host);
    node.taken = now;
    if (at == by_host.end()) {
      node.values = kNoValues;
      node.silent = node.left == 0;
      look_for_silent_ = look_for_silent_ || (node.silent && node.newest == 0);
      return;
    }
    for (size_t i = 0; i < kColumns; ++i) {
      node.values[i] =
          Scaled(ColumnAt(i), at->second.values[i], node.cpus, node.memory, node.tasks);
    }
    node.newest = at->second.newest;
    node.silent = false;
  };
  if (ask.hosts.empty()) {
    for (Node& node : nodes_) take(node);
    all_at_.fill(now);
    AddUp();
    ++rows_version_;
    return;
  }
  // Of a large step the rows keep their order until all nodes were asked again.
  for (const std::string& host : ask.hosts) {
    if (Node* node = Known(host)) take(*node);
  }
}

void Model::TakeOrder(const Ask& ask, const std::vector<Line>& lines, Nanos now) {
  const size_t column = IndexOf(ask.column);
  const bool together = TickSpan().interval > 0;
  std::vector<double> raw(nodes_.size(), kNoValue);
  for (const Line& line : lines) {
    const auto at = by_host_.find(line.host);
    const auto value = NewestOf(line, together);
    if (at == by_host_.end() || !value) continue;
    raw[at->second] = Sum(raw[at->second], value->second);
    nodes_[at->second].newest = std::max(nodes_[at->second].newest, line.points.back().first);
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    node.values[column] = Scaled(ask.column, raw[i], node.cpus, node.memory, node.tasks);
    // Not every column has a value of every node; CPU time has.
    if (ask.column == Column::kCpu || !std::isnan(raw[i])) {
      node.silent = std::isnan(raw[i]) && node.left == 0;
    }
    look_for_silent_ = look_for_silent_ || (node.silent && node.newest == 0);
    if (!std::isnan(raw[i])) node.taken = std::max(node.taken, now);
  }
  all_at_[column] = now;
  if (ask.kind == Ask::Kind::kOrder) ordered_by_ = ask.column;
  ++rows_version_;
}

void Model::TakeRanks(const Ask& ask, const std::vector<Line>& lines) {
  if (ask.hosts.empty()) return;
  ++rows_version_;
  ranks_of_ = ask.hosts[0];
  const Node* node = Find(ranks_of_);
  const double tasks = node == nullptr ? kNoValue : node->tasks;
  double cpus = AskedCpusPerTask(job_);
  if (std::isnan(cpus) && node != nullptr && tasks > 0) cpus = std::max(1.0, node->cpus / tasks);
  const double memory = node == nullptr ? kNoValue : node->memory;
  const bool together = TickSpan().interval > 0;
  std::map<uint32_t, Rank> ranks;
  for (const Line& line : lines) {
    const auto number = NumberOf(line.task);
    const auto value = NewestOf(line, together);
    if (!number || !value || (ranks.size() >= kMostRanks && !ranks.contains(*number))) continue;
    Rank& rank = ranks[*number];
    rank.rank = *number;
    if (const auto column = ColumnOf(line.metric)) {
      double& sum = rank.values[IndexOf(*column)];
      sum = Sum(sum, value->second);
    } else {
      // The mean of a second has no core's number if the task moved in it.
      rank.core = std::floor(line.points.back().second);
    }
  }
  ranks_.clear();
  for (auto& [number, rank] : ranks) {
    for (size_t i = 0; i < kColumns; ++i) {
      rank.values[i] = Scaled(ColumnAt(i), rank.values[i], cpus, memory, 1);
    }
    ranks_.push_back(rank);
  }
  PlaceRanks();
}

// On the cores that are known, and on those that only they are known by.
void Model::PlaceRanks() {
  for (Core& core : cores_) core.ranks.clear();
  std::erase_if(cores_, [](const Core& core) { return std::isnan(core.busy); });
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (!(ranks_[i].core >= 0 && ranks_[i].core < kMostRanks)) continue;
    const auto number = static_cast<uint32_t>(ranks_[i].core);
    auto at = std::find_if(cores_.begin(), cores_.end(),
                           [&](const Core& core) { return core.number == number; });
    if (at == cores_.end()) at = cores_.insert(at, Core{number, kNoValue, {}});
    at->ranks.push_back(i);
  }
}

void Model::TakeCores(const std::vector<Line>& lines) {
  struct Time {
    double all = 0;
    double idle = 0;
  };
  std::map<uint32_t, Time> times;
  const bool together = TickSpan().interval > 0;
  for (const Line& line : lines) {
    const auto number = NumberOf(line.cpu);
    const auto value = NewestOf(line, together);
    if (!number || !value || *number >= kMostRanks) continue;
    Time& time = times[*number];
    time.all += value->second;
    if (line.mode == "idle" || line.mode == "iowait") time.idle += value->second;
  }
  ++rows_version_;
  cores_.clear();
  for (const auto& [number, time] : times) {
    cores_.push_back({number, time.all > 0 ? 1 - time.idle / time.all : kNoValue, {}});
  }
  PlaceRanks();
}

void Model::TakeSeries(const Ask& ask, const std::vector<Line>& lines) {
  // Another one may have been chosen since.
  if (series_.column != ask.column || series_.rank != ask.rank ||
      series_.host != (ask.hosts.empty() ? "" : ask.hosts[0])) {
    return;
  }
  const Whole whole = WholeOf();
  double cpus = whole.cpus, memory = whole.memory, tasks = whole.tasks;
  if (const Node* node = Find(series_.host)) {
    cpus = node->cpus;
    memory = node->memory;
    tasks = node->tasks;
    if (!series_.rank.empty()) {
      const double told = AskedCpusPerTask(job_);
      cpus = !std::isnan(told) ? told : tasks > 0 ? std::max(1.0, cpus / tasks) : kNoValue;
      tasks = 1;
    }
  }
  std::map<Nanos, double> points;
  for (const Line& line : lines) {
    if (!series_.rank.empty() && line.task != series_.rank) continue;
    for (const auto& [time, value] : line.points) {
      const auto [at, is_new] = points.try_emplace(time, value);
      if (!is_new) at->second += value;
    }
  }
  series_.points.clear();
  for (const auto& [time, value] : points) {
    series_.points.emplace_back(time, Scaled(ask.column, value, cpus, memory, tasks));
  }
  // The last interval is not over yet, so of a counter it lacks a part.
  if (InfoOf(ask.column).counter && series_.points.size() > 1) series_.points.pop_back();
  series_.start = job_.start;
  series_.end = series_.points.empty() ? job_.start : series_.points.back().first;
  series_.known = true;
}

void Model::TakeSilent(const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    Node* node = Known(line.host);
    if (node != nullptr && node->newest == 0 && !line.points.empty()) {
      node->newest = line.points.back().first;
    }
  }
}

namespace {

bool NameHas(const std::string& name, const std::string& part) {
  return part.empty() || name.find(part) != std::string::npos;
}

// By the value that is shown, the worst first; NaN behind all others.
int Compare(double a, double b, bool low_is_worst) {
  if (std::isnan(a) || std::isnan(b)) return static_cast<int>(std::isnan(a)) - std::isnan(b);
  if (a == b) return 0;
  return (a < b) == low_is_worst ? -1 : 1;
}

// What differs in no digit that is shown does not change places.
double Rounded(Column column, double value) {
  if (InfoOf(column).ratio) return std::round(value * 100);
  return value < 1 ? 0 : value;
}

}  // namespace

bool Model::Before(const View& view, uint32_t a, uint32_t b) const {
  const auto decide = [&](double x, double y) {
    return Compare(Rounded(view.sort, x), Rounded(view.sort, y), InfoOf(view.sort).low_is_worst);
  };
  int order = 0;
  switch (view.level) {
    case Level::kNodes: {
      const Node& x = nodes_[a];
      const Node& y = nodes_[b];
      if (view.by_name) {
        order = x.host.compare(y.host);
        break;
      }
      // A node that gives no values is worse than any other; one that has ended is none at all.
      const auto state = [](const Node& node) {
        return node.lost || node.silent ? 0 : node.left != 0 ? 2 : 1;
      };
      if (state(x) != state(y)) return state(x) < state(y);
      order = decide(x.values[IndexOf(view.sort)], y.values[IndexOf(view.sort)]);
      break;
    }
    case Level::kRanks:
      if (view.by_name) break;
      order = decide(ranks_[a].values[IndexOf(view.sort)], ranks_[b].values[IndexOf(view.sort)]);
      break;
    case Level::kCores:
      break;
  }
  if (order == 0) return view.reversed && view.level != Level::kNodes ? a > b : a < b;
  return view.reversed ? order > 0 : order < 0;
}

const std::vector<uint32_t>& Model::Order(const View& view) const {
  std::string of = fmt::format("{} {} {} {} {}", static_cast<int>(view.level), view.by_name,
                               static_cast<int>(view.sort), view.reversed, view.filter);
  if (order_version_ == rows_version_ && of == order_of_) return order_;
  order_of_ = std::move(of);
  order_version_ = rows_version_;
  order_.clear();
  const size_t rows = view.level == Level::kNodes   ? nodes_.size()
                      : view.level == Level::kRanks ? ranks_.size()
                                                    : cores_.size();
  for (size_t i = 0; i < rows; ++i) {
    if (view.level == Level::kNodes && !NameHas(nodes_[i].host, view.filter)) continue;
    if (view.level != Level::kNodes && ranks_of_ != view.host) continue;
    order_.push_back(static_cast<uint32_t>(i));
  }
  std::sort(order_.begin(), order_.end(),
            [&](uint32_t a, uint32_t b) { return Before(view, a, b); });
  return order_;
}

}  // namespace sonde::cli::top
