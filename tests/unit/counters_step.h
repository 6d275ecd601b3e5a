// A step made up by chance, for tests of what counters come to: nodes that come late, end, are lost
// and started anew, miss ticks and are late; some have their series thinned.
//
// What the nodes send goes through the merging and the record that the head has, and what they and
// it store into an archive.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "daemon/head/record/ended_nodes.h"
#include "daemon/head/record/presence.h"
#include "daemon/head/record/step_record.h"
#include "daemon/tree/tick_merger.h"
#include "profiles/live/live_archive.h"
#include "tests/unit/profiles_fixture.h"

namespace sonde {

inline constexpr char kWork[] = "work_total";
inline constexpr double kMostPerTick = 10;  // that one node counts

class CountersStep {
 public:
  explicit CountersStep(uint64_t seed) : random_(seed) {
    MakeNodes();
    job_ = TestJob();
    job_.nodes.clear();
    for (const Node& node : nodes_) {
      NodeInfo& info = job_.nodes.emplace_back();
      info.host = node.host;
      info.tasks = 1;
      info.joined = node.samples.front().time;
      info.left = node.samples.back().time + kMillisecond;
      info.lost = node.lost;
    }
    job_.expected_nodes = static_cast<uint32_t>(job_.nodes.size());
    job_.expected_tasks = job_.expected_nodes;
    record_ = std::make_unique<head::StepRecord>(job_);
    merger_ = std::make_unique<tree::TickMerger>(
        64, [this](const tree::TickMerger::Row& row, bool late) { OnRow(row, late); });
  }

  const JobDescription& job() const { return job_; }
  // What all nodes had counted by then.
  double Counted(Nanos time) const {
    double sum = 0;
    for (const Node& node : nodes_) sum += CountedBy(node, time);
    return sum;
  }
  double total() const { return Counted(INT64_MAX); }
  Nanos end() const { return end_; }
  // Whether a row tells all that those that are not in it had counted. It does not where nobody
  // stands in for them and one is missing after another: what they have is then known too low.
  bool told_apart() const { return told_apart_; }
  // Reduced rows as they were when each was the newest.
  const std::vector<SeriesData>& seen() const { return seen_; }

  void Store(const std::string& archive) {
    live_ = *LiveArchive::Create(archive, job_);
    record_->OnSeal([this](const SealedBlock& block) {
      ASSERT_TRUE(
          live_->PutBlock({kReducedNode, "reduced", block.sequence}, *block.schema, *block.bytes)
              .ok());
    });
    Run();
    for (uint32_t i = 0; i < nodes_.size(); ++i) StoreNode(i);
    record_->Update([&](JobDescription& job) {
      job.end = end_;
      job.state = EndState::kCompleted;
    });
    ASSERT_TRUE(live_->PutProfile(record_->Snapshot()).ok());
    ASSERT_TRUE(live_->Finish().ok());
  }

 private:
  enum class Fate { kSent, kLate, kDropped, kNotTaken };
  struct Sample {
    Nanos time;
    double counted;
    Fate fate = Fate::kSent;
  };
  struct Node {
    std::string host;
    std::vector<Sample> samples;  // the first and the last may lie beside the ticks
    bool lost = false;
    bool thinned = false;
    tree::TickMerger::Id contributor = 0;
    size_t sent = 0;  // samples that the head's rows have had, or that are behind
    Nanos stood_in = 0;
  };

  size_t Below(size_t end) { return random_() % end; }
  static Nanos Tick(size_t tick) { return kTestStart + static_cast<Nanos>(tick) * kSecond; }

  // One of a daemon, from `first` to `last`, and then maybe that of another one on the same node.
  void MakeNodes() {
    ticks_ = 15 + Below(30);
    stand_ins_ = Below(2) == 0;
    told_apart_ = stand_ins_ || Below(3) == 0;
    const size_t hosts = 2 + Below(5);
    for (size_t i = 0; i < hosts; ++i) {
      const std::string host = "n" + std::to_string(i + 1);
      const size_t first = 1 + Below(Below(3) == 0 ? ticks_ / 2 : 4);
      const size_t last = first + 3 + Below(ticks_ - first - 3);
      AddNode(host, first, last, stand_ins_ || !told_apart_ || i == 0);
      nodes_.back().lost = stand_ins_ && Below(5) == 0;
      if (nodes_.back().lost) nodes_.back().samples.pop_back();
      if (nodes_.back().lost && last + 8 < ticks_) AddNode(host, last + 3, ticks_ - 1, true);
    }
    for (const Node& node : nodes_) end_ = std::max(end_, node.samples.back().time);
    end_ += 50 * kMillisecond;
  }

