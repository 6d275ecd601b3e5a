#include "web/prometheus/exposition_text.h"

#include <algorithm>
#include <cmath>

#include "core/prometheus_text.h"
#include "web/http/alternatives.h"

namespace sonde::web {
namespace {

void AppendLine(std::string_view name, std::string_view ending, std::string_view labels,
                double value, std::string& out) {
  out.append(name).append(ending).append(labels).append(" ");
  prometheus::AppendNumber(value, out);
  out += '\n';
}

}  // namespace

std::string_view ContentType(ExpositionFormat format) {
  return format == ExpositionFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

ExpositionFormat ChooseFormat(std::string_view accept) {
  double open_metrics = 0;  // its quality in the header
  double text = 0;
  int text_named = -1;  // how exactly: 2 text/plain, 1 text/*, 0 */*
  for (const Alternative& range : AlternativesOf(accept)) {
    const std::string_view version = range.Parameter("version");
    if (range.name == "application/openmetrics-text" &&
        (version.empty() || version == "1.0.0" || version == "0.0.1")) {
      open_metrics = std::max(open_metrics, range.quality);
    }
    const int named = range.name == "text/plain" ? 2
                      : range.name == "text/*"   ? 1
                      : range.name == "*/*"      ? 0
                                                 : -1;
    if (named < 0 || (named == 2 && !version.empty() && version != "0.0.4")) continue;
    // Of the ranges that match the text the most exact one counts.
    if (named > text_named || (named == text_named && range.quality > text)) text = range.quality;
    text_named = std::max(named, text_named);
  }
  return open_metrics > 0 && open_metrics >= text ? ExpositionFormat::kOpenMetrics
                                                  : ExpositionFormat::kPlain;
}

void Exposition::Add(const Metric& metric, const Tags& labels, double value, Nanos began) {
  if (std::isnan(value)) return;
  Family& family = families_[prometheus::Name(metric.name)];
  if (family.samples.empty()) {
    family.help = metric.help;
    family.unit = metric.unit;
    family.type = metric.type;
  }
  family.samples.emplace(prometheus::Labels(labels), Sample{value, began});
}

void Exposition::FormatText(const std::string& name, const Family& family, std::string& out) const {
  if (!family.help.empty()) {
    out.append("# HELP ").append(name).append(" ");
    prometheus::AppendEscaped(family.help, false, out);
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
  std::string_view base = prometheus::FamilyOf(name, family.type);
  // Two families must not have the same name.
  if (base != name && families_.contains(std::string(base))) base = name;
  const bool counter = base != name;
  prometheus::AppendOpenMetricsHead(base, name, family.type, family.unit, family.help, out);
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
