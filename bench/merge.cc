// What it costs an inner node to take one child's frame of 300 metrics: receiving it over a socket,
// decoding, merging and emitting the merged tick; and what it costs if 10 of them have their
// spread, of 4 tasks on each node, half of them of rates.
//
// A process sends as 16 children do, over 16 connections; the parent measures itself. Two kinds of
// children: leaves, whose values are of one node, and inner nodes, whose values are of 17. Two ways
// to come: all frames of a tick are there when the parent wakes up, or it wakes up for each.
// "acked" is the same with an acknowledgement to each child for each frame, which at one tick a
// second goes down about as often: most of it is the kernel's, which on a loopback connection does
// the child's part of receiving it as well.
//
// All cases run over plain links and over sealed ones, by turns in one process, ROUNDS times each.
// `sealed` is what sealing adds to the parent's CPU time, in percent: the median of the rounds'
// ratios, and from the lowest to the highest. usage: bench_merge [TICKS [ROUNDS [CASE]]]
#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/link/listener.h"
#include "daemon/link/socket_link.h"
#include "daemon/link/trust/sealed_link.h"
#include "daemon/loop.h"
#include "daemon/message/message.h"
#include "daemon/tree/children/children.h"
#include "daemon/tree/frame.h"
#include "daemon/tree/query_fanout.h"
#include "daemon/tree/tick_merger.h"
#include "daemon/tree/uplink.h"
#include "series/block/schema.h"

namespace sonde::tree {
namespace {

constexpr uint32_t kChildren = 16;
constexpr size_t kMetrics = 300;
constexpr int kWarmUp = 50;
constexpr Nanos kPeriod = kSecond;
constexpr Nanos kFirstTick = 4'000'000'000 * kSecond;  // after the children have joined
// Of a leaf's values at level 2, that many in a hundred change from one second to the next.
constexpr size_t kChanging = 40;

void Die(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "bench_merge: %.*s\n", static_cast<int>(status.message().size()),
               status.message().data());
  std::exit(1);
}

Nanos CpuTime() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * kSecond + time.tv_nsec;
}

// Of these every one has its spread, gauges and counters by turns.
constexpr size_t kSpreadEvery = 30;
constexpr uint32_t kTasks = 4;

bool HasSpread(size_t metric) { return metric % kSpreadEvery == 0; }
bool IsRate(size_t metric) { return metric / kSpreadEvery % 2 == 1; }

Schema::Ptr MakeSchema(bool spread) {
  std::vector<Series> series(kMetrics);
  for (size_t i = 0; i < kMetrics; ++i) {
    Metric& metric = series[i].metric;
    metric.name = fmt::format("bench_metric_{}_total", i);
    metric.unit = "bytes";
    metric.help = "A metric of the benchmark.";
    metric.type = i % 3 == 0 ? MetricType::kGauge : MetricType::kCounter;
    if (!spread || !HasSpread(i)) continue;
    metric.spread = true;
    metric.type = IsRate(i) ? MetricType::kCounter : MetricType::kGauge;
  }
  return Schema::Make(std::move(series));
}

// Values of tasks that do about the same, and some less.
void FillSpreads(uint32_t child, int tick, uint32_t nodes, Frame& frame) {
  frame.spreads.resize(kMetrics / kSpreadEvery);
  for (size_t i = 0; i < frame.spreads.size(); ++i) {
    frame.spreads[i].Clear();
    for (uint32_t t = 0; t < kTasks * nodes; ++t) {
      const uint32_t mixed = (t + 1) * 2654435761u + static_cast<uint32_t>(tick * 97 + i) + child;
      const double slow = mixed % 16 == 0 ? 0.5 : 1;
      frame.spreads[i].Add(slow * (1 + static_cast<double>(mixed % 1000) / 5000));
    }
  }
}

// What child `child` sends at `tick`: the values of `nodes` nodes.
void Fill(uint32_t child, int tick, uint32_t nodes, Frame& frame) {
  frame.tick = kFirstTick + tick * kPeriod;
  frame.stream = nodes == 1 ? Stream::kOwn : Stream::kChildren;
  frame.nodes.Clear();
  frame.values.assign(kMetrics, Reduced());
  for (uint32_t n = 0; n < nodes; ++n) frame.nodes.Add(NodeSet(child + kChildren * n));
  for (size_t i = 0; i < kMetrics; ++i) {
    const bool changes = i % 100 < kChanging;
    for (uint32_t n = 0; n < nodes; ++n) {
      const double base = static_cast<double>(1000 * i + 7 * child + n) + 0.5;
      frame.values[i].Add(changes ? base * (1 + tick * (1.0 + n)) : base,
                          {child + kChildren * n, Owner::kNobody});
    }
  }
}

