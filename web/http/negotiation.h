// What a request says about the answer it wants: compressed or not, and only if it changed.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <string_view>

#include "core/time.h"
#include "web/http/http.h"

namespace sonde::web {

// Whether an Accept-Encoding asks for gzip: named, or by "*", and not with q=0 nor less wanted than
// no encoding. Without the header nothing is compressed.
bool WantsGzip(std::string_view accept_encoding);

// Whether the client has the answer already: one of If-None-Match is its ETag (weak or strong, "*"
// for any), or, where that is absent, it did not change since If-Modified-Since.
bool IsUnchanged(const Request& request, const Response& response);

// "Sun, 06 Nov 1994 08:49:37 GMT" and back; 0 for what is no such date.
std::string HttpDate(Nanos time);
Nanos ParseHttpDate(std::string_view text);

// An ETag, with its quotes, of what the body is.
std::string ETagOf(std::string_view body);

}  // namespace sonde::web
