// Requests and responses as the endpoints see them: nothing of Beast, sockets or threads, so that
// an endpoint is a function that a test or a fuzzer can call.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"

namespace sonde::web {

enum class Method : uint8_t { kGet, kHead, kPost, kPut, kDelete, kOptions, kOther };

struct Request {
  Method method = Method::kGet;
  std::string target;  // as received
  std::string path;    // decoded, without the query; starts with '/'
  std::vector<std::pair<std::string, std::string>> params;  // decoded, in their order
  std::string authorization;
  std::string token;  // Sonde-Token
  std::string if_none_match;
  std::string if_modified_since;
  std::string accept;
  std::string host;
  // What stands before the path where another server passes requests on: "/user/ada"; mostly "".
  std::string prefix;
  std::string accept_encoding;
  std::string origin;      // of the page that asks, if the browser reports it
  bool preflight = false;  // Access-Control-Request-Method is there
  std::string fetch_site;  // Sec-Fetch-Site
  std::string user_agent;
  std::string last_event_id;
  std::string content_type;
  std::string content_encoding;
  std::string body;
  // A browser may have sent the proof of who asks by itself, for whatever page: a stored password,
  // or what a proxy goes by (web/server/auth.h).
  bool by_browser = false;
  // Set where the request is passed on, if the answer waits for more than the server that is asked,
  // such as for nodes: that it is late says nothing of that server.
  bool waits_for_others = false;

  // The first parameter of that name; nullptr if there is none.
  const std::string* Param(std::string_view name) const;
};

inline constexpr std::string_view kPrefixHeader = "Sonde-Prefix";
inline constexpr std::string_view kTokenHeader = "Sonde-Token";
inline constexpr std::string_view kByBrowserHeader = "Sonde-By-Browser";

class EventFeed;

struct Response {
  int status = 200;
  std::string content_type = "application/json; charset=UTF-8";
  std::string body;
  // For answers that may be kept and asked for again: pages, and data that changes no more.
  std::string etag;
  Nanos last_modified = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  // For a large answer: appends the next part of the body, and says whether another follows. The
  // body is then empty.
  std::function<bool(std::string& out)> next;
  size_t held_bytes = 0;  // what `next` holds until it is done
  // For an answer that goes on as long as there are events; the body is then empty.
  std::shared_ptr<EventFeed> feed;
};

// The source of server-sent events. Each Pull asks for the news since the previous one; one is
// under way at a time.
class EventFeed {
 public:
  virtual ~EventFeed() = default;
  // Takes text to send, perhaps none, and whether it was the last. From any thread, once.
  using Done = std::function<void(std::string text, bool over)>;
  // `stopping`: the server ends, and this is the last Pull.
  virtual void Pull(bool stopping, Done done) = 0;
};

// An endpoint answers with this: once, from any thread.
using Reply = std::function<void(Response)>;

inline constexpr size_t kMaxParams = 64;

// Splits and decodes the target of a request line. kInvalid if it is not of the form /path?query,
// an escape is wrong or there are too many parameters.
Status ParseTarget(std::string_view target, Request& request);

// The part of a message that goes into an answer: enough to see what was sent, not all of it.
std::string_view Shortened(std::string_view message);
// {"error":{"code":N,"message":"..."}}, and "details" if there are any.
Response ErrorResponse(int status, std::string_view message, std::string_view details = {});
// The same for a failure that a module below reports.
Response ErrorResponse(const Status& status);
// 413: the answer would have `count` items (points, series), which is more than `limit`. Nothing is
// cut off in silence.
Response TooMuchResponse(
    size_t count, size_t limit, std::string_view things,
    std::string_view advice = "ask for a downsample, a shorter range or fewer series");

// An answer in JSON, or why there is none.
Response JsonResponse(Result<std::string> json);

// A parameter that is true, false or empty, which means true; absent it is false.
Result<bool> FlagParam(const Request& request, std::string_view name);
// A number parameter of a request, or `fallback` if it is absent; kInvalid outside [low, high].
Result<uint64_t> NumberParam(const Request& request, std::string_view name, uint64_t fallback,
                             uint64_t low, uint64_t high);

}  // namespace sonde::web
