// A running step of a few nodes of which all is known: their series, the rows of the whole step,
// and what of the series is stored. Questions of the head are answered from these, and an answer
// can be compared with that of all series in one place.
//
// Thread safety: none.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/answers/live_source.h"
#include "daemon/head/record/presence.h"
#include "tests/unit/answering_nodes.h"

namespace sonde::head {

class MeasuredStep {
 public:
  static constexpr Nanos kStart = 1'000'000 * kSecond;
  static Nanos At(int tick) { return kStart + tick * kSecond; }

  explicit MeasuredStep(MetricType type = MetricType::kGauge) {
    metric_.name = "work";
    metric_.type = type;
  }

  // A node with a point at each of these ticks, and at its ends beside the ticks: 200 ms before the
  // first one, and unless it is lost 300 ms after the last. `missing`: ticks that no row has.
  uint32_t AddNode(const std::string& host, int first, int last,
                   const std::set<int>& missing = {}) {
    const auto index = static_cast<uint32_t>(nodes_.size());
    Node& node = nodes_.emplace_back();
    node.info.host = host;
    node.info.joined = At(first) - 200 * kMillisecond;
    node.data.series.metric = metric_;
    node.data.series.tags = {{"host", host}};
    double value = metric_.type == MetricType::kGauge ? 100.0 * (index + 1) : 0;
    const auto add = [&](Nanos time) {
      node.data.points.push_back({time, value});
      value += index + 1;
    };
    add(node.info.joined);
    for (int tick = first; tick <= last; ++tick) {
      add(At(tick));
      if (!missing.contains(tick)) node.ticks.insert(tick);
    }
    add(At(last) + 300 * kMillisecond);
    return index;
  }
  // It said goodbye, and all that it measured is stored.
  void End(uint32_t node) {
    nodes_[node].info.left = nodes_[node].data.points.back().time;
    nodes_[node].answers = false;
    nodes_[node].stored = nodes_[node].data.points.size();
  }
  // Its link is gone, and with it what lies behind its last row; so many points are stored.
  void Lose(uint32_t node, size_t stored) {
    End(node);
    nodes_[node].data.points.pop_back();
    nodes_[node].info.left = nodes_[node].data.points.back().time + 100 * kMillisecond;
    nodes_[node].info.lost = true;
    nodes_[node].stored = stored;
  }
  void SetAnswers(uint32_t node, bool answers) { nodes_[node].answers = answers; }
  void CannotBeRead() { readable_ = false; }

  // Makes the rows up to that tick, and the data source.
  void Begin(int newest) {
    JobDescription job;
    job.start = kStart;
    job.id = {"7", "0"};
    for (const Node& node : nodes_) job.nodes.push_back(node.info);
    job.expected_nodes = static_cast<uint32_t>(nodes_.size());
    record_ = std::make_unique<StepRecord>(job);
    for (int tick = 1; tick <= newest; ++tick) AddRow(tick);
    source_ = std::make_unique<LiveSource>(
        *record_,
        std::make_shared<AnsweringNodes>([this](const QuerySpec& spec, const QueryGrid& grid,
                                                const tree::QueryFanout::Done& done) {
          ++asked_;
          if (on_asked) on_asked();
          done(OfNodes(spec, grid));
        }),
        std::make_shared<Stored>(*this), [](const std::function<void()>& finish) { finish(); });
  }
  // The head hears of nodes that have come, ended or were lost since.
  void Tell() {
    record_->Update([this](JobDescription& job) {
      job.nodes.clear();
      std::set<std::string> hosts;
      for (const Node& node : nodes_) {
        job.nodes.push_back(node.info);
        hosts.insert(node.info.host);
      }
      job.expected_nodes = static_cast<uint32_t>(hosts.size());
    });
  }
  void AddRow(int tick) {
    std::vector<Reduced> row(1);
    tree::NodeSet present;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      const Node& node = nodes_[i];
      const bool is_in = node.ticks.contains(tick);
      if (is_in) present.Add(tree::NodeSet(i));
      // Of a counter rows have what nodes had counted that are not in them.
      const bool ended = node.info.left != 0 && !node.info.lost && node.info.left < At(tick);
      const Point* last = nullptr;
      for (const Point& p : node.data.points) {
        const bool known = node.ticks.contains(static_cast<int>((p.time - kStart) / kSecond)) ||
                           (ended && &p == &node.data.points.back());
        if (p.time <= At(tick) && known) last = &p;
      }
      const bool stands = metric_.type == MetricType::kCounter && last != nullptr;
      if (last != nullptr && (is_in || stands)) row[0].Add(last->value, {i, Owner::kNobody});
    }
    presence_.OnRow(At(tick), present);
    record_->SetPresence(presence_.Runs());
    record_->Append(At(tick), row, {metric_of_row()});
  }

