// Decides which other origins' pages may ask (CORS, of the Fetch standard). None unless configured;
// from these pages the token in a header counts, also as a password.
//
// Thread safety: immutable once made.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "web/http/http.h"

namespace sonde::web {

class Cors {
 public:
  // `origins`: "https://grafana.example.org", several separated by commas or blanks, or "*"; "" for
  // none.
  explicit Cors(std::string_view origins);

  // Whether this is a browser's question before the real request, from an origin that may ask; such
  // a question carries no token.
  bool IsPreflight(const Request& request) const;
  static Response Preflight();
  // Whether pages of that origin may ask.
  bool Allows(std::string_view origin) const;
  // Adds the headers with which a browser lets the page see the answer.
  void Mark(const Request& request, Response& response) const;

 private:
  std::vector<std::string> origins_;
};

}  // namespace sonde::web
