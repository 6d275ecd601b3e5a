#include "core/prometheus_text.h"

#include <charconv>
#include <cmath>

#include "core/text/names.h"

namespace sonde::prometheus {

std::string Name(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (!names::IsLetter(c) && !names::IsDigit(c) && c != ':') c = '_';
  }
  if (!out.empty() && names::IsDigit(out[0])) out.insert(0, "_");
  return out;
}

void AppendEscaped(std::string_view text, bool quote, std::string& out) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quote) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string Labels(const Tags& tags) {
  std::string out = "{";
  for (const auto& [key, value] : tags.pairs()) {
    if (out.size() > 1) out += ',';
    out += key;
    out += "=\"";
    AppendEscaped(value, true, out);
    out += '"';
  }
  return out + "}";
}

void AppendNumber(double value, std::string& out) {
  if (std::isnan(value)) return;
  if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
    return;
  }
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  if (error == std::errc()) out.append(text, end);
}

std::string_view FamilyOf(const std::string& sample, MetricType type) {
  std::string_view name = sample;
  if (type == MetricType::kCounter && name.size() > kTotal.size() && name.ends_with(kTotal)) {
    name.remove_suffix(kTotal.size());
  }
  return name;
}

void AppendOpenMetricsHead(std::string_view family, std::string_view sample, MetricType type,
                           std::string_view unit, std::string_view help, std::string& out) {
  const bool counter = type == MetricType::kCounter && family != sample;
  const std::string_view word = counter                      ? "counter"
                                : type == MetricType::kGauge ? "gauge"
                                                             : "unknown";
  out.append("# TYPE ").append(family).append(" ").append(word).append("\n");
  const bool named = family.size() > unit.size() && family.ends_with(unit) &&
                     family[family.size() - unit.size() - 1] == '_';
  if (!unit.empty() && named) {
    out.append("# UNIT ").append(family).append(" ").append(unit).append("\n");
  }
  if (help.empty()) return;
  out.append("# HELP ").append(family).append(" ");
  AppendEscaped(help, true, out);
  out += '\n';
}

}  // namespace sonde::prometheus
