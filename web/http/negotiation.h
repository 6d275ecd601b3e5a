// What a request asks about the answer: whether compressed, and whether only if it changed.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/time.h"
#include "web/http/http.h"

namespace sonde::web {

// Whether an Accept-Encoding asks for gzip: by name or by "*", not with q=0, and at least as much
// as no encoding. Without the header nothing is compressed.
bool WantsGzip(std::string_view accept_encoding);

// Whether the client has the answer already: one of If-None-Match is its ETag (weak or strong, "*"
// for any), or, without that header, it did not change since If-Modified-Since.
bool IsUnchanged(const Request& request, const Response& response);

// "Sun, 06 Nov 1994 08:49:37 GMT" and back; 0 for a wrong date.
std::string HttpDate(Nanos time);
Nanos ParseHttpDate(std::string_view text);

// An ETag, with its quotes, for the body.
std::string ETagOf(std::string_view body);

}  // namespace sonde::web
