#include "web/server/wire.h"

#include <boost/beast/http/write.hpp>
#include <sstream>

#include "web/http/negotiation.h"
#include "web/server/proxy_prefix.h"
#include "web/server/wire_text.h"

namespace sonde::web {
namespace {

namespace http = boost::beast::http;

// For answers that are no pages: even if a browser renders them, they load and run nothing.
constexpr std::string_view kBarePolicy = "default-src 'none'; frame-ancestors 'none'";

Method ToMethod(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return Method::kGet;
    case http::verb::head:
      return Method::kHead;
    case http::verb::post:
      return Method::kPost;
    case http::verb::put:
      return Method::kPut;
    case http::verb::delete_:
      return Method::kDelete;
    case http::verb::options:
      return Method::kOptions;
    default:
      return Method::kOther;
  }
}

template <typename Name>
std::string Field(const WireRequest& message, Name name) {
  const auto value = message[name];
  return {value.data(), value.size()};
}

void SetCaching(const Response& response, WireResponse& message) {
  const bool lasting = !response.etag.empty() || response.last_modified != 0;
  message.set(http::field::cache_control, lasting         ? "private, no-cache"
                                          : response.feed ? "no-store, no-transform"
                                                          : "no-store");
  // A proxy that compressed events (RFC 9111, no-transform) or collected them (nginx) would hold
  // them back until it has enough.
  if (response.feed) message.set("X-Accel-Buffering", "no");
  if (!response.etag.empty()) message.set(http::field::etag, response.etag);
  if (response.last_modified != 0) {
    message.set(http::field::last_modified, HttpDate(response.last_modified));
  }
}

}  // namespace

Status FromWire(const WireRequest& message, Request& request) {
  request.method = ToMethod(message.method());
  request.authorization = Field(message, http::field::authorization);
  request.token = Field(message, kTokenHeader);
  request.by_browser = message.count(kByBrowserHeader) != 0;
  request.if_none_match = Field(message, http::field::if_none_match);
  request.if_modified_since = Field(message, http::field::if_modified_since);
  request.accept = Field(message, http::field::accept);
  request.host = Field(message, http::field::host);
  request.prefix = Field(message, kPrefixHeader);
  request.accept_encoding = Field(message, http::field::accept_encoding);
  request.content_type = Field(message, http::field::content_type);
  request.content_encoding = Field(message, http::field::content_encoding);
  request.origin = Field(message, http::field::origin);
  request.preflight = message.count(http::field::access_control_request_method) != 0;
  request.fetch_site = Field(message, "Sec-Fetch-Site");
  request.user_agent = Field(message, http::field::user_agent);
  request.last_event_id = Field(message, "Last-Event-ID");
  const std::string_view target{message.target().data(), message.target().size()};
  return ParseTarget(WithoutProxyPrefix(target), request);
}

WireResponse ToWire(const Response& response, bool keep_alive) {
  WireResponse message(static_cast<http::status>(response.status), 11);
  message.set(http::field::server, "sonde");
  message.set(http::field::date, HttpDate(Clock::System().Now()));
  message.set("X-Content-Type-Options", "nosniff");
  message.set("X-Frame-Options", "DENY");
  message.set("Referrer-Policy", "no-referrer");
  message.set("Cross-Origin-Resource-Policy", "same-origin");
  message.set("Content-Security-Policy", kBarePolicy);
  SetCaching(response, message);
  for (const auto& [name, value] : response.headers) {
    name == "Vary" ? message.insert(name, value) : message.set(name, value);
    if (name == "Access-Control-Allow-Origin") message.erase("Cross-Origin-Resource-Policy");
  }
  const bool body = !response.body.empty() || response.next || response.feed;
  if (body) message.set(http::field::content_type, response.content_type);
  message.keep_alive(keep_alive);
  if (response.next || response.feed) {
    message.chunked(true);
  } else if (response.status != 304 && response.status != 204) {
    message.content_length(response.body.size());
  }
  return message;
}

std::string TextOf(const Response& response, bool with_body) {
  WireResponse message = ToWire(response, false);
  if (with_body) message.body() = response.body;
  std::ostringstream text;
  text << message;
  return std::move(text).str();
}

}  // namespace sonde::web
