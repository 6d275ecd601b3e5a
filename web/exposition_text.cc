#include "web/exposition_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sonde::web {
namespace {

constexpr std::string_view kTotal = "_total";

bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Metric names of an application may hold '.' and '-', which Prometheus does not take.
std::string PrometheusName(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (!IsNameChar(c) && c != ':') c = '_';
  }
  return out;
}

// The quote is escaped in label values, and in OpenMetrics everywhere.
void Escape(std::string_view text, bool quote, std::string& out) {
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

void AppendNumber(double value, std::string& out) {
  if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
    return;
  }
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  if (error == std::errc()) out.append(text, end);
}

std::string Labels(const Tags& tags) {
  std::string out = "{";
  for (const auto& [key, value] : tags.pairs()) {
    if (out.size() > 1) out += ',';
    out += key;
    out += "=\"";
    Escape(value, true, out);
    out += '"';
  }
  return out + "}";
}

void AppendLine(std::string_view name, std::string_view ending, std::string_view labels,
                double value, std::string& out) {
  out.append(name).append(ending).append(labels).append(" ");
  AppendNumber(value, out);
  out += '\n';
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// The next part of a list, without blanks; `rest` loses it.
std::string_view Next(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = Trim(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// One media range of Accept.
struct Range {
  std::string type;
  std::string version;
  double quality = 1;
};

Range ParseRange(std::string_view text) {
  Range range;
  range.type = Lower(Next(text, ';'));
  while (!text.empty()) {
    std::string_view parameter = Next(text, ';');
    const std::string key = Lower(Next(parameter, '='));
    std::string_view value = Trim(parameter);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    if (key == "version") range.version = value;
    if (key != "q") continue;
    double quality = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), quality);
    const bool whole = error == std::errc() && end == value.data() + value.size();
    range.quality = whole && quality >= 0 && quality <= 1 ? quality : 0;
  }
  return range;
}

}  // namespace

std::string_view ContentType(ExpositionFormat format) {
  return format == ExpositionFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

ExpositionFormat ChooseFormat(std::string_view accept) {
  double open_metrics = 0;  // the quality it is wanted with
  double text = 0;
  int text_named = -1;  // how exactly: 2 text/plain, 1 text/*, 0 */*
  while (!accept.empty()) {
    const Range range = ParseRange(Next(accept, ','));
    const bool known =
        range.version.empty() || range.version == "1.0.0" || range.version == "0.0.1";
    if (range.type == "application/openmetrics-text" && known) {
      open_metrics = std::max(open_metrics, range.quality);
    }
    const int named = range.type == "text/plain" ? 2
                      : range.type == "text/*"   ? 1
                      : range.type == "*/*"      ? 0
                                                 : -1;
    if (named < 0 || (named == 2 && !range.version.empty() && range.version != "0.0.4")) continue;
    // Of ranges that hold for the text the most exact counts.
    if (named > text_named || (named == text_named && range.quality > text)) text = range.quality;
    text_named = std::max(named, text_named);
  }
  return open_metrics > 0 && open_metrics >= text ? ExpositionFormat::kOpenMetrics
                                                  : ExpositionFormat::kPlain;
}

void Exposition::Add(const Metric& metric, const Tags& labels, double value, Nanos began) {
  if (std::isnan(value)) return;
  Family& family = families_[PrometheusName(metric.name)];
  if (family.samples.empty()) {
    family.help = metric.help;
    family.unit = PrometheusName(metric.unit);
    family.type = metric.type;
  }
  family.samples.emplace(Labels(labels), Sample{value, began});
}

void Exposition::FormatText(const std::string& name, const Family& family, std::string& out) const {
  if (!family.help.empty()) {
    out.append("# HELP ").append(name).append(" ");
    Escape(family.help, false, out);
    out += '\n';
  }
  // A histogram's buckets arrive as series of their own.
  const std::string_view type = family.type == MetricType::kGauge     ? "gauge"
                                : family.type == MetricType::kCounter ? "counter"
                                                                      : "untyped";
  out.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  for (const auto& [labels, sample] : family.samples) {
    AppendLine(name, "", labels, sample.value, out);
  }
}

void Exposition::FormatOpenMetrics(const std::string& name, const Family& family,
                                   std::string& out) const {
  std::string base = name;
  bool counter = family.type == MetricType::kCounter && name.ends_with(kTotal);
  if (counter) base.resize(base.size() - kTotal.size());
  // Two families must not have one name.
  if (counter && (base.empty() || families_.contains(base))) counter = false, base = name;
  const std::string_view type = counter                             ? "counter"
                                : family.type == MetricType::kGauge ? "gauge"
                                                                    : "unknown";
  out.append("# TYPE ").append(base).append(" ").append(type).append("\n");
  if (!family.unit.empty() && base.ends_with("_" + family.unit)) {
    out.append("# UNIT ").append(base).append(" ").append(family.unit).append("\n");
  }
  if (!family.help.empty()) {
    out.append("# HELP ").append(base).append(" ");
    Escape(family.help, true, out);
    out += '\n';
  }
  for (const auto& [labels, sample] : family.samples) {
    AppendLine(name, "", labels, sample.value, out);
    if (!counter || sample.began == 0) continue;
    AppendLine(base, "_created", labels, static_cast<double>(sample.began) / kSecond, out);
  }
}

std::string Exposition::Format(ExpositionFormat format) const {
  std::string out;
  for (const auto& [name, family] : families_) {
    if (format == ExpositionFormat::kPlain) {
      FormatText(name, family, out);
    } else {
      FormatOpenMetrics(name, family, out);
    }
  }
  if (format == ExpositionFormat::kOpenMetrics) out += "# EOF\n";
  return out;
}

}  // namespace sonde::web
