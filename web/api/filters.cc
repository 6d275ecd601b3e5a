#include "web/api/filters.h"

#include <string>
#include <string_view>
#include <utility>

#include "profiles/select/words.h"
#include "web/opentsdb/request.h"

namespace sonde::web {
namespace {

SelectionWords WordsOf(const Request& request) {
  SelectionWords words;
  const std::pair<std::string_view, std::string*> fields[] = {
      {"search", &words.search}, {"since", &words.since},     {"until", &words.until},
      {"cmd", &words.command},   {"name", &words.name},       {"node", &words.node},
      {"user", &words.user},     {"account", &words.account}, {"partition", &words.partition},
      {"state", &words.state},   {"level", &words.level}};
  for (const auto& [name, field] : fields) {
    if (const std::string* text = request.Param(name)) *field = *text;
  }
  for (const auto& [name, value] : request.params) {
    if (name == "tag" && !value.empty()) words.tags.push_back(value);
  }
  return words;
}

}  // namespace

Result<Selection> FiltersOf(const Request& request, Nanos now) {
  return SelectionOf(WordsOf(request), now, {ParseTimeOrSpan, "parameter "});
}

}  // namespace sonde::web
