#include "cli/running_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/beast/http.hpp>
#include <charconv>
#include <exception>
#include <thread>
#include <utility>

#include "cli/head_client.h"
#include "profiles/json_parse.h"
#include "web/opentsdb/ask.h"

namespace sonde::cli {
namespace {

namespace http = boost::beast::http;

constexpr Nanos kProfileKept = 300 * kMillisecond;
constexpr const char* kPartTarget = "/api/v1/part";
// A name that this step does not have, such as another step's in the same filter, others may.
constexpr const char* kQueryTarget = "/api/query?arrays=true&nan=text&unknown=none";

Nanos Now() { return Clock::System().Monotonic(); }

// What an error's body says: {"error":{"message":"..."}}.
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

// What `ask` gives of each, kAtOnce of them at a time.
template <typename T, typename Ask>
std::vector<Result<T>> AtOnce(const std::vector<const ProfileEntry*>& steps, const Ask& ask) {
  std::vector<Result<T>> answers(steps.size(), Status(Code::kInternal, "nobody was asked"));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < steps.size(); i = next++) {
      try {
        answers[i] = ask(*steps[i]);
      } catch (const std::exception& e) {
        answers[i] = Status(Code::kInternal, fmt::format("ask a head: {}", e.what()));
      }
    }
  };
  std::vector<std::jthread> others;
  for (size_t i = 1; i < std::min(steps.size(), RunningHeads::kAtOnce); ++i) {
    others.emplace_back(work);
  }
  work();
  others.clear();
  return answers;
}

uint32_t CountOf(const HttpResponse& response, std::string_view header) {
  const auto text = response[boost::beast::string_view(header.data(), header.size())];
  uint32_t count = 0;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

Result<web::PartAnswer> PartFrom(const HttpResponse& response, const QuerySpec& spec) {
  Result<QueryPart> part = DecodePart(spec, response.body());
  if (!part.ok()) return part.status();
  return web::PartAnswer{*std::move(part), CountOf(response, web::kNodesAnswered),
                         CountOf(response, web::kNodesExpected)};
}

HttpRequest Posting(const std::string& target, std::string body) {
  HttpRequest request(http::verb::post, target, 11);
  request.set(http::field::content_type, "application/json");
  request.body() = std::move(body);
  request.prepare_payload();
  return request;
}

}  // namespace

Result<HttpResponse> RunningHeads::Exchange(const ProfileEntry& step, HttpRequest request) {
  {
    const std::lock_guard lock(mutex_);
    if (known_[step.key].silent_until > Now()) {
      return Status(Code::kUnavailable, fmt::format("the head of step {} did not answer just now",
                                                    step.job.id.ToString()));
    }
  }
  Result<HttpResponse> response = ExchangeWithHead(step.endpoint, std::move(request), kTimeout);
  const std::lock_guard lock(mutex_);
  // One that is not there any more is left out of live/ soon.
  if (!response.ok()) known_[step.key].silent_until = Now() + kLeftAlone;
  std::erase_if(known_, [](const auto& one) {
    const Known& known = one.second;
    return known.silent_until < Now() && known.taken + kProfileKept < Now();
  });
  return response;
}

Result<Profile> RunningHeads::GetProfile(const ProfileEntry& step) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(step.key);
    if (known != known_.end() && known->second.taken + kProfileKept > Now()) {
      return known->second.profile;
    }
  }
  const std::string target = "/api/v1/profile?job=" + PercentEncode(step.job.id.ToString());
  const Result<HttpResponse> response = Exchange(step, HttpRequest(http::verb::get, target, 11));
  if (!response.ok()) return response.status();
  if (response->result() != http::status::ok) return FromError(*response, step);
  Result<Profile> profile = ProfileFromJson(response->body());
  if (!profile.ok()) return profile;
  const std::lock_guard lock(mutex_);
  Known& known = known_[step.key];
  known.taken = Now();
  known.profile = *profile;
  return profile;
}

Result<web::Answer> RunningHeads::Query(const ProfileEntry& step, const QuerySpec& spec) {
  const Result<HttpResponse> response =
      Exchange(step, Posting(kQueryTarget, web::QueryToJson(spec)));
  if (!response.ok()) return response.status();
  if (response->result() != http::status::ok) return FromError(*response, step);
  Result<std::vector<QueryResult>> results = web::ResultsFromJson(response->body());
  if (!results.ok()) return results.status();
  web::Answer answer{*std::move(results), CountOf(*response, web::kNodesAnswered),
                     CountOf(*response, web::kNodesExpected)};
  // A head of another release does not say.
  const auto nodes = static_cast<uint32_t>(step.job.nodes.size());
  if (answer.nodes_expected == 0) answer.nodes_answered = answer.nodes_expected = nodes;
  return answer;
}

