// A route's description of itself. It is written beside the route's registration, and
// /api/openapi.json is made of it (web/openapi.cc); a route without it fails a test.
//
// Shapes are short texts, such as `answer` and `body`:
//   "#Snapshot"        a schema of web/openapi_schemas.cc by its name
//   "[#Snapshot]"      a list of them
//   "{"type": ...}"    a JSON schema (draft 2020-12) as it stands
//   "text/plain"       a media type: the answer is not JSON
//
// Thread safety: constants.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace sonde::web {

inline constexpr std::string_view kText = R"({"type":"string"})";
inline constexpr std::string_view kCount = R"({"type":"integer","minimum":0})";
inline constexpr std::string_view kFlag = R"({"type":"string","enum":["","true","false"]})";

// A parameter of the address. Default: a text that may be left out.
struct RouteParam {
  std::string_view name;
  std::string_view about;
  std::string_view schema = kText;
  bool needed = false;
};

struct RouteDoc {
  static constexpr size_t kMaxParams = 12;

  std::string_view about;  // a sentence without a full stop; empty: no description
  RouteParam params[kMaxParams] = {};
  std::string_view answer;        // of a 200; "": it has no body
  std::string_view body;          // of a POST
  std::string_view example;       // the text after the path: "?job=4711.0"; a test requests it
  std::string_view example_body;  // of a POST
  bool changes = false;           // of a GET: it changes something (web/router.h)
  int also = 0;                   // a status besides 200 that is no error, without a body
  std::span<const RouteParam> more_params = {};  // those for which `params` has no room
};

}  // namespace sonde::web
