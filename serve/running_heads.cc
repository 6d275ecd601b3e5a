#include "serve/running_heads.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <boost/beast/http.hpp>
#include <charconv>
#include <exception>
#include <memory>
#include <utility>

#include "profiles/json/parse.h"
#include "serve/head_client.h"
#include "serve/relayed_type.h"
#include "web/opentsdb/ask.h"

namespace sonde::serve {
namespace {

namespace http = boost::beast::http;

constexpr Nanos kProfileKept = 300 * kMillisecond;
constexpr const char* kPartTarget = "/api/v1/part";
// If this step lacks a name, such as another step's in the same filter, other steps may have it.
constexpr const char* kQueryTarget = "/api/query?arrays=true&nan=text&unknown=none";

Nanos Now() { return Clock::System().Monotonic(); }

// The message in an error's body: {"error":{"message":"..."}}.
Status FromError(const HttpResponse& response, const ProfileEntry& step) {
  std::string message =
      fmt::format("the head of step {} answers {}", step.job.id.ToString(), response.result_int());
  if (const auto value = ParseJson(response.body(), "the head's answer"); value.ok()) {
    boost::system::error_code none;
    const boost::json::value* text = value->find_pointer("/error/message", none);
    if (text != nullptr && text->is_string()) message = text->get_string().c_str();
  }
  switch (response.result_int()) {
    case 400:
      return {Code::kInvalid, message};
    case 404:
      return {Code::kNotFound, message};
    case 413:
      return {Code::kLimit, message};
    case 501:
      return {Code::kUnsupported, message};
    case 504:
      return {Code::kTimeout, message};
    default:
      return {Code::kUnavailable, message};
  }
}

std::vector<const ProfileEntry*> RunningOf(const std::vector<ProfileEntry>& steps) {
  std::vector<const ProfileEntry*> running;
  for (const ProfileEntry& step : steps) {
    if (RunningHeads::Has(step)) running.push_back(&step);
  }
  return running;
}

template <typename T>
Task<void> Deliver(Task<Result<T>> task, std::function<void(Result<T>)> callback) {
  Result<T> result = Status(Code::kInternal, "nobody was asked");
  try {
    result = co_await std::move(task);
  } catch (const std::exception& e) {
    result = Status(Code::kInternal, fmt::format("ask a head: {}", e.what()));
  }
  callback(std::move(result));
}

// The results of all tasks, which run at the same time.
template <typename T>
Task<std::vector<Result<T>>> Together(const Executor& executor,
                                      std::vector<Task<Result<T>>> tasks) {
  const auto begin = [&](size_t i, std::function<void(Result<T>)> callback) {
    Spawn(executor, Deliver<T>(std::move(tasks[i]), std::move(callback)));
  };
  co_return co_await AskEach<Result<T>>(tasks.size(), begin);
}

std::string_view TextOf(const HttpResponse& response, std::string_view header) {
  const auto text = response[boost::beast::string_view(header.data(), header.size())];
  return {text.data(), text.size()};
}

uint32_t CountOf(const HttpResponse& response, std::string_view header) {
  const std::string_view text = TextOf(response, header);
  uint32_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

Result<web::PartAnswer> PartFrom(const HttpResponse& response, const QuerySpec& spec) {
  Result<QueryPart> part = DecodePart(spec, response.body());
  if (!part.ok()) return part.status();
  return web::PartAnswer{*std::move(part), CountOf(response, web::kNodesAnswered),
                         CountOf(response, web::kNodesExpected),
                         std::string(TextOf(response, web::kRowsOnly))};
}

HttpRequest Posting(const std::string& target, std::string body) {
  HttpRequest request(http::verb::post, target, 11);
  request.set(http::field::content_type, "application/json");
  request.body() = std::move(body);
  request.prepare_payload();
  return request;
}

}  // namespace

bool RunningHeads::Has(const ProfileEntry& step) {
  return step.running && step.endpoint.port != 0 && WhereToAsk(step.endpoint).ok();
}

Task<Result<HttpAnswer>> RunningHeads::Exchange(const ProfileEntry& step, HttpRequest request,
                                                std::shared_ptr<Turns> turns,
                                                bool waits_for_others) {
  {
    const std::lock_guard lock(mutex_);
    if (known_[step.key].silent_until > Now()) {
      co_return Status(
          Code::kUnavailable,
          fmt::format("the head of step {} did not answer just now", step.job.id.ToString()));
    }
  }
  Result<HttpQuestion> question = QuestionFor(step.endpoint, std::move(request), timeout_);
  if (!question.ok())
    co_return Status(Code::kUnavailable, std::string(question.status().message()));
  question->turns = std::move(turns);
  question->waits_for_others = waits_for_others;
  Result<HttpAnswer> answer = co_await Ask(client_, &HttpClient::Exchange, *question);
  // Who listens there is somebody else: the head does not answer.
  if (answer.status().code() == Code::kPermission) {
    answer = Status(Code::kUnavailable, std::string(answer.status().message()));
  }
  const std::lock_guard lock(mutex_);
  // A step whose head is gone is soon left out of live/.
  const Code code = answer.status().code();
  if (!answer.ok() && code != Code::kBusy && !(waits_for_others && code == Code::kTimeout)) {
    known_[step.key].silent_until = Now() + kLeftAlone;
  }
  std::erase_if(known_, [](const auto& one) {
    const Known& known = one.second;
    return known.silent_until < Now() && known.taken + kProfileKept < Now();
  });
  co_return answer;
}

Task<Result<Profile>> RunningHeads::GetProfile(const ProfileEntry& step) {
  return ProfileOf(step, nullptr);
}

Task<Result<Profile>> RunningHeads::ProfileOf(const ProfileEntry& step,
                                              std::shared_ptr<Turns> turns) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(step.key);
    if (known != known_.end() && known->second.taken + kProfileKept > Now()) {
      co_return known->second.profile;
    }
  }
  const std::string target = "/api/v1/profile?job=" + PercentEncode(step.job.id.ToString());
  HttpRequest request(http::verb::get, target, 11);
  const Result<HttpAnswer> answer = co_await Exchange(step, std::move(request), std::move(turns));
  if (!answer.ok()) co_return answer.status();
  const HttpResponse& response = answer->response;
  if (response.result() != http::status::ok) co_return FromError(response, step);
  Result<Profile> profile = ProfileFromJson(response.body());
  if (!profile.ok()) co_return profile;
  const std::lock_guard lock(mutex_);
  Known& known = known_[step.key];
  known.taken = Now();
  known.profile = *profile;
  co_return profile;
}

