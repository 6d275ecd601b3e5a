// HTTP and HTTPS to one destination, over one connection that is kept.
//
// Uses libcurl, which is loaded with the first connection: the daemons and the command start
// without it. Certificates are verified, redirects are not followed, and secrets are read anew from
// their file before each connection's first request and after one that was not accepted.
//
// Thread safety: one thread at a time; several objects in several threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "forward/formats/destination.h"
#include "forward/formats/encoder.h"

namespace sonde::forward {

class Http {
 public:
  static constexpr Nanos kConnectLimit = 5 * kSecond;
  static constexpr Nanos kLimit = 30 * kSecond;
  static constexpr size_t kMaxAnswer = 64u << 10;  // the rest is passed over

  // kUnsupported if this host has no libcurl; the secret's file may be wrong as well.
  static Result<std::unique_ptr<Http>> Open(const Destination& destination);
  virtual ~Http() = default;

  // `go_on` is called some times a second; false ends the request. An answer with any status is an
  // answer. Without one: kUnavailable if the request was not sent, kTimeout if it may have arrived,
  // kInvalid if repeating does not help.
  virtual Result<HttpAnswer> Post(const std::string& url, const std::vector<std::string>& headers,
                                  std::string_view body, const std::function<bool()>& go_on) = 0;
  virtual Result<HttpAnswer> Get(const std::string& url) = 0;
};

}  // namespace sonde::forward
