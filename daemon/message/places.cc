#include "daemon/message/places.h"

#include <fmt/core.h>

#include <charconv>

#include "core/text/split.h"

namespace sonde::tree {
namespace {

template <typename Number>
bool Read(std::string_view text, Number& out) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && stop == end;
}

}  // namespace

std::string ToText(const std::vector<KnownPlace>& places) {
  std::string text;
  for (const auto& [place, least] : places) {
    text += fmt::format("{}{} {} {} {}", text.empty() ? "" : ",", place.index, place.host,
                        place.port, least);
  }
  return text;
}

std::vector<KnownPlace> PlacesOf(std::string_view text) {
  std::vector<KnownPlace> places;
  for (const std::string_view one : Split(text, ',')) {
    const auto words = Split(one, ' ');
    KnownPlace known;
    Place& place = known.place;
    if (words.size() != 4 || places.size() == kMaxSuccessors || words[1].empty()) continue;
    if (!Read(words[0], place.index) || !Read(words[2], place.port) || place.port == 0) continue;
    if (!Read(words[3], known.least)) continue;
    place.host = words[1];
    places.push_back(std::move(known));
  }
  return places;
}

}  // namespace sonde::tree
