// Asks the head of a running step over HTTP.
//
// Thread safety: functions without state. AskHead and TellHead block up to their timeout.
#pragma once

#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/archive.h"
#include "serve/http_client.h"

namespace sonde::serve {

// Where a head can be asked from this host: a name or an address. kUnsupported if it listens on the
// loopback of another host: whoever listens at that host's address is somebody else.
Result<std::string> WhereToAsk(const Endpoint& endpoint);

// GET of `target`, to who knows the endpoint's token (HttpQuestion::token); the body of a 200
// answer. kUnsupported as above, kTimeout, kUnavailable if nobody answers, or not to the end,
// kPermission if who answers is not the head, kNotFound for 404.
Result<std::string> AskHead(const Endpoint& endpoint, const std::string& target, Nanos timeout);

// POST of a JSON body, in the same way. A 400 is kInvalid with what the head says. After kTimeout
// and kUnavailable the head may have done what it was told.
Result<std::string> TellHead(const Endpoint& endpoint, const std::string& target,
                             const std::string& json, Nanos timeout);

// What a head's answer means: the body of a 200, else codes as above. `what` begins the message.
Result<std::string> BodyOf(const HttpResponse& response, std::string_view what);

// Any request to a head, for any answer.
Result<HttpQuestion> QuestionFor(const Endpoint& endpoint, HttpRequest request, Nanos timeout);

// Writes every character but letters, digits, '-', '.', '_' and '~' as %XX.
std::string PercentEncode(std::string_view text);

}  // namespace sonde::serve
