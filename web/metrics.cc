// GET /metrics: the present numbers of running steps as Prometheus text, format 0.0.4.
//
// One sample per reduced series: the step's number by the metric's reduction, with the series' own
// tags and `job` as labels. What declares its spread has percentiles besides, as NAME_spread with
// the label `percentile`. Detail by host is not served here: a scrape must not ask 10,000 nodes.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <map>

#include "web/router.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxSteps = 100;

// Metric names of an application may hold '.' and '-', which Prometheus does not take.
std::string PrometheusName(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == ':';
    if (!good) c = '_';
  }
  return out;
}

// In help texts a backslash and a line end are escaped, in label values the quote too.
void Escape(std::string_view text, bool label, std::string& out) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && label) {
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

// The samples of one metric: they must stand together, under one HELP and TYPE.
struct Family {
  std::string help;
  std::string_view type;
  std::map<std::string, double> samples;  // by labels
};
using Families = std::map<std::string, Family>;

void Add(const Metric& metric, Tags tags, const std::string& job, double value, Families& out) {
  if (std::isnan(value)) return;
  Family& family = out[PrometheusName(metric.name)];
  if (family.samples.empty()) {
    family.help = metric.help;
    // A histogram's buckets arrive as series of their own.
    family.type = metric.type == MetricType::kGauge     ? "gauge"
                  : metric.type == MetricType::kCounter ? "counter"
                                                        : "untyped";
  }
  tags.Set("job", job);
  family.samples.emplace(Labels(tags), value);
}

// In a family of their own, so that a sum over the metric's samples stays one.
void AddSpread(const FootprintEntry& entry, const std::string& job, Families& out) {
  Metric spread;
  const bool counts = entry.series.metric.type != MetricType::kGauge;
  spread.name = entry.series.metric.name + (counts ? "_rate_spread" : "_spread");
  spread.help = fmt::format("Percentiles over nodes or tasks of {}{}.", entry.series.metric.name,
                            counts ? ", of its rate per second" : "");
  for (size_t i = 0; i < kSpreadColumns; ++i) {
    Tags tags = entry.series.tags;
    tags.Set("percentile", kSpreadNames[i].substr(1));
    Add(spread, std::move(tags), job, entry.spread->last[i], out);
  }
}

void AddProfile(const Profile& profile, Families& out) {
  const std::string job = profile.job.id.ToString();
  for (const FootprintEntry& entry : profile.footprint) {
    Add(entry.series.metric, entry.series.tags, job, entry.last, out);
    if (entry.spread) AddSpread(entry, job, out);
  }
  Metric coverage;
  coverage.name = "sonde_coverage_ratio";
  coverage.help = "Share of the step's node samples that arrived.";
  Add(coverage, {}, job, profile.job.coverage.Ratio(), out);
}

std::string Format(const Families& families) {
  std::string out;
  for (const auto& [name, family] : families) {
    if (!family.help.empty()) {
      out += "# HELP " + name + " ";
      Escape(family.help, false, out);
      out += '\n';
    }
    out.append("# TYPE ").append(name).append(" ").append(family.type).append("\n");
    for (const auto& [labels, value] : family.samples) {
      out.append(name).append(labels).append(" ");
      AppendNumber(value, out);
      out += '\n';
    }
  }
  return out;
}

// With `job`: that step, finished or not. Without: every step that runs.
void GetMetrics(const Context& context, const Request& request, Reply reply) {
  Families families;
  if (const std::string* job = request.Param("job")) {
    const Result<Profile> profile = context.source->GetProfile(JobStep::Parse(*job));
    if (!profile.ok()) return reply(ErrorResponse(profile.status()));
    AddProfile(*profile, families);
  } else {
    const Result<std::vector<JobDescription>> jobs = context.source->Jobs(kMaxSteps);
    if (!jobs.ok()) return reply(ErrorResponse(jobs.status()));
    for (const JobDescription& step : *jobs) {
      if (step.state != EndState::kRunning) continue;
      const Result<Profile> profile = context.source->GetProfile(step.id);
      if (profile.ok()) AddProfile(*profile, families);
    }
  }
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = Format(families);
  reply(std::move(response));
}

constexpr Route kRoutes[] = {{"/metrics", GetMetrics}};

}  // namespace

std::span<const Route> MetricsRoutes() { return kRoutes; }

}  // namespace sonde::web