Task<RunningHeads::Profiles> RunningHeads::GetProfiles(const std::vector<ProfileEntry>& steps) {
  const std::vector<const ProfileEntry*> running = RunningOf(steps);
  const std::shared_ptr<Turns> turns = client_.NewTurns(kAtOnce);
  std::vector<Task<Result<Profile>>> tasks;
  tasks.reserve(running.size());
  for (const ProfileEntry* step : running) tasks.push_back(ProfileOf(*step, turns));
  std::vector<Result<Profile>> all = co_await Together<Profile>(executor_, std::move(tasks));
  Profiles profiles;
  for (size_t i = 0; i < running.size(); ++i) {
    if (all[i].ok()) profiles.emplace(running[i]->key, *std::move(all[i]));
  }
  co_return profiles;
}

Task<Result<web::Answer>> RunningHeads::Query(const ProfileEntry& step, const QuerySpec& spec) {
  return QueryOne(step, spec, nullptr);
}

Task<Result<web::Answer>> RunningHeads::QueryOne(const ProfileEntry& step, const QuerySpec& spec,
                                                 std::shared_ptr<Turns> turns) {
  HttpRequest request = Posting(kQueryTarget, web::QueryToJson(spec));
  const Result<HttpAnswer> told = co_await Exchange(step, std::move(request), std::move(turns));
  if (!told.ok()) co_return told.status();
  const HttpResponse& response = told->response;
  if (response.result() != http::status::ok) co_return FromError(response, step);
  Result<std::vector<QueryResult>> results = web::ResultsFromJson(response.body());
  if (!results.ok()) co_return results.status();
  web::Answer answer{*std::move(results), CountOf(response, web::kNodesAnswered),
                     CountOf(response, web::kNodesExpected),
                     std::string(TextOf(response, web::kRowsOnly))};
  // A head of another release does not say.
  const auto nodes = static_cast<uint32_t>(step.job.nodes.size());
  if (answer.nodes_expected == 0) answer.nodes_answered = answer.nodes_expected = nodes;
  co_return answer;
}

namespace {

// Counts the answer's points, and closes the turns when there are too many.
Task<Result<web::Answer>> Counted(Task<Result<web::Answer>> task, size_t most_points,
                                  std::shared_ptr<Turns> turns, std::atomic<size_t>& points) {
  Result<web::Answer> answer = co_await std::move(task);
  if (!answer.ok()) co_return answer;
  for (const QueryResult& result : answer->results) points += result.points.size();
  if (points <= most_points) co_return answer;
  turns->Close();
  co_return Status(Code::kLimit, "");
}

}  // namespace

