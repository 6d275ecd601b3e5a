// One HTTP request and its response, on a connection of its own.
//
// Thread safety: functions without state.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/status.h"
#include "core/time.h"

namespace sonde::cli {

using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

// Sends `ask` to host:port and gives what comes back, whatever its status. `what` begins the
// message of a failure, as in "ask the head at n1:4242". kTimeout, kUnavailable (nobody answers),
// kLimit (a body of more than `max_body` bytes) or kCorrupt (no HTTP).
Result<HttpResponse> HttpExchange(const std::string& host, const std::string& port, HttpRequest ask,
                                  std::string_view what, Nanos timeout, uint64_t max_body);

}  // namespace sonde::cli