  void AddNode(const std::string& host, size_t first, size_t last, bool misses) {
    Node& node = nodes_.emplace_back();
    node.host = host;
    node.thinned = Below(4) == 0;
    node.samples.push_back({Tick(first) - 1 - static_cast<Nanos>(Below(kSecond - 2)), 0});
    node.samples.front().fate = Fate::kDropped;  // is no tick
    const size_t speeds = Below(2) == 0 ? 1 : 11;
    double counted = 0;
    for (size_t tick = first; tick <= last; ++tick) {
      const Nanos since = Tick(tick) - node.samples.back().time;
      counted +=
          std::floor(static_cast<double>(Below(speeds)) * static_cast<double>(since) / kSecond);
      node.samples.push_back({Tick(tick), counted});
      const bool whole = tick == first || tick == last || tick % 4 == 0;
      if (!misses || whole || Below(told_apart_ ? 3 : 2) != 0) continue;
      // What is late changes a row that was told, and where nodes cannot be told apart the total
      // that was told of it stays.
      constexpr Fate kFates[] = {Fate::kDropped, Fate::kNotTaken, Fate::kLate};
      node.samples.back().fate = kFates[Below(told_apart_ ? 3 : 2)];
    }
    const auto rest = static_cast<Nanos>(1 + Below(kSecond - 2));
    counted += std::floor(static_cast<double>(Below(speeds)) * static_cast<double>(rest) / kSecond);
    node.samples.push_back({Tick(last) + rest, counted});
  }

  // Straight between two samples.
  static double CountedBy(const Node& node, Nanos time) {
    const auto& all = node.samples;
    if (time < all.front().time) return 0;
    if (time >= all.back().time) return all.back().counted;
    size_t i = 1;
    while (all[i].time <= time) ++i;
    const Sample& a = all[i - 1];
    const Sample& b = all[i];
    return a.counted + (b.counted - a.counted) * static_cast<double>(time - a.time) /
                           static_cast<double>(b.time - a.time);
  }

  static std::vector<Series> Columns() {
    Series work = TestSeries(kWork, MetricType::kCounter);
    work.metric.level = 1;
    work.metric.unit = "1";
    Series load = TestSeries("load", MetricType::kGauge);
    return {work, load};
  }

  static std::vector<Reduced> Values(uint32_t node, const Sample& sample) {
    std::vector<Reduced> values(2);
    values[0].Add(sample.counted, {node, Owner::kNobody});
    values[1].Add(1, {node, Owner::kNobody});
    return values;
  }

  // --- Over the links ---

  void Run() {
    for (size_t tick = 1; tick <= ticks_ + 2; ++tick) {
      for (uint32_t i = 0; i < nodes_.size(); ++i) SendTick(i, Tick(tick));
      merger_->EmitUpTo(Tick(tick));
      for (uint32_t i = 0; i < nodes_.size(); ++i) SendLate(i, Tick(tick));
      Look();
    }
    const size_t columns = merger_->series().size();
    record_->Append(std::max(end_, Tick(ticks_ + 2) + 1), ended_.Final(columns), merger_->series());
    record_->Seal();
    end_ = std::max(end_, Tick(ticks_ + 2) + 2);
  }

  void Send(uint32_t index, const Sample& sample) {
    tree::Frame frame;
    frame.number = ++number_;
    frame.tick = sample.time;
    frame.nodes = tree::NodeSet(index);
    frame.values = Values(index, sample);
    merger_->Add(nodes_[index].contributor, frame, index + 1);
  }

  void SendTick(uint32_t index, Nanos tick) {
    Node& node = nodes_[index];
    if (node.samples.front().time > tick) return;
    if (node.contributor == 0) {
      node.contributor = merger_->AddContributor(tick - 1);
      merger_->SetSchema(node.contributor, Schema::Make(Columns()));
    }
    const size_t ticks = node.samples.size() - (node.lost ? 0 : 1);
    for (size_t i = 0; i < ticks; ++i) {
      const Sample& sample = node.samples[i];
      if (sample.time == tick && sample.fate == Fate::kSent) return Send(index, sample);
    }
    if (node.samples[ticks - 1].time < tick) return End(index, node.samples[ticks - 1].time);
    StandIn(index, tick);
  }

