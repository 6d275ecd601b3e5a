#include "serve/head_client.h"

#include <fmt/core.h>

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
  HttpQuestion question = QuestionFor(endpoint, std::move(ask), timeout);
  const Result<HttpResponse> response =
      HttpExchange(question.host, question.port, std::move(question.request), question.what,
                   question.timeout, question.max_body);
  if (!response.ok()) return response.status();
  return BodyOf(*response, Asking(endpoint));
}

}  // namespace

Result<std::string> BodyOf(const HttpResponse& response, std::string_view what) {
  SONDE_RETURN_IF_ERROR(FromStatus(response, what));
  return response.body();
}

HttpQuestion QuestionFor(const Endpoint& endpoint, HttpRequest request, Nanos timeout) {
  // A head serves on its host's loopback unless it is configured otherwise.
  const std::string host = endpoint.host == HostName() ? "127.0.0.1" : endpoint.host;
  request.set(http::field::authorization, "Bearer " + endpoint.token);
  return {
      host,         std::to_string(endpoint.port), std::move(request), Asking(endpoint), timeout,
      kMaxJsonBytes};
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
