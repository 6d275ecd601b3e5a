// What a client would take, each with how much it wants it: the list in Accept and Accept-Encoding
// (RFC 9110, 12.4 and 12.5).
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
  std::vector<std::pair<std::string, std::string>> parameters;  // but q; without their quotes
  double quality = 1;  // from 0, which is not at all, to 1; 0 for one that is none

  // "" if there is none.
  std::string_view Parameter(std::string_view parameter) const;
};

// "gzip;q=0.5, *;q=0"; in their order.
std::vector<Alternative> AlternativesOf(std::string_view list);

// Takes what stands before the next separator, without blanks around it.
std::string_view TakePart(std::string_view& text, char separator);

}  // namespace sonde::web