  QuerySpec Sum(int first, int last) const {
    QuerySpec spec;
    spec.metric = metric_.name;
    spec.start = At(first);
    spec.end = At(last);
    return spec;
  }
  Result<web::Answer> Ask(const QuerySpec& spec) const {
    std::optional<Result<web::Answer>> answer;
    source_->Query(spec, [&](auto told) { answer = std::move(told); });
    if (!answer) return Status(Code::kTimeout, "no answer");
    return *std::move(answer);
  }
  // What the series of all nodes give in one place.
  std::vector<Point> Expected(const QuerySpec& spec) const {
    std::map<std::string, SeriesData> hosts;
    for (const Node& node : nodes_) {
      SeriesData& host = hosts[node.info.host];
      host.series = node.data.series;
      host.points.insert(host.points.end(), node.data.points.begin(), node.data.points.end());
    }
    std::vector<SeriesData> all;
    for (auto& [name, series] : hosts) all.push_back(std::move(series));
    const std::vector<QueryResult> results = *Evaluate(spec, std::move(all));
    return results.empty() ? std::vector<Point>() : results.front().points;
  }

  int asked() const { return asked_; }  // of nodes
  int read() const { return read_; }    // of what is stored
  StepRecord& record() { return *record_; }
  const LiveSource& source() const { return *source_; }

  std::function<void()> on_asked;

 private:
  struct Node {
    NodeInfo info;
    SeriesData data;
    std::set<int> ticks;  // whose rows have it
    bool answers = true;
    size_t stored = 0;  // points
  };
  class Stored final : public StoredSeries {
   public:
    explicit Stored(MeasuredStep& step) : step_(step) {}
    Result<std::vector<SeriesData>> Read(const QuerySpec& spec,
                                         const std::set<std::string>& hosts) const override {
      ++step_.read_;
      if (!step_.readable_) return Status(Code::kUnavailable, "the disk does not answer");
      return step_.OfStored(spec, hosts);
    }

   private:
    MeasuredStep& step_;
  };

  Series metric_of_row() const {
    Series series;
    series.metric = metric_;
    return series;
  }
  tree::Gathered OfNodes(const QuerySpec& spec, const QueryGrid& grid) const {
    const SeriesFilter filter = *SeriesFilter::Make(spec);
    tree::Gathered answer;
    std::vector<SeriesData> series;
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].answers) continue;
      answer.who.Add(tree::NodeSet(i));
      ++answer.nodes;
      if (filter.Matches(nodes_[i].data.series)) series.push_back(nodes_[i].data);
    }
    answer.part = *EvaluatePart(spec, std::move(series), &grid);
    return answer;
  }
  std::vector<SeriesData> OfStored(const QuerySpec& spec,
                                   const std::set<std::string>& hosts) const {
    const SeriesFilter filter = *SeriesFilter::Make(spec);
    std::map<std::string, SeriesData> stored;
    for (const Node& node : nodes_) {
      if (!hosts.contains(node.info.host) || node.stored == 0) continue;
      if (!filter.Matches(node.data.series)) continue;
      SeriesData& host = stored[node.info.host];
      host.series = node.data.series;
      const auto end = node.data.points.begin() + static_cast<std::ptrdiff_t>(node.stored);
      host.points.insert(host.points.end(), node.data.points.begin(), end);
    }
    std::vector<SeriesData> series;
    for (auto& [name, one] : stored) series.push_back(std::move(one));
    return series;
  }

  Metric metric_;
  std::vector<Node> nodes_;
  bool readable_ = true;
  Presence presence_{kSecond};
  std::unique_ptr<StepRecord> record_;
  std::unique_ptr<LiveSource> source_;
  int asked_ = 0;
  int read_ = 0;
};

}  // namespace sonde::head
