// /topo: which daemon sends to which, in metric-proxy's form: pairs of parent and child.
//
// The root is the head, "HOST:head". With several steps each name begins with its step,
// "4711.0/n1": with no character that the diagrams of metric-proxy's page (by mermaid 10) cannot
// have in a name.
#include <utility>

#include "profiles/json/writer.h"
#include "web/proxy/routes.h"
#include "web/route/waiting.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

using Edges = Result<std::vector<TreeEdge>>;

// Without nodes there is one pair, of the server itself, as in metric-proxy.
Response Write(const std::vector<JobStep>& steps, const std::vector<Edges>& trees) {
  const bool one = steps.size() == 1;
  if (one && !trees[0].ok()) return ErrorResponse(trees[0].status());
  Response response;
  JsonWriter json(response.body);
  json.BeginArray();
  size_t pairs = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!trees[i].ok()) continue;
    const std::string prefix = one ? "" : steps[i].ToString() + "/";
    for (const TreeEdge& edge : *trees[i]) {
      json.BeginArray().Value(prefix + edge.parent).Value(prefix + edge.child).EndArray();
      ++pairs;
    }
  }
  if (pairs == 0) json.BeginArray().Value("sonde").Value("sonde").EndArray();
  json.EndArray();
  return response;
}

Task<Response> GetTopology(const Context& context, const Request& request) {
  std::vector<JobStep> steps;
  const std::string* job = request.Param("job");
  if (job != nullptr && *job != kMainJob) {
    steps.push_back(JobStep::Parse(*job));
  } else {
    const Result<std::vector<JobDescription>> running = co_await RunningSteps(*context.history);
    if (!running.ok()) co_return ErrorResponse(running.status());
    for (const JobDescription& step : *running) steps.push_back(step.id);
  }
  const std::vector<Edges> trees =
      co_await AskEach<Edges>(steps.size(), [&](size_t i, StepControl::TreeCallback callback) {
        context.control->Tree(steps[i], std::move(callback));
      });
  co_return Write(steps, trees);
}

constexpr RouteDoc kTopology = {
    .about = "Who sends to whom in the running steps: pairs of parent and child",
    .params = {{"job", "the step; every one that runs if absent"}},
    .answer = R"({"type":"array","items":{"type":"array","items":{"type":"string"},)"
              R"("minItems":2,"maxItems":2}})",
    .example = "?job=4712.0"};

constexpr Route kTopoRoutes[] = {{"/topo", Waits<GetTopology>, nullptr, kTopology},
                                 {"/topo/", Waits<GetTopology>, nullptr, kTopology}};

}  // namespace

std::span<const Route> TopologyRoutes() { return kTopoRoutes; }

}  // namespace sonde::web
