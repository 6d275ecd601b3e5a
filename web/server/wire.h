// Converts between Boost.Beast's messages and the endpoints' Request and Response.
//
// Thread safety: functions without state.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>

#include "core/status.h"
#include "web/http/http.h"

namespace sonde::web {

using WireRequest = boost::beast::http::request<boost::beast::http::string_body>;
using WireResponse = boost::beast::http::response<boost::beast::http::string_body>;

// The request without its body. kInvalid if its target is no path.
Status FromWire(const WireRequest& message, Request& request);

// The header of an answer, with the fields that every answer has: no guessing of its type, no
// frames, no caching, no referrer. The body is not copied.
WireResponse ToWire(const Response& response, bool keep_alive);

}  // namespace sonde::web
