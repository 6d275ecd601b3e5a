// GET /api/v1/tree: how the daemons of a running step are linked, and how it is with each.
#include <optional>
#include <utility>

#include "profiles/json/writer.h"
#include "web/api/routes.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

// The bound on the answer, some 150 bytes a node.
constexpr size_t kMaxTreeNodes = 1u << 17;

void WriteNode(const LinkTree::Node& node, size_t nodes, JsonWriter& json) {
  json.BeginObject().Field("host", node.host).Key("parent");
  if (node.parent < nodes) {
    json.Value(uint64_t{node.parent});
  } else {
    json.Null();
  }
  json.Field("carrier", node.carrier).Field("state", ToString(node.state));
  json.Field("since", node.since).Field("last_tick", node.last_tick);
  if (!node.note.empty()) json.Field("note", node.note);
  json.EndObject();
}

Response WriteTree(const JobStep& id, bool running, const LinkTree& tree) {
  if (tree.nodes.size() > kMaxTreeNodes) {
    return TooMuchResponse(tree.nodes.size(), kMaxTreeNodes, "nodes");
  }
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", id.ToString()).Field("running", running);
  json.Field("head", tree.head);
  json.Field("now", tree.now).Field("period", tree.period);
  json.Field("newest_tick", tree.newest_tick);
  json.Field("expected", tree.expected).Field("registered", tree.registered);
  json.Key("nodes").BeginArray();
  for (const LinkTree::Node& node : tree.nodes) WriteNode(node, tree.nodes.size(), json);
  json.EndArray().EndObject();
  return response;
}

Task<Response> GetTree(const Context& context, const Request& request) {
  const std::string* job = request.Param("job");
  if (job == nullptr || job->empty()) {
    co_return ErrorResponse(
        {Code::kInvalid, "parameter job is missing: the job and step, such as 4711.0"});
  }
  const JobStep id = JobStep::Parse(*job);
  std::optional<Response> forwarded =
      co_await Ask(*context.control, &StepControl::Forward, id, request);
  if (forwarded) co_return *std::move(forwarded);
  const Result<LinkTree> tree = co_await Ask(*context.control, &StepControl::Links, id);
  if (tree.ok()) co_return WriteTree(id, /*running=*/true, *tree);
  const Result<Profile> profile = co_await Ask(*context.history, &StepHistory::GetProfile, id);
  if (!profile.ok()) co_return ErrorResponse(profile.status());
  const JobDescription& step = profile->job;
  if (step.end == 0) co_return ErrorResponse(tree.status());
  LinkTree ended;  // with the step
  ended.head = step.launch_host;
  ended.expected = step.expected_nodes;
  ended.now = context.clock->Now();
  ended.period = step.period;
  co_return WriteTree(id, /*running=*/false, ended);
}

constexpr Route kTreeRoutes[] = {
    {"/api/v1/tree",
     Waits<GetTree>,
     nullptr,
     {.about = "How the daemons of a running step are linked, and how it is with each",
      .params = {{"job", "the step, such as 4712.0", kText, true}},
      .answer = "#Tree",
      .example = "?job=4712.0"}}};

}  // namespace

std::span<const Route> LinkTreeRoutes() { return kTreeRoutes; }

}  // namespace sonde::web
