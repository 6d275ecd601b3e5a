// Two web servers for the test of the API's description: one over the steps of the unit tests,
// whose running one also takes alarms and exporters, and one over an empty store that takes points.
// Prints both addresses, with the token "api-test", and ends when its standard input does.
#include <cstdio>
#include <mutex>

#include "core/time.h"
#include "tests/unit/web_fake_source.h"
#include "web/opentsdb/put_store.h"
#include "web/server/server.h"

namespace {

using namespace sonde;

class ApiSource final : public web::FakeSource {
 public:
  ApiSource() : FakeSource(Clock::System().Now()) {}

  void Exporters(const JobStep& id, ExportersCallback callback) const override {
    if (!Runs(id)) return FakeSource::Exporters(id, std::move(callback));
    web::Exporter one;
    one.host = "n1";
    one.target = {"localhost", "9100", "/metrics"};
    callback(std::vector<web::Exporter>{one});
  }
  Status Push(const JobStep& id, const web::PushedValue& value) const override {
    return Runs(id) ? Status() : FakeSource::Push(id, value);
  }
  void Tree(const JobStep& id, TreeCallback callback) const override {
    if (!Runs(id)) return FakeSource::Tree(id, std::move(callback));
    callback(std::vector<web::TreeEdge>{{"login1:head", "n1"}, {"n1", "n2"}});
  }
  void Links(const JobStep& id, LinkTreeCallback callback) const override {
    if (!Runs(id)) return FakeSource::Links(id, std::move(callback));
    web::LinkTree tree;
    tree.head = "login1";
    tree.nodes = {
        {.host = "n1", .carrier = "sockets"},
        {.host = "n2", .parent = 0, .state = web::LinkTree::State::kAway, .note = "reset"}};
    callback(std::move(tree));
  }
  Status PauseCounters(const JobStep&, bool) const override { return {}; }
  void Join(const JobStep&, const web::ScrapeTarget&, const std::string&,
            JoinCallback callback) const override {
    callback(web::JoinedNodes{"n1", ""});
  }
  void Unjoin(const JobStep&, const std::string&, UnjoinCallback callback) const override {
    callback(Status());
  }
  Result<std::vector<web::AlarmState>> Alarms(const JobStep& id) const override {
    if (!Runs(id)) return FakeSource::Alarms(id);
    const std::lock_guard lock(mutex_);
    std::vector<web::AlarmState> all;
    for (auto& state : evaluator_.States()) all.push_back({std::move(state), "n1"});
    return all;
  }
  Status AddAlarm(const JobStep& id, const alarms::Rule& rule) const override {
    if (!Runs(id)) return FakeSource::AddAlarm(id, rule);
    const std::lock_guard lock(mutex_);
    SONDE_RETURN_IF_ERROR(evaluator_.Add(rule));
    std::vector<Series> series(1);
    series[0].metric.name = "node_load1";
    std::vector<Reduced> row(1);
    row[0].Add(50, {0, 3});
    std::vector<alarms::Event> events;
    evaluator_.Evaluate(series, {time_ += kSecond, &row, true}, events);
    return {};
  }
  Status RemoveAlarm(const JobStep& id, const std::string& name) const override {
    if (!Runs(id)) return FakeSource::RemoveAlarm(id, name);
    const std::lock_guard lock(mutex_);
    return evaluator_.Remove(name) ? Status() : Status(Code::kNotFound, "none of that name");
  }

 private:
  static bool Runs(const JobStep& id) { return id.ToString() == "4712.0"; }

  mutable std::mutex mutex_;
  mutable alarms::Evaluator evaluator_{kSecond};
  mutable Nanos time_ = Clock::System().Now();
};

std::unique_ptr<web::Server> Serve(std::shared_ptr<const web::DataSource> source) {
  web::Server::Options options;
  options.port = 0;
  options.token = "api-test";
  auto server = web::Server::Start(options, std::move(source));
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", std::string(server.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(server);
}

}  // namespace

int main() {
  const auto steps = Serve(std::make_shared<ApiSource>());
  const auto store = Serve(std::make_shared<web::PutStore>());
  std::printf("http://127.0.0.1:%u http://127.0.0.1:%u\n", steps->port(), store->port());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
