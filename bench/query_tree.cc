// What a question to a running step costs: the body of POST /api/query in, its answer as JSON out.
//
//   bench_query_tree [NODES [ROUNDS]]
//
// 256 nodes, each with a store of 300 series and 10 minutes at 1 Hz in sealed blocks, answer
// through a tree of fanout 16 over local links, with the code of the daemons: the nodes' parts,
// their encoding and decoding, the merging on the way up, the head's data source and endpoint. All
// of it runs in one thread of this process, so the CPU time of every daemon is known:
//
//   cpu_head   of the head, from the request to the last byte of JSON
//   cpu_nodes  of all nodes together
//   path       the busiest leaf, the busiest inner node and the head, one after the other: what a
//              question takes when each node has a processor of its own; without the network
//
// Questions alternate, and figures are medians of the rounds with the quartiles beside them.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "daemon/head/answers/live_source.h"
#include "daemon/link/local_link.h"
#include "daemon/link/send.h"
#include "daemon/loop.h"
#include "daemon/node/ask/answer.h"
#include "daemon/tree/query_fanout.h"
#include "tests/unit/answering_nodes.h"
#include "web/router.h"

namespace sonde {
namespace {

constexpr size_t kFanout = 16;
constexpr size_t kSeries = 300;
constexpr size_t kRows = 600;
constexpr Nanos kBegin = Nanos{1'795'232'000} * kSecond;

double CpuMs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

// The CPU time of one daemon.
class Busy {
 public:
  template <typename F>
  void Run(F&& f) {
    const double start = CpuMs();
    f();
    ms_ += CpuMs() - start;
  }
  double ms() const { return ms_; }
  void Reset() { ms_ = 0; }

 private:
  double ms_ = 0;
};

// --- The data: counters, gauges in hundredths, and values that are any doubles ---

std::vector<Series> MakeSeries() {
  std::vector<Series> series(kSeries);
  for (size_t i = 0; i < kSeries; ++i) {
    static constexpr const char* kKinds[] = {"counter", "gauge", "noise"};
    series[i].metric.name = std::string(kKinds[i % 3]) + (i < 3 ? "" : "_" + std::to_string(i));
    if (i % 5 == 4) series[i].tags = {{"device", "d" + std::to_string(i % 7)}};
  }
  return series;
}

class Values {
 public:
  explicit Values(uint64_t seed) : random_(seed), now_(kSeries) {
    for (double& v : now_) v = static_cast<double>(random_() % 1'000'000);
  }
  const std::vector<double>& Next() {
    for (size_t i = 0; i < kSeries; ++i) {
      if (i >= 3 && random_() % 3 != 0) continue;  // most of a machine's series stand still
      if (i % 3 == 0) now_[i] += static_cast<double>(random_() % 100'000);
      if (i % 3 == 1) now_[i] = static_cast<double>(random_() % 10'000) / 100;
      if (i % 3 == 2) now_[i] = static_cast<double>(random_() % 1'000'000) / 700'001;
    }
    return now_;
  }

 private:
  std::mt19937_64 random_;
  std::vector<double> now_;
};

// --- The daemons ---

struct Node {
  explicit Node(Loop& loop) : queries(loop) {}
  std::string host;
  uint32_t index = 0;
  GroupStore store{GroupStore::Options{}};
  tree::QueryFanout queries;
  std::vector<tree::Link*> children;
  std::unique_ptr<tree::Link> up;
  Busy busy;
  size_t bytes = 0;  // of its replies

  void OnQuery(std::string_view payload) {
    tree::Question question;
    if (!Decode(payload, question).ok()) std::abort();
    const GroupStore* const stores[] = {&store};
    Result<QueryPart> own = node::AnswerFrom(stores, question.spec, question.grid, {host});
    tree::QueryFanout::Own mine{index, std::move(own)};
    queries.Ask(std::move(question), children, std::move(mine), [this](const tree::Gathered& all) {
      bytes = Encode(ToReply(all)).size();
      SendReply(*up, all);
    });
  }
};

class Step {
 public:
  explicit Step(size_t nodes) : queries_(loop_) {
    JobDescription job;
    job.id = {"4711", "0"};
    job.start = kBegin;
    job.nodes.resize(nodes);
    for (size_t n = 0; n < nodes; ++n) job.nodes[n].host = "node" + std::to_string(1000 + n);
    record_ = std::make_unique<head::StepRecord>(job);
    for (size_t n = 0; n < nodes; ++n) AddNode(n, job.nodes[n].host);
    Fill();
    source_ = std::make_shared<head::LiveSource>(
        *record_,
        std::make_shared<head::AnsweringNodes>(
            [this](QuerySpec spec, QueryGrid grid, tree::QueryFanout::Done done) {
              constexpr Nanos kPatience = 60 * kSecond;
              queries_.Ask({++asked_, std::move(spec), std::move(grid), kPatience}, children_, {},
                           std::move(done));
            }),
        nullptr,
        // Here, where it is counted as the head's.
        [](const std::function<void()>& work) { work(); });
  }

  struct Cost {
    double head = 0, nodes = 0, path = 0;
    size_t json = 0, into_head = 0;
  };
  Cost Ask(const std::string& body) {
    for (auto& node : nodes_) node->busy.Reset(), node->bytes = 0;
    head_.Reset();
    std::string json;
    bool waits = false;
    head_.Run([&] {
      web::Request request;
      request.method = web::Method::kPost;
      request.path = request.target = "/api/query";
      request.content_type = "application/json";
      request.body = body;
      web::Dispatch(web::Context(*source_), request, [&](web::Response response) {
        if (response.status != 200) Die(response.body);
        json = std::move(response.body);
        if (waits) loop_.Stop();
      });
    });
    waits = json.empty();
    if (waits) loop_.Run();
    return CostOf(json.size());
  }

 private:
  [[noreturn]] static void Die(const std::string& why) {
    std::fprintf(stderr, "bench_query_tree: %s\n", why.c_str());
    std::exit(1);
  }

  void AddNode(size_t index, const std::string& host) {
    Node& node = *nodes_.emplace_back(std::make_unique<Node>(loop_));
    node.host = host;
    node.index = static_cast<uint32_t>(index);
    Node* parent = index < kFanout ? nullptr : nodes_[index / kFanout - 1].get();
    auto [down, up] = tree::LocalLink::MakePair(loop_, host, "parent");
    for (tree::LocalLink* end : {down.get(), up.get()}) end->SetMaxMessage(tree::kMaxMessage);
    tree::Link* link = down.get();
    Busy& busy = parent == nullptr ? head_ : parent->busy;
    tree::QueryFanout& queries = parent == nullptr ? queries_ : parent->queries;
    down->SetHandler({[&busy, &queries, link](uint8_t type, std::string_view payload) {
                        busy.Run([&] {
                          const auto what = static_cast<tree::Type>(type);
                          if (!queries.OnMessage(*link, what, payload).ok()) std::abort();
                        });
                      },
                      {}});
    up->SetHandler({[&node](uint8_t, std::string_view payload) {
                      node.busy.Run([&] { node.OnQuery(payload); });
                    },
                    {}});
    (parent == nullptr ? children_ : parent->children).push_back(link);
    node.up = std::move(up);
    links_.push_back(std::move(down));
  }

  void Fill() {
    const std::vector<Series> series = MakeSeries();
    const Schema::Ptr schema = Schema::Make(series);
    std::vector<Values> values;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      values.emplace_back(n);
      nodes_[n]->store.SetSchema(schema);
    }
    std::vector<Reduced> row;
    for (size_t r = 0; r < kRows; ++r) {
      const Nanos tick = kBegin + static_cast<Nanos>(r) * kSecond;
      row.assign(kSeries, {});
      for (uint32_t n = 0; n < nodes_.size(); ++n) {
        const std::vector<double>& now = values[n].Next();
        nodes_[n]->store.Append(tick, now);
        for (size_t i = 0; i < kSeries; ++i) row[i].Add(now[i], {n, Owner::kNobody});
      }
      record_->Append(tick, row, series);
    }
  }

  Cost CostOf(size_t json) const {
    Cost cost;
    double leaf = 0, inner = 0;
    for (size_t n = 0; n < nodes_.size(); ++n) {
      const Node& node = *nodes_[n];
      cost.nodes += node.busy.ms();
      (node.children.empty() ? leaf : inner) =
          std::max(node.children.empty() ? leaf : inner, node.busy.ms());
      if (n < kFanout) cost.into_head += node.bytes;
    }
    cost.head = head_.ms();
    cost.path = leaf + inner + cost.head;
    cost.json = json;
    return cost;
  }

  Loop loop_;
  std::unique_ptr<head::StepRecord> record_;
  tree::QueryFanout queries_;
  std::vector<tree::Link*> children_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<std::unique_ptr<tree::LocalLink>> links_;
  std::shared_ptr<head::LiveSource> source_;
  Busy head_;
  uint64_t asked_ = 0;
};

// --- The questions ---

struct Question {
  const char* name;
  const char* metric;
  const char* aggregator;
  const char* downsample;  // or nothing
  bool rate;
  const char* host;  // "": no filter; "by": grouped; "all": filtered
  std::vector<Step::Cost> costs;
};

std::string BodyOf(const Question& q) {
  const auto seconds = [](Nanos time) { return std::to_string(time / kSecond); };
  std::string body =
      "{\"start\":" + seconds(kBegin) + ",\"end\":" + seconds(kBegin + (kRows - 1) * kSecond);
  body += ",\"queries\":[{\"metric\":\"" + std::string(q.metric) + "\",\"aggregator\":\"" +
          q.aggregator + "\"";
  if (*q.downsample != 0) body += ",\"downsample\":\"" + std::string(q.downsample) + "\"";
  if (q.rate) body += ",\"rate\":true";
  if (*q.host != 0) {
    body += ",\"filters\":[{\"type\":\"wildcard\",\"tagk\":\"host\",\"filter\":\"*\",\"groupBy\":";
    body += std::string(q.host) == "by" ? "true}]" : "false}]";
  }
  return body + "}]}";
}

void Figure(const Question& q, const char* what, double Step::Cost::*part) {
  std::vector<double> values;
  for (const Step::Cost& cost : q.costs) values.push_back(cost.*part);
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  std::printf("figure query_tree.%s_%s %.3f ms  # quartiles %.3f to %.3f\n", q.name, what,
              values[n / 2], values[n / 4], values[n - 1 - n / 4]);
}

void Report(const Question& q) {
  Figure(q, "cpu_head", &Step::Cost::head);
  if (*q.host == 0) return;  // the head alone
  Figure(q, "cpu_nodes", &Step::Cost::nodes);
  Figure(q, "path", &Step::Cost::path);
  std::printf("figure query_tree.%s_into_head %.1f KiB  # and %.1f KiB of JSON\n", q.name,
              static_cast<double>(q.costs.front().into_head) / 1024,
              static_cast<double>(q.costs.front().json) / 1024);
}

}  // namespace
}  // namespace sonde

int main(int argc, char** argv) {
  const size_t nodes = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 256;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  sonde::Step step(nodes);
  std::vector<sonde::Question> questions = {
      {"by_host", "gauge", "avg", "", false, "by", {}},
      {"by_host_counter", "counter", "sum", "", true, "by", {}},
      {"by_host_noise", "noise", "avg", "", false, "by", {}},
      {"by_host_10s", "noise", "avg", "10s-avg", false, "by", {}},
      {"hosts_summed", "noise", "sum", "", false, "all", {}},
      {"hosts_max_10s", "gauge", "max", "10s-avg", false, "all", {}},
      {"job", "gauge", "avg", "", false, "", {}},
      {"job_rate", "counter", "sum", "", true, "", {}},
      {"job_noise_10s", "noise", "max", "10s-max", false, "", {}},
  };
  // Blocks are decompressed since they were sealed.
  const double first = step.Ask(BodyOf(questions[6])).head;
  std::printf("figure query_tree.job_first_cpu_head %.3f ms  # measured once\n", first);
  for (int round = -1; round < rounds; ++round) {
    for (sonde::Question& q : questions) {
      const sonde::Step::Cost cost = step.Ask(BodyOf(q));
      if (round >= 0) q.costs.push_back(cost);  // the first one warms up
    }
  }
  for (const sonde::Question& q : questions) Report(q);
  return 0;
}
