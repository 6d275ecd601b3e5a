#include "series/alarm/text.h"

#include <fmt/core.h>

#include <array>
#include <cmath>

#include "core/text/names.h"
#include "core/text/remark.h"

namespace sonde::alarms {
namespace {

constexpr size_t kMaxText = kMaxRemarkLength - 64;

std::string Bytes(double value) {
  constexpr std::array<std::string_view, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  return fmt::format("{:.3g} {}", value, kUnits[unit]);
}

// A placeholder's text; false if it is none.
bool Fill(std::string_view name, const Event& event, std::string& out) {
  if (name == "value") {
    out += Quantity(event.value, event.unit);
  } else if (name == "left") {
    out += event.left ? FormatDuration(*event.left) : "not long";
  } else if (const std::string* tag = event.tags.Find(name)) {
    out += *tag;
  } else {
    return false;
  }
  return true;
}

// Never within a character.
std::string Cut(std::string text) {
  if (text.size() <= kMaxText) return text;
  size_t end = 0;
  while (true) {
    const size_t length = names::Utf8Length(text, end);
    if (length == 0 || end + length > kMaxText - 3) break;
    end += length;
  }
  return text.substr(0, end) + "...";
}

std::string Itself(const Rule& rule, const Event& event) {
  std::string text = ToText(rule.conditions.front());
  for (size_t i = 1; i < rule.conditions.size(); ++i) {
    text += " and " + ToText(rule.conditions[i]);
  }
  if (std::isnan(event.value)) return text;
  text += ": " + Quantity(event.value, event.unit);
  for (const auto& [key, value] : event.tags.pairs()) text += fmt::format(", {}={}", key, value);
  return text;
}

}  // namespace

std::string Quantity(double value, std::string_view unit) {
  if (std::isnan(value)) return "nothing";
  if (unit == "bytes") return Bytes(value);
  if (unit == "bytes/s") return Bytes(value) + "/s";
  if (unit == "ratio") return fmt::format("{:.3g} %", value * 100);
  if (unit == "1" || unit.empty()) return fmt::format("{:.4g}", value);
  if (unit == "1/s") return fmt::format("{:.4g}/s", value);
  if (unit == "seconds") return fmt::format("{:.4g} s", value);
  if (unit == "seconds/s") return fmt::format("{:.3g} s/s", value);
  return fmt::format("{:.4g} {}", value, unit);
}

std::string Describe(const Rule& rule, const Event& event) {
  if (rule.message.empty()) return Cut(Itself(rule, event));
  std::string out;
  std::string_view rest = rule.message;
  while (!rest.empty()) {
    const size_t open = rest.find('{');
    out += rest.substr(0, open);
    if (open == std::string_view::npos) break;
    rest.remove_prefix(open);
    const size_t close = rest.find('}');
    if (close != std::string_view::npos && Fill(rest.substr(1, close - 1), event, out)) {
      rest.remove_prefix(close + 1);
    } else {
      out += '{';
      rest.remove_prefix(1);
    }
  }
  return Cut(std::move(out));
}

}  // namespace sonde::alarms