Result<RunningHeads::Told> RunningHeads::QueryAll(const std::vector<ProfileEntry>& steps,
                                                  const QuerySpec& spec, size_t most_points) {
  std::atomic<size_t> points = 0;
  const std::vector<const ProfileEntry*> running = RunningOf(steps);
  auto answers = AtOnce<web::Answer>(running, [&](const ProfileEntry& step) {
    if (points > most_points) return Result<web::Answer>(Status(Code::kLimit, ""));
    auto answer = Query(step, spec);
    if (!answer.ok()) return answer;
    for (const QueryResult& result : answer->results) points += result.points.size();
    return answer;
  });
  if (points > most_points) {
    return Status(Code::kLimit,
                  fmt::format("the query needs more than {} points of {} running steps: ask for a "
                              "shorter range, a longer downsample, or name a job or fewer hosts",
                              most_points, running.size()));
  }
  Told told;
  for (size_t i = 0; i < running.size(); ++i) {
    Result<web::Answer>& answer = answers[i];
    const Code code = answer.status().code();
    if (answer.ok()) {
      told.emplace(running[i]->key, *std::move(answer));
    } else if (code == Code::kLimit || code == Code::kInvalid) {
      return answer.status().Within("step " + running[i]->job.id.ToString());
    }
  }
  return told;
}

Result<RunningHeads::Parts> RunningHeads::QueryParts(const std::vector<ProfileEntry>& steps,
                                                     const QuerySpec& spec, const QueryGrid& grid) {
  const std::vector<const ProfileEntry*> running = RunningOf(steps);
  const std::string body = web::QueryToJson(spec, &grid);
  auto answers = AtOnce<web::PartAnswer>(running, [&](const ProfileEntry& step) {
    const Result<HttpResponse> response = Exchange(step, Posting(kPartTarget, body));
    if (!response.ok()) return Result<web::PartAnswer>(response.status());
    if (response->result() == http::status::ok) return PartFrom(*response, spec);
    return Result<web::PartAnswer>(FromError(*response, step));
  });
  Parts parts;
  for (size_t i = 0; i < running.size(); ++i) {
    const Code code = answers[i].status().code();
    if (answers[i].ok()) {
      parts.emplace(running[i]->key, *std::move(answers[i]));
    } else if (code != Code::kUnavailable && code != Code::kTimeout) {
      return answers[i].status().Within("step " + running[i]->job.id.ToString());
    }
  }
  return parts;
}

Result<std::vector<web::TreeEdge>> RunningHeads::Tree(const ProfileEntry& step) {
  const Result<HttpResponse> response = Exchange(step, HttpRequest(http::verb::get, "/topo", 11));
  if (!response.ok()) return response.status();
  if (response->result() != http::status::ok) return FromError(*response, step);
  const Result<boost::json::value> value = ParseJson(response->body(), "the head's answer");
  if (!value.ok()) return value.status();
  const boost::json::array* pairs = value->if_array();
  std::vector<web::TreeEdge> edges;
  for (size_t i = 0; pairs != nullptr && i < pairs->size(); ++i) {
    const boost::json::array* pair = pairs->at(i).if_array();
    if (pair == nullptr || pair->size() != 2 || !pair->at(0).is_string() ||
        !pair->at(1).is_string()) {
      return Status(Code::kCorrupt, "the head's answer: expected pairs of names");
    }
    edges.push_back({pair->at(0).get_string().c_str(), pair->at(1).get_string().c_str()});
  }
  return edges;
}

web::Response RunningHeads::Relay(const ProfileEntry& step, const web::Request& request) {
  HttpRequest ask = request.method == web::Method::kPost
                        ? Posting(request.target, request.body)
                        : HttpRequest(http::verb::get, request.target, 11);
  if (!request.accept.empty()) ask.set(http::field::accept, request.accept);
  Result<HttpResponse> response = Exchange(step, std::move(ask));
  if (!response.ok()) return web::ErrorResponse(response.status());
  web::Response answer;
  answer.status = static_cast<int>(response->result_int());
  const auto type = (*response)[http::field::content_type];
  if (!type.empty()) answer.content_type.assign(type.data(), type.size());
  answer.body = std::move(response->body());
  return answer;
}

}  // namespace sonde::cli
