#include "web/http/origin.h"

#include <algorithm>

namespace sonde::web {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool SameHost(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

}  // namespace

bool IsOtherOrigin(std::string_view fetch_site, std::string_view origin, std::string_view host) {
  if (!fetch_site.empty()) return fetch_site != "same-origin" && fetch_site != "none";
  if (origin.empty()) return false;
  // The scheme is not compared: a proxy in front of this server may speak another one. Of two
  // addresses without a port the scheme would be the only difference.
  const size_t scheme = origin.find("://");
  return scheme == std::string_view::npos || !SameHost(origin.substr(scheme + 3), host);
}

}  // namespace sonde::web
