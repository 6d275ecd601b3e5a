#include "insight/hints/message.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/text/slurm_time.h"
#include "profiles/model/text.h"

namespace sonde::insight {
namespace {

constexpr std::array<std::string_view, 5> kForms = {"", "whole", "percent", "mem", "time"};

// As Slurm reads sizes of memory: the largest unit that keeps it within a tenth, rounded up.
std::string SlurmMemory(double bytes) {
  constexpr double kMega = 1 << 20;
  const double megabytes = std::ceil(bytes / kMega);
  if (megabytes >= 10 * 1024) return fmt::format("{:.0f}G", std::ceil(megabytes / 1024));
  return fmt::format("{:.0f}M", std::max(1.0, megabytes));
}

// "1,024", "315,000", "0.38": what is counted as it is, the rest as precisely as one says it.
std::string InWords(double value) {
  const double size = std::abs(value);
  if (!(size < 1e15)) return text::Number(value);
  if (value != std::floor(value)) {
    if (size < 10) return fmt::format("{:.2g}", value);
    const double step = std::max(1.0, std::pow(10, std::floor(std::log10(size)) - 2));
    value = std::round(value / step) * step;
  }
  std::string digits = fmt::format("{:.0f}", value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace

Result<Message> Message::Parse(std::string_view text) {
  Message message;
  std::string plain;
  const auto wrong = [&](std::string_view what) {
    return Status(Code::kInvalid, fmt::format("'{}': {}", text, what));
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      plain += c;
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == c) {
      plain += c;
      ++i;
      continue;
    }
    const size_t end = text.find('}', i);
    if (c == '}' || end == std::string_view::npos) {
      return wrong("a brace stands alone; {name} is filled in, {{ is a brace");
    }
    std::string_view inside = text.substr(i + 1, end - i - 1);
    const size_t bar = inside.find('|');
    Part part{std::string(inside.substr(0, bar)), true, ""};
    if (bar != std::string_view::npos) part.form = inside.substr(bar + 1);
    if (part.text.empty()) return wrong("there is no name between braces");
    if (std::find(kForms.begin(), kForms.end(), part.form) == kForms.end()) {
      return wrong(fmt::format("'{}' is no form; expected whole, percent, mem or time", part.form));
    }
    if (!plain.empty()) message.parts_.push_back({std::exchange(plain, ""), false, ""});
    message.parts_.push_back(std::move(part));
    i = end;
  }
  if (!plain.empty()) message.parts_.push_back({std::move(plain), false, ""});
  return message;
}

std::string Message::Fill(const std::function<std::string(const Part&)>& fill) const {
  std::string out;
  for (const Part& part : parts_) {
    const std::string text = part.name ? fill(part) : part.text;
    if (text.empty()) return "";
    out += text;
  }
  return out;
}

std::string InForm(double value, std::string_view unit, std::string_view form) {
  if (std::isnan(value)) return "";
  if (form == "whole") return fmt::format("{:.0f}", std::ceil(value));
  if (form == "percent") return text::Percent(value);
  if (form == "mem") return SlurmMemory(value);
  if (form == "time")
    return FormatSlurmTime(static_cast<uint64_t>(std::clamp(std::ceil(value), 1.0, 1e12)));
  if (unit == "1") return InWords(value);
  return text::Value(value, unit);
}

}  // namespace sonde::insight
