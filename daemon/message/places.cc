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

std::string ToText(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) {
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ",", place.index, place.host, place.port);
  }
  return text;
}

std::vector<Place> PlacesOf(std::string_view text) {
  std::vector<Place> places;
  for (const std::string_view one : Split(text, ',')) {
    const auto words = Split(one, ' ');
    Place place;
    if (words.size() != 3 || places.size() == kMaxSuccessors || words[1].empty()) continue;
    if (!Read(words[0], place.index) || !Read(words[2], place.port) || place.port == 0) continue;
    place.host = words[1];
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace sonde::tree
