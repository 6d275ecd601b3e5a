#include "profiles/report/hints.h"

#include <fmt/core.h>

#include <algorithm>

#include "profiles/model/text.h"

namespace sonde {
namespace {

constexpr size_t kNarrow = 40;
constexpr size_t kWide = 100;  // longer lines are hard to read

}  // namespace

std::string HintsText(std::span<const ReportHint> hints, size_t width) {
  width = std::clamp(width, kNarrow, kWide);
  std::string out;
  size_t number = 0;
  for (const ReportHint& hint : hints) {
    ++number;
    out += text::Wrapped(fmt::format("{}. ", number), "   ", text::Printable(hint.says), width);
    out += text::Wrapped("   ", "   ", text::Printable(hint.why), width);
    out += text::Wrapped("   -> ", "      ", text::Printable(hint.change), width);
  }
  return out;
}

void WriteHints(JsonWriter& json, std::span<const ReportHint> hints) {
  json.BeginArray();
  for (const ReportHint& hint : hints) {
    json.BeginObject().Field("name", hint.name).Field("kind", hint.limit ? "limit" : "mistake");
    json.Field("worth", hint.worth).Field("says", hint.says).Field("why", hint.why);
    json.Field("change", hint.change).EndObject();
  }
  json.EndArray();
}

}  // namespace sonde
