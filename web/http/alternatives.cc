#include "web/http/alternatives.h"

#include <algorithm>
#include <charconv>

#include "core/text/ascii.h"

namespace sonde::web {
namespace {

double ParseQuality(std::string_view text) {
  double quality = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, quality, std::chars_format::fixed);
  return error == std::errc() && end == last && quality >= 0 && quality <= 1 ? quality : 0;
}

Alternative ParseAlternative(std::string_view text) {
  Alternative one;
  one.name = Lower(TakePart(text, ';'));
  while (!text.empty()) {
    std::string_view parameter = TakePart(text, ';');
    std::string key = Lower(TakePart(parameter, '='));
    std::string_view value = Trim(parameter);
    if (key == "q") {
      one.quality = ParseQuality(value);
      continue;
    }
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    one.parameters.emplace_back(std::move(key), value);
  }
  return one;
}

}  // namespace

std::string_view TakePart(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view part = Trim(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::string_view Alternative::Parameter(std::string_view parameter) const {
  for (const auto& [key, value] : parameters) {
    if (key == parameter) return value;
  }
  return {};
}

std::vector<Alternative> AlternativesOf(std::string_view list) {
  std::vector<Alternative> all;
  while (!list.empty()) all.push_back(ParseAlternative(TakePart(list, ',')));
  return all;
}

}  // namespace sonde::web
