// The files of web/pages, compiled in: there is no file system behind the server.
//
// Thread safety: constants.
#pragma once

#include <span>
#include <string_view>

#include "web/route/route.h"

namespace sonde::web {

struct Page {
  std::string_view name;  // relative to web/pages
  std::string_view content;
  std::string_view etag;  // with its quotes
};

std::span<const Page> Pages();
// Whether GET of this path gives one of them; "/" is index.html. They are the same for everybody
// and hold nothing of a step.
bool IsPage(std::string_view path);
// The file, or the answer that there is none.
Response PageAt(std::string_view path);

std::span<const Route> PageRoutes();

}  // namespace sonde::web
