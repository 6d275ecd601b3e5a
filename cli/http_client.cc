#include "cli/http_client.h"

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

namespace sonde::cli {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

asio::awaitable<void> Send(std::string host, std::string port, HttpRequest ask, Nanos timeout,
                           uint64_t max_body, HttpResponse& out) {
  auto resolver = asio::ip::tcp::resolver(co_await asio::this_coro::executor);
  beast::tcp_stream stream(co_await asio::this_coro::executor);
  stream.expires_after(std::chrono::nanoseconds(timeout));
  const auto addresses = co_await resolver.async_resolve(host, port, asio::use_awaitable);
  co_await stream.async_connect(addresses, asio::use_awaitable);
  co_await http::async_write(stream, ask, asio::use_awaitable);
  http::response_parser<http::string_body> parser;
  parser.body_limit(max_body);
  beast::flat_buffer buffer;
  co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
  out = parser.release();
}

Status FromError(const boost::system::error_code& error, std::string_view what, uint64_t max_body) {
  if (error == http::error::body_limit) {
    return {Code::kLimit, fmt::format("{}: the answer has more than {} bytes", what, max_body)};
  }
  Code code = Code::kUnavailable;
  if (error == beast::error::timeout) code = Code::kTimeout;
  if (error.category() == make_error_code(http::error::end_of_stream).category()) {
    code = Code::kCorrupt;
  }
  return {code, fmt::format("{}: {}", what, error.message())};
}

}  // namespace

Result<HttpResponse> HttpExchange(const std::string& host, const std::string& port, HttpRequest ask,
                                  std::string_view what, Nanos timeout, uint64_t max_body) try {
  ask.set(http::field::host, host.find(':') == std::string::npos
                                 ? fmt::format("{}:{}", host, port)
                                 : fmt::format("[{}]:{}", host, port));
  ask.set(http::field::user_agent, "sonde/" SONDE_VERSION);
  ask.set(http::field::connection, "close");
  asio::io_context context(1);
  HttpResponse response;
  std::exception_ptr failure;
  bool ended = false;
  asio::co_spawn(context, Send(host, port, std::move(ask), timeout, max_body, response),
                 [&](std::exception_ptr e) {
                   failure = std::move(e);
                   ended = true;
                 });
  // Resolving a name has no timeout of its own.
  context.run_for(std::chrono::nanoseconds(timeout));
  if (!ended) {
    return Status(Code::kTimeout,
                  fmt::format("{}: no answer in {}", what, FormatDuration(timeout)));
  }
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const boost::system::system_error& e) {
    return FromError(e.code(), what, max_body);
  }
  return response;
} catch (const std::exception& e) {
  return Status(Code::kUnavailable, fmt::format("{}: {}", what, e.what()));
}

}  // namespace sonde::cli