// As when both sides have proved the key, with the cipher that this machine prefers.
std::unique_ptr<Link> Carried(std::unique_ptr<SocketLink> link, bool sealed, bool by_child) {
  if (!sealed) return link;
  const SealKey up{{1}, {2}};
  const SealKey down{{3}, {4}};
  return std::make_unique<SealedLink>(
      std::move(link),
      LinkSeals{SealedStream(by_child ? up : down), SealedStream(by_child ? down : up)});
}

struct Case {
  const char* name;
  uint32_t nodes;  // in a frame
  bool spread = false;
  bool together = true;  // all frames of a tick are there when the parent wakes up
  bool acks = false;     // the children are told that a tick has arrived
};

// One process that is all the children: at every byte from the parent it sends a tick.
[[noreturn]] void SendTicks(const Case& c, bool sealed, uint16_t port, int go, int sent) {
  const uint32_t nodes = c.nodes;
  const bool spread = c.spread;
  Loop loop;
  const Schema::Ptr schema = MakeSchema(spread);
  std::vector<std::unique_ptr<Link>> links;
  std::vector<Uplink> uplinks(kChildren);
  for (uint32_t child = 0; child < kChildren; ++child) {
    auto socket = SocketLink::Connect(loop, "127.0.0.1", port);
    Die(socket.status());
    links.push_back(Carried(*std::move(socket), sealed, true));
    links.back()->SetHandler({.message = {}, .closed = [](const Status&) { _exit(0); }});
    uplinks[child].Use(links.back().get(), false);
    uplinks[child].Announce(nodes == 1 ? Stream::kOwn : Stream::kChildren, schema);
  }
  int tick = 0;
  Frame frame;
  Die(loop.Watch(go, EPOLLIN, [&](uint32_t) {
    char byte = 0;
    if (read(go, &byte, 1) != 1) _exit(0);
    for (uint32_t child = 0; child < kChildren; ++child) {
      Fill(child, tick, nodes, frame);
      if (spread) FillSpreads(child, tick, nodes, frame);
      Uplink& uplink = uplinks[child];
      uplink.AddFrame(frame, schema, {frame.values, frame.spreads});
      uplink.Flush();
      uplink.OnAck(uplink.last_number() - 1, uplink.last_number() - 1);
    }
    ++tick;
    if (sent >= 0 && write(sent, "s", 1) != 1) _exit(0);
  }));
  loop.Run();
  _exit(0);
}

struct Alone final : Children::Owner {
  void OnBlock(BlockMessage /*block*/) override {}
  void OnMoments(collect::Moments /*moments*/) override {}
  void OnEnded(const FrameInfo& /*header*/, const Schema::Ptr& /*schema*/,
               std::span<const Reduced> /*values*/, TickMerger::Source /*source*/) override {}
  void OnRefused(TickMerger::Fate /*fate*/, const Frame& /*frame*/,
                 TickMerger::Source /*source*/) override {}
};

// The time of the ticks.
class TickClock final : public Clock {
 public:
  Nanos Now() const override { return time; }
  Nanos Monotonic() const override { return time; }
  Nanos time = kFirstTick - kPeriod;
};

class Parent {
 public:
  // `sent`: where the children tell that all have sent; -1 not to wait for that.
  Parent(int go, int sent, bool acks, bool sealed)
      : go_(go),
        sent_(sent),
        acks_(acks),
        sealed_(sealed),
        queries_(loop_),
        merger_(60, [this](const TickMerger::Row& row, bool) { OnMerged(row); }),
        children_(merger_, queries_, {kSecond, kSecond}, tree::Keep::kUntilSafe, alone_, clock_) {}

  uint16_t Listen() {
    auto listener =
        Listener::Open(loop_, "127.0.0.1", {0, 0},
                       [this](std::unique_ptr<SocketLink> link) { Accept(std::move(link)); });
    Die(listener.status());
    listener_ = *std::move(listener);
    return listener_->port();
  }

  // CPU time of one child's frame.
  double Run(int ticks) {
    left_ = ticks + kWarmUp;
    ticks_ = ticks;
    loop_.Run();
    return static_cast<double>(CpuTime() - start_) / ticks / kChildren / kMicrosecond;
  }
  double bytes_per_frame() const {
    uint64_t bytes = 0;
    for (const auto& link : links_) bytes += link->bytes_received();
    return static_cast<double>(bytes) / kChildren / (ticks_ + kWarmUp);
  }