  // Its last values go up before the first tick that goes without it.
  void End(uint32_t index, Nanos last_tick) {
    Node& node = nodes_[index];
    if (std::exchange(node.sent, 1) == 1) return;
    tree::FrameInfo info;
    info.stream = tree::Stream::kEnded;
    info.tick = last_tick + 1;
    info.lost = node.lost;
    info.nodes = tree::NodeSet(index);
    ended_.Add(info, merger_->ColumnsOf(*Schema::Make(Columns())),
               Values(index, node.samples.back()));
    merger_->Remove(node.contributor);
  }

  // As its parent does where it is missing.
  void StandIn(uint32_t index, Nanos tick) {
    Node& node = nodes_[index];
    const Sample* last = nullptr;
    for (const Sample& sample : node.samples) {
      if (sample.time < tick && sample.fate == Fate::kSent) last = &sample;
    }
    if (!stand_ins_ || last == nullptr || std::exchange(node.stood_in, last->time) == last->time) {
      return;
    }
    tree::FrameInfo info;
    info.stream = tree::Stream::kEnded;
    info.tick = tick;
    info.lost = true;
    info.nodes = tree::NodeSet(index);
    ended_.Add(info, merger_->ColumnsOf(*Schema::Make(Columns())), Values(index, *last));
  }

  void SendLate(uint32_t index, Nanos tick) {
    for (const Sample& sample : nodes_[index].samples) {
      if (sample.time == tick && sample.fate == Fate::kLate) Send(index, sample);
    }
  }

  // As the head does it.
  void OnRow(const tree::TickMerger::Row& row, bool late) {
    if (!late) {
      tree::TickMerger::Row whole = row;
      ended_.AddTo(whole, merger_->series(), merger_->Present());
      const bool others = presence_.OnRow(row.tick, row.nodes);
      record_->SetPresence(presence_.Runs());
      record_->Append(row.tick, {whole.values, row.spreads}, merger_->series(), others);
      return;
    }
    std::vector<Reduced> values = row.values;
    const bool stood_in = ended_.StoodIn(row.tick, row.nodes, values);
    if (!record_->Amend(row.tick, {values, row.spreads}) || stood_in) return;
    presence_.OnLatePart(row.tick, row.nodes);
    record_->SetPresence(presence_.Runs());
  }

  // What a question has now.
  void Look() {
    QuerySpec spec;
    spec.metric = kWork;
    spec.start = kTestStart;
    spec.end = end_ + 10 * kSecond;
    head::StepRecord::PresenceRuns presence;
    const auto rows = record_->Read([&](const Series& s) { return ReducedNeeds(spec, s); }, 0,
                                    INT64_MAX, &presence);
    const auto answer = EvaluateReduced(spec, rows, *presence);
    SeriesData& now = seen_.emplace_back();
    if (answer.ok() && !answer->empty()) now.points = answer->front().points;
  }

  // --- In the archive ---

  // What has the same host, and is of another daemon, is told by its index alone.
  void StoreNode(uint32_t index) {
    const Node& node = nodes_[index];
    const auto schema = Schema::Make(Columns());
    std::vector<Nanos> times;
    std::vector<double> columns;
    for (size_t i = 0; i < node.samples.size(); ++i) {
      const Sample& sample = node.samples[i];
      const bool edge = i == 0 || i + 1 == node.samples.size();
      const bool kept = !node.thinned || edge || (sample.time - kTestStart) % (4 * kSecond) == 0;
      if (sample.fate == Fate::kNotTaken || !kept) continue;
      times.push_back(sample.time);
      columns.push_back(sample.counted);
    }
    columns.resize(times.size() * 2, 1.0);
    ASSERT_TRUE(
        live_->PutBlock({index, "app", 1}, *schema, MakeBlock(*schema, times, columns)).ok());
  }

  std::mt19937_64 random_;
  size_t ticks_ = 0;
  bool stand_ins_ = true;
  bool told_apart_ = true;
  std::vector<Node> nodes_;
  Nanos end_ = 0;
  JobDescription job_;
  uint64_t number_ = 0;
  head::Presence presence_{kSecond};
  std::unique_ptr<head::StepRecord> record_;
  std::unique_ptr<tree::TickMerger> merger_;
  tree::EndedNodes ended_;
  std::unique_ptr<LiveArchive> live_;
  std::vector<SeriesData> seen_;
};

}  // namespace sonde
