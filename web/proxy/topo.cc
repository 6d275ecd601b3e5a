// /topo: who sends to whom, as metric-proxy tells it: pairs of parent and child.
//
// The root is the head, "HOST:head". Of several steps each name begins with its step.
#include <memory>
#include <mutex>

#include "profiles/json_writer.h"
#include "web/router.h"
#include "web/running_step.h"

namespace sonde::web {
namespace {

// The trees of the steps that were asked for. Without any node there is one pair, of the server
// itself, as metric-proxy has it.
struct Trees {
  std::mutex mutex;
  size_t left = 0;
  std::vector<std::pair<JobStep, std::vector<TreeEdge>>> steps;
  Status failure;
  Reply reply;
  Executor executor;

  // On the server's threads, for a tree may be large.
  static void Put(const std::shared_ptr<Trees>& trees, size_t i,
                  Result<std::vector<TreeEdge>> edges) {
    {
      const std::lock_guard lock(trees->mutex);
      if (edges.ok()) {
        trees->steps[i].second = *std::move(edges);
      } else {
        trees->failure = edges.status();
      }
      if (--trees->left != 0) return;
    }
    if (!trees->executor) return trees->Finish();
    trees->executor([trees] { trees->Finish(); });
  }

  void Finish() const {
    const bool one = steps.size() == 1;
    if (one && !failure.ok()) return reply(ProxyError(failure));
    Response response;
    JsonWriter json(response.body);
    json.BeginArray();
    size_t pairs = 0;
    for (const auto& [id, edges] : steps) {
      const std::string prefix = one ? "" : id.ToString() + "@";
      for (const TreeEdge& edge : edges) {
        json.BeginArray().Value(prefix + edge.parent).Value(prefix + edge.child).EndArray();
        ++pairs;
      }
    }
    if (pairs == 0) json.BeginArray().Value("sonde").Value("sonde").EndArray();
    json.EndArray();
    reply(std::move(response));
  }
};

void GetTopology(const Context& context, const Request& request, Reply reply) {
  const auto trees = std::make_shared<Trees>();
  trees->reply = std::move(reply);
  trees->executor = context.executor;
  const std::string* job = request.Param("job");
  if (job != nullptr && *job != kMainJob) {
    trees->steps.emplace_back(JobStep::Parse(*job), std::vector<TreeEdge>());
  } else {
    const Result<std::vector<JobDescription>> running = RunningSteps(*context.source);
    if (!running.ok()) return trees->reply(ProxyError(running.status()));
    for (const JobDescription& step : *running) {
      trees->steps.emplace_back(step.id, std::vector<TreeEdge>());
    }
  }
  trees->left = trees->steps.size();
  if (trees->steps.empty()) return trees->Finish();
  for (size_t i = 0; i < trees->steps.size(); ++i) {
    context.source->Tree(trees->steps[i].first, [trees, i](Result<std::vector<TreeEdge>> edges) {
      Trees::Put(trees, i, std::move(edges));
    });
  }
}

constexpr RouteDoc kTopology = {
    .about = "Who sends to whom in the running steps: pairs of parent and child",
    .params = {{"job", "the step; every one that runs if absent"}},
    .answer = R"({"type":"array","items":{"type":"array","items":{"type":"string"},)"
              R"("minItems":2,"maxItems":2}})",
    .example = "?job=4712.0"};

constexpr Route kRoutes[] = {{"/topo", GetTopology, nullptr, kTopology},
                             {"/topo/", GetTopology, nullptr, kTopology}};

}  // namespace

std::span<const Route> TopologyRoutes() { return kRoutes; }

}  // namespace sonde::web
