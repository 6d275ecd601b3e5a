// /api/v1/tags: the tags that users write on their steps, shown and changed.
#include <boost/json.hpp>

#include "core/text/user_tags.h"
#include "profiles/json/writer.h"
#include "web/api/routes.h"
#include "web/http/json_input.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

// 409: not now, since the step runs or another process has the archive open.
Response ErrorOf(const Status& status) {
  return status.code() == Code::kBusy ? ErrorResponse(409, status.message())
                                      : ErrorResponse(status);
}

Result<JobStep> StepOf(const Request& request) {
  const std::string* job = request.Param("job");
  if (job != nullptr && !job->empty()) return JobStep::Parse(*job);
  return Status(Code::kInvalid, "parameter job is missing: the job and step, such as 4711.0");
}

Response TagsResponse(const JobStep& id, const UserTags& tags) {
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("job", id.ToString()).Key("tags").BeginObject();
  for (const auto& [name, value] : tags) json.Field(name, value);
  json.EndObject().EndObject();
  return response;
}

Task<Response> Change(const Context& context, const Request& request, UserTags set,
                      std::vector<std::string> remove) {
  const Result<JobStep> id = StepOf(request);
  if (!id.ok()) co_return ErrorOf(id.status());
  const Result<UserTags> tags =
      co_await Ask(*context.history, &StepHistory::ChangeTags, *id, set, remove);
  co_return tags.ok() ? TagsResponse(*id, *tags) : ErrorOf(tags.status());
}

Task<Response> GetTags(const Context& context, const Request& request) {
  const Result<JobStep> id = StepOf(request);
  if (!id.ok()) co_return ErrorOf(id.status());
  const Result<Profile> profile = co_await Ask(*context.history, &StepHistory::GetProfile, *id);
  co_return profile.ok() ? TagsResponse(*id, profile->job.tags) : ErrorOf(profile.status());
}

Result<UserTags> TagsOf(const boost::json::object& body) {
  const boost::json::value* given = body.if_contains("tags");
  if (given == nullptr || !given->is_object() || given->get_object().size() > kMaxUserTags) {
    return Wrong("tags", "an object of up to 32 names and values");
  }
  UserTags tags;
  for (const auto& [name, value] : given->get_object()) {
    const boost::json::string* text = value.if_string();
    if (text == nullptr || !ValidUserTag(View(name), View(*text))) {
      return Status(Code::kInvalid, "tag '" + std::string(View(name).substr(0, kMaxUserTagName)) +
                                        "': " + std::string(kUserTagExpected));
    }
    tags.emplace(View(name), View(*text));
  }
  return tags;
}

Task<Response> PutTags(const Context& context, const Request& request) {
  const Result<UserTags> tags = WithObject<UserTags>(request.body, TagsOf);
  if (!tags.ok()) co_return ErrorOf(tags.status());
  const std::vector<std::string> none;
  co_return co_await Change(context, request, *tags, none);
}

Task<Response> DeleteTag(const Context& context, const Request& request) {
  const std::string* name = request.Param("name");
  if (name == nullptr || !ValidUserTag(*name, "")) {
    co_return ErrorResponse(400, "parameter name: expected the name of a tag");
  }
  const UserTags none;
  const std::vector<std::string> names = {*name};
  co_return co_await Change(context, request, none, names);
}

constexpr RouteParam kStep = {"job", "the step, such as 4711.0", kText, true};

constexpr Route kTagsRoutes[] = {
    {.path = "/api/v1/tags",
     .get = Waits<GetTags>,
     .doc = {.about = "The tags of a step",
             .params = {kStep},
             .answer = "#Tags",
             .example = "?job=4711.0"},
     .post_doc = {.about = "Adds tags to a step that has ended, or gives "
                           "them other values",
                  .params = {kStep},
                  .answer = "#Tags",
                  .body = "#NewTags",
                  .example = "?job=4711.0",
                  .example_body = R"({"tags": {"campaign": "winter"}})"},
     .put = Waits<PutTags>,
     .remove = Waits<DeleteTag>,
     .remove_doc = {.about = "Takes a tag from a step that has ended",
                    .params = {kStep, {"name", "of the tag", kText, true}},
                    .answer = "#Tags",
                    .body = "{}",
                    .example = "?job=4711.0&name=campaign"}}};

}  // namespace

std::span<const Route> TagRoutes() { return kTagsRoutes; }

}  // namespace sonde::web
