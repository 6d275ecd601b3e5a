// A request as the site's door reads it: only the head, and of that the parts that decide who asks
// and for whose archive. The user's server gets a new head with those of the client's fields that
// an endpoint reads, each once, and nothing else: no cookies, no passwords, no names.
//
// Thread safety: values, and functions without state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"

namespace sonde::site {

struct SiteRequest {
  std::string method;
  std::string target;
  std::string version;                                      // HTTP/1.1 or HTTP/1.0
  std::vector<std::pair<std::string, std::string>> fields;  // in their order, as they came

  // The first field of that name, in any case; "" if there is none. Then how many there are.
  std::string_view Field(std::string_view name) const;
  size_t Count(std::string_view name) const;
};

// `head` with its empty line, already checked by CheckHead (web/server/request_head.h). kInvalid
// says what is wrong.
Result<SiteRequest> ParseSiteRequest(std::string_view head);

// The user whose archive a target names, and the target there: "/user/NAME/REST"; "" and the same
// target if it names no user. "/user/NAME" has the target "".
struct SiteTarget {
  std::string user;
  std::string rest;
};
SiteTarget ParseSiteTarget(std::string_view target);

// The head for the user's server: for one answer, with that server's token. `by_browser`: a browser
// may have sent the proof of who asks by itself. It has the host as the client knows it, and what
// stands before the target there, so that addresses of this server in an answer lead back here.
std::string HeadFor(const SiteRequest& request, const SiteTarget& target, std::string_view token,
                    bool by_browser);

}  // namespace sonde::site
