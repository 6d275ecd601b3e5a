#include "cli/head_client.h"

#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "profiles/archive_dir.h"
#include "profiles/json_parse.h"

namespace sonde::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Request = http::request<http::string_body>;
using Response = http::response<http::string_body>;

asio::awaitable<void> Send(std::string host, std::string port, Request ask, Nanos timeout,
                           Response& out) {
  auto resolver = asio::ip::tcp::resolver(co_await asio::this_coro::executor);
  beast::tcp_stream stream(co_await asio::this_coro::executor);
  stream.expires_after(std::chrono::nanoseconds(timeout));
  const auto addresses = co_await resolver.async_resolve(host, port, asio::use_awaitable);
  co_await stream.async_connect(addresses, asio::use_awaitable);
  co_await http::async_write(stream, ask, asio::use_awaitable);
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxJsonBytes);
  beast::flat_buffer buffer;
  co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
  out = parser.release();
}

// Of an error's body: {"error":{"code":N,"message":"..."}}.
std::string MessageOf(std::string_view body) {
  const Result<boost::json::value> value = ParseJson(body, "the head's answer");
  if (!value.ok()) return std::string(value.status().message());
  boost::system::error_code none;
  const boost::json::value* message = value->find_pointer("/error/message", none);
  if (message == nullptr || !message->is_string()) return "the head refuses it";
  return std::string(message->get_string());
}

Status FromStatus(const Response& response, std::string_view what) {
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

Result<std::string> Exchange(const Endpoint& endpoint, Request ask, Nanos timeout) try {
  // The head serves its host's loopback unless it is told otherwise.
  const std::string host = endpoint.host == HostName() ? "127.0.0.1" : endpoint.host;
  const std::string what = fmt::format("ask the head at {}:{}", endpoint.host, endpoint.port);
  ask.set(http::field::host, fmt::format("{}:{}", host, endpoint.port));
  ask.set(http::field::authorization, "Bearer " + endpoint.token);
  ask.set(http::field::user_agent, "sonde/" SONDE_VERSION);
  ask.set(http::field::connection, "close");
  asio::io_context context(1);
  Response response;
  std::exception_ptr failure;
  bool ended = false;
  asio::co_spawn(context,
                 Send(host, std::to_string(endpoint.port), std::move(ask), timeout, response),
                 [&](std::exception_ptr e) {
                   failure = std::move(e);
                   ended = true;
                 });
  // Resolving a name has no timeout of its own.
  context.run_for(std::chrono::nanoseconds(timeout));
  if (!ended) return Status(Code::kTimeout, what + ": no answer in " + FormatDuration(timeout));
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const boost::system::system_error& e) {
    const bool late = e.code() == beast::error::timeout;
    return Status(late ? Code::kTimeout : Code::kUnavailable, what + ": " + e.code().message());
  }
  SONDE_RETURN_IF_ERROR(FromStatus(response, what));
  return std::move(response.body());
} catch (const std::exception& e) {
  return Status(Code::kUnavailable, std::string("ask the head: ") + e.what());
}

}  // namespace

Result<std::string> AskHead(const Endpoint& endpoint, const std::string& target, Nanos timeout) {
  return Exchange(endpoint, Request(http::verb::get, target, 11), timeout);
}

Result<std::string> TellHead(const Endpoint& endpoint, const std::string& target,
                             const std::string& json, Nanos timeout) {
  Request tell(http::verb::post, target, 11);
  tell.set(http::field::content_type, "application/json");
  tell.body() = json;
  tell.prepare_payload();
  return Exchange(endpoint, std::move(tell), timeout);
}

}  // namespace sonde::cli
