// The alternatives that a client accepts, each with its weight: the list in Accept and
// Accept-Encoding (RFC 9110, 12.4 and 12.5).
//
// Thread safety: values and functions without state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sonde::web {

struct Alternative {
  std::string name;                                             // in small letters
  std::vector<std::pair<std::string, std::string>> parameters;  // except q; without their quotes
  double quality = 1;  // from 0 (not at all) to 1; 0 for a wrong one

  // "" if there is no such parameter.
  std::string_view Parameter(std::string_view parameter) const;
};

// "gzip;q=0.5, *;q=0"; in their order.
std::vector<Alternative> AlternativesOf(std::string_view list);

// Takes the text before the next separator, without blanks around it.
std::string_view TakePart(std::string_view& text, char separator);

}  // namespace sonde::web
