#include "serve/head_client.h"

#include <fmt/core.h>

#include <boost/asio/ip/address.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "profiles/disk/archive_dir.h"
#include "profiles/json/parse.h"
#include "serve/http_client.h"

namespace sonde::serve {
namespace {

namespace http = boost::beast::http;

// The message in an error's body: {"error":{"code":N,"message":"..."}}.
std::string MessageOf(std::string_view body) {
  const Result<boost::json::value> value = ParseJson(body, "the head's answer");
  if (!value.ok()) return std::string(value.status().message());
  boost::system::error_code none;
  const boost::json::value* message = value->find_pointer("/error/message", none);
  if (message == nullptr || !message->is_string()) return "the head refuses it";
  return std::string(message->get_string());
}

Status FromStatus(const HttpResponse& response, std::string_view what) {
  switch (response.result()) {
    case http::status::ok:
      return {};
    case http::status::unauthorized:
    case http::status::forbidden:
      return {Code::kPermission, fmt::format("{}: the head refuses the token", what)};
    case http::status::not_found:
      return {Code::kNotFound, fmt::format("{}: the head does not know it", what)};
    case http::status::bad_request:
      return {Code::kInvalid, MessageOf(response.body())};
    default:
      return {Code::kUnavailable,
              fmt::format("{}: the head answers {}", what, response.result_int())};
  }
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out.push_back(c);
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

namespace {

std::string Asking(const Endpoint& endpoint) {
  return fmt::format("ask the head at {}:{}", endpoint.host, endpoint.port);
}

Result<std::string> Exchange(const Endpoint& endpoint, HttpRequest ask, Nanos timeout) {
  Result<HttpQuestion> question = QuestionFor(endpoint, std::move(ask), timeout);
  if (!question.ok()) return question.status();
  const Result<HttpResponse> response = HttpExchange(*std::move(question));
  if (!response.ok()) return response.status();
  return BodyOf(*response, Asking(endpoint));
}

}  // namespace

Result<std::string> BodyOf(const HttpResponse& response, std::string_view what) {
  SONDE_RETURN_IF_ERROR(FromStatus(response, what));
  return response.body();
}

Result<std::string> WhereToAsk(const Endpoint& endpoint) {
  namespace ip = boost::asio::ip;
  const bool here = endpoint.host == HostName();
  boost::system::error_code error;
  ip::address bound = ip::make_address(endpoint.address, error);
  if (error) {
    return Status(Code::kCorrupt, fmt::format("{}: '{}' is no numeric IP address", Asking(endpoint),
                                              endpoint.address));
  }
  if (bound.is_v6() && bound.to_v6().is_v4_mapped())
    bound = make_address_v4(ip::v4_mapped, bound.to_v6());
  if (bound.is_unspecified()) {
    if (!here) return endpoint.host;
    return std::string(bound.is_v4() ? "127.0.0.1" : "::1");
  }
  if (here || !bound.is_loopback()) return bound.to_string();
  return Status(Code::kUnsupported,
                fmt::format("the step answers programs on {0} only: run this there "
                            "(ssh {0}), or use the site's server",
                            endpoint.host));
}

Result<HttpQuestion> QuestionFor(const Endpoint& endpoint, HttpRequest request, Nanos timeout) {
  const Result<std::string> host = WhereToAsk(endpoint);
  if (!host.ok()) return host.status();
  return HttpQuestion{.host = *host,
                      .port = std::to_string(endpoint.port),
                      .request = std::move(request),
                      .what = Asking(endpoint),
                      .timeout = timeout,
                      .max_body = kMaxJsonBytes,
                      .token = endpoint.token};
}

Result<std::string> AskHead(const Endpoint& endpoint, const std::string& target, Nanos timeout) {
  return Exchange(endpoint, HttpRequest(http::verb::get, target, 11), timeout);
}

Result<std::string> TellHead(const Endpoint& endpoint, const std::string& target,
                             const std::string& json, Nanos timeout) {
  HttpRequest tell(http::verb::post, target, 11);
  tell.set(http::field::content_type, "application/json");
  tell.body() = json;
  tell.prepare_payload();
  return Exchange(endpoint, std::move(tell), timeout);
}

}  // namespace sonde::serve
