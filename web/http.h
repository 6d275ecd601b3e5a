// Requests and responses as the endpoints see them: nothing of Beast, sockets or threads, so that
// an endpoint is a function that a test or a fuzzer can call.
//
// Thread safety: values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace sonde::web {

enum class Method : uint8_t { kGet, kHead, kPost, kOther };

struct Request {
  Method method = Method::kGet;
  std::string target;  // as it came
  std::string path;    // decoded, without the query; starts with '/'
  std::vector<std::pair<std::string, std::string>> params;  // decoded, in their order
  std::string authorization;
  std::string cookie;
  std::string if_none_match;
  std::string content_type;
  std::string content_encoding;
  std::string body;

  // The first parameter of that name; nullptr if there is none.
  const std::string* Param(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json; charset=UTF-8";
  std::string body;
  std::string etag;  // pages only: they may be cached and revalidated
  std::vector<std::pair<std::string, std::string>> headers;
  // Of a large answer: appends the next part of the body, and says whether another follows. The
  // body is then empty.
  std::function<bool(std::string& out)> next;
};

// How an endpoint answers: once, from any thread.
using Reply = std::function<void(Response)>;

inline constexpr size_t kMaxParams = 64;

// Splits and decodes the target of a request line. kInvalid if it is not of the form /path?query,
// an escape is wrong or there are too many parameters.
Status ParseTarget(std::string_view target, Request& request);

// {"error":{"code":N,"message":"..."}}, and "details" if there are any.
Response ErrorResponse(int status, std::string_view message, std::string_view details = {});
// The same for what a room below reports.
Response ErrorResponse(const Status& status);

// A number parameter of a request, or `fallback` if it is absent; kInvalid outside [low, high].
Result<uint64_t> NumberParam(const Request& request, std::string_view name, uint64_t fallback,
                             uint64_t low, uint64_t high);

}  // namespace sonde::web