Task<Result<RunningHeads::Told>> RunningHeads::QueryAll(const std::vector<ProfileEntry>& steps,
                                                        const QuerySpec& spec, size_t most_points) {
  std::atomic<size_t> points = 0;
  const std::vector<const ProfileEntry*> running = RunningOf(steps);
  const std::shared_ptr<Turns> turns = client_.NewTurns(kAtOnce);
  std::vector<Task<Result<web::Answer>>> tasks;
  tasks.reserve(running.size());
  for (const ProfileEntry* step : running) {
    tasks.push_back(Counted(QueryOne(*step, spec, turns), most_points, turns, points));
  }
  std::vector<Result<web::Answer>> answers =
      co_await Together<web::Answer>(executor_, std::move(tasks));
  if (points > most_points) {
    co_return Status(Code::kLimit,
                     fmt::format("the query needs more than {} points of {} running steps: ask for "
                                 "a shorter range, a longer downsample, or name a job or fewer "
                                 "hosts",
                                 most_points, running.size()));
  }
  Told told;
  for (size_t i = 0; i < running.size(); ++i) {
    Result<web::Answer>& answer = answers[i];
    const Code code = answer.status().code();
    if (answer.ok()) {
      told.emplace(running[i]->key, *std::move(answer));
    } else if (code == Code::kLimit || code == Code::kInvalid) {
      co_return answer.status().Within("step " + running[i]->job.id.ToString());
    }
  }
  co_return told;
}

Task<Result<web::PartAnswer>> RunningHeads::QueryPartOf(const ProfileEntry& step,
                                                        const QuerySpec& spec,
                                                        const std::string& body,
                                                        std::shared_ptr<Turns> turns) {
  HttpRequest request = Posting(kPartTarget, body);
  const Result<HttpAnswer> told = co_await Exchange(step, std::move(request), std::move(turns));
  if (!told.ok()) co_return told.status();
  if (told->response.result() == http::status::ok) co_return PartFrom(told->response, spec);
  co_return FromError(told->response, step);
}

Task<Result<RunningHeads::Parts>> RunningHeads::QueryParts(const std::vector<ProfileEntry>& steps,
                                                           const QuerySpec& spec,
                                                           const QueryGrid& grid) {
  const std::vector<const ProfileEntry*> running = RunningOf(steps);
  const std::string body = web::QueryToJson(spec, &grid);
  const std::shared_ptr<Turns> turns = client_.NewTurns(kAtOnce);
  std::vector<Task<Result<web::PartAnswer>>> tasks;
  tasks.reserve(running.size());
  for (const ProfileEntry* step : running) tasks.push_back(QueryPartOf(*step, spec, body, turns));
  std::vector<Result<web::PartAnswer>> answers =
      co_await Together<web::PartAnswer>(executor_, std::move(tasks));
  Parts parts;
  for (size_t i = 0; i < running.size(); ++i) {
    const Code code = answers[i].status().code();
    if (answers[i].ok()) {
      parts.emplace(running[i]->key, *std::move(answers[i]));
    } else if (code != Code::kUnavailable && code != Code::kTimeout) {
      co_return answers[i].status().Within("step " + running[i]->job.id.ToString());
    }
  }
  co_return parts;
}

Task<Result<std::vector<web::TreeEdge>>> RunningHeads::Tree(const ProfileEntry& step) {
  HttpRequest request(http::verb::get, "/topo", 11);
  const Result<HttpAnswer> told = co_await Exchange(step, std::move(request));
  if (!told.ok()) co_return told.status();
  const HttpResponse& response = told->response;
  if (response.result() != http::status::ok) co_return FromError(response, step);
  const Result<boost::json::value> value = ParseJson(response.body(), "the head's answer");
  if (!value.ok()) co_return value.status();
  const boost::json::array* pairs = value->if_array();
  std::vector<web::TreeEdge> edges;
  for (size_t i = 0; pairs != nullptr && i < pairs->size(); ++i) {
    const boost::json::array* pair = pairs->at(i).if_array();
    if (pair == nullptr || pair->size() != 2 || !pair->at(0).is_string() ||
        !pair->at(1).is_string()) {
      co_return Status(Code::kCorrupt, "the head's answer: expected pairs of names");
    }
    edges.push_back({pair->at(0).get_string().c_str(), pair->at(1).get_string().c_str()});
  }
  co_return edges;
}

Task<web::Response> RunningHeads::Relay(const ProfileEntry& step, const web::Request& request) {
  HttpRequest ask = request.method == web::Method::kPost
                        ? Posting(request.target, request.body)
                        : HttpRequest(http::verb::get, request.target, 11);
  if (!request.accept.empty()) ask.set(http::field::accept, request.accept);
  Result<HttpAnswer> told =
      co_await Exchange(step, std::move(ask), nullptr, request.waits_for_others);
  if (!told.ok()) co_return web::ErrorResponse(told.status());
  HttpResponse& response = told->response;
  web::Response answer;
  answer.status = static_cast<int>(response.result_int());
  answer.content_type = RelayedType(response[http::field::content_type]);
  answer.body = std::move(response.body());
  co_return answer;
}

}  // namespace sonde::serve