 private:
  void Accept(std::unique_ptr<SocketLink> socket) {
    std::unique_ptr<Link> link = Carried(std::move(socket), sealed_, false);
    Link* raw = link.get();
    raw->SetMaxMessage(kMaxMessage);
    raw->SetHandler({.message =
                         [this, raw](uint8_t type, std::string_view payload) {
                           Die(children_.OnMessage(*raw, static_cast<Type>(type), payload));
                           if (static_cast<Type>(type) == Type::kSchema && ++ready_ == kChildren) {
                             Next();
                           }
                         },
                     .closed = Die});
    children_.Add(*raw, static_cast<uint32_t>(links_.size()));
    links_.push_back(std::move(link));
  }

  // Every child's part is in it: the merged tick is there once, as it would go up.
  void OnMerged(const TickMerger::Row& row) {
    if (row.values.size() != kMetrics || row.values[0].count < kChildren) {
      Die({Code::kInternal, "a tick without all children"});
    }
    children_.Forwarded(row.sources, 0);
    clock_.time = row.tick;
    if (acks_) children_.Pulse();
    if (--left_ == ticks_) start_ = CpuTime();
    if (left_ == 0) return loop_.Stop();
    Next();
  }
  void Next() {
    char byte = 't';
    if (write(go_, &byte, 1) != 1) Die(SystemError("write to the children"));
    if (sent_ >= 0 && read(sent_, &byte, 1) != 1) Die(SystemError("read from the children"));
  }

  const int go_;
  const int sent_;
  const bool acks_;
  const bool sealed_;
  Loop loop_;
  QueryFanout queries_;
  TickMerger merger_;
  Alone alone_;
  TickClock clock_;
  Children children_;
  std::unique_ptr<Listener> listener_;
  std::vector<std::unique_ptr<Link>> links_;
  uint32_t ready_ = 0;
  int left_ = 0;
  int ticks_ = 0;
  Nanos start_ = 0;
};

struct Cost {
  double time;   // of one frame, us
  double bytes;  // that came for it
};

Cost Measure(const Case& c, bool sealed, int ticks) {
  int go[2];
  int sent[2];
  if (pipe(go) != 0 || pipe(sent) != 0) Die(SystemError("pipe"));
  Parent parent(go[1], c.together ? sent[0] : -1, c.acks, sealed);
  const uint16_t port = parent.Listen();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    close(go[1]);
    SendTicks(c, sealed, port, go[0], c.together ? sent[1] : -1);
  }
  close(go[0]);
  const double time = parent.Run(ticks);
  const Cost cost{time, parent.bytes_per_frame()};
  close(go[1]);
  close(sent[0]);
  close(sent[1]);
  waitpid(child, nullptr, 0);
  return cost;
}

double Median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

void Compare(const Case& c, int ticks, int rounds) {
  std::vector<double> plain;
  std::vector<double> sealed;
  std::vector<double> added;
  double bytes = 0;
  for (int i = 0; i < rounds; ++i) {
    // A machine that grows slower or faster meanwhile favours neither.
    const bool sealed_first = i % 2 == 1;
    const Cost first = Measure(c, sealed_first, ticks);
    const Cost second = Measure(c, !sealed_first, ticks);
    plain.push_back((sealed_first ? second : first).time);
    sealed.push_back((sealed_first ? first : second).time);
    added.push_back(100 * (sealed.back() / plain.back() - 1));
    bytes = (sealed_first ? second : first).bytes;
  }
  std::printf("figure merge.%s %.2f us\n", c.name, Median(plain));
  if (c.together && !c.acks) std::printf("figure merge.%s_bytes %.0f bytes\n", c.name, bytes);
  std::printf("figure merge.%s_sealed %.2f us\n", c.name, Median(sealed));
  const double median = Median(added);  // which sorts them
  std::printf("figure merge.%s_sealed_added %.1f %% (%.1f to %.1f)\n", c.name, median,
              added.front(), added.back());
}

constexpr Case kCases[] = {
    {"leaf_frame", 1},
    {"inner_frame", 17},
    {"leaf_spread_frame", 1, true},
    {"inner_spread_frame", 17, true},
    {"leaf_frame_acked", 1, false, true, true},
    {"inner_frame_acked", 17, false, true, true},
    {"leaf_frame_alone", 1, false, false},
    {"inner_frame_alone", 17, false, false},
};

}  // namespace
}  // namespace sonde::tree

int main(int argc, char** argv) {
  const int ticks = argc > 1 ? std::atoi(argv[1]) : 800;
  const int rounds = std::max(argc > 2 ? std::atoi(argv[2]) : 31, 1);
  std::signal(SIGPIPE, SIG_IGN);
  const std::string_view only = argc > 3 ? argv[3] : "";
  for (const sonde::tree::Case& c : sonde::tree::kCases) {
    if (only.empty() || only == c.name) sonde::tree::Compare(c, ticks, rounds);
  }
  return 0;
}
