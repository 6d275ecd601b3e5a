// Decides whether an answer is compressed.
//
// Thread safety: functions without state.
#pragma once

#include <memory>

#include "web/http/gzip.h"
#include "web/http/http.h"

namespace sonde::web {

// Compresses the body, and says so in the headers, if it is worth that and the client wants it. For
// an answer in pieces the caller compresses each piece with the returned object; else nullptr.
std::unique_ptr<Gzip> Pack(const Request& request, Response& response);

}  // namespace sonde::web
