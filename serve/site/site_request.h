// A request as the site's door reads it: the head alone, and of that what decides who asks and for
// whose archive. It goes on to that user's server as a new head, which has of the client's fields
// those that an endpoint reads, each once, and nothing else: no cookies, no passwords, no names.
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

  // The first of that name, in whatever case; "" if there is none. How many there are.
  std::string_view Field(std::string_view name) const;
  size_t Count(std::string_view name) const;
};

// `head` with its empty line, checked by CheckHead (web/server/request_head.h) before. kInvalid
// says why not.
Result<SiteRequest> ParseSiteRequest(std::string_view head);

// Whose archive a target names, and the target there: "/user/NAME/REST"; "" and the same target if
// it names none. "/user/NAME" has the target "".
struct SiteTarget {
  std::string user;
  std::string rest;
};
SiteTarget ParseSiteTarget(std::string_view target);

// The head that goes on: for one answer, with the token of the server it goes to.
std::string HeadFor(const SiteRequest& request, std::string_view target, std::string_view token);

}  // namespace sonde::site
