// /trace/ftio, /ftio/modified_args: whether a metric of a step repeats itself, in the shape in
// which metric-proxy's proxy has FTIO's answer (insight/periods.h says how that is found).
//
// What is looked at is a gauge, or the change per second of a counter: a counter itself only rises.
// FTIO derives both.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <string>

#include "web/http/json_input.h"
#include "web/proxy/traces/ftio_args.h"
#include "web/proxy/traces/routes.h"
#include "web/proxy/traces/trace_query.h"
#include "web/route/waiting.h"

namespace sonde::web {
namespace {

constexpr std::string_view kDerived = "deriv__";  // before the name of a metric's change per second

struct AskedPeriod {
  std::string metric;
  bool derivate = false;

  std::string Name() const { return (derivate ? std::string(kDerived) : "") + metric; }
};

Result<AskedPeriod> AskedPeriodOf(const Request& request) {
  const std::string* metric = request.Param("metricid");
  AskedPeriod asked{metric == nullptr ? "" : *metric};
  if (const std::string* derivate = request.Param("derivate")) {
    asked.derivate = *derivate == kDerived || *derivate == "true" || *derivate == "1";
    if (!asked.derivate && !derivate->empty() && *derivate != "false" && *derivate != "0") {
      return Wrong("derivate", "deriv__, true or false");
    }
  }
  if (asked.metric.starts_with(kDerived)) {
    asked.metric.erase(0, kDerived.size());
    asked.derivate = true;
  }
  if (asked.metric.empty()) {
    return Status(Code::kInvalid, "No metricid GET parameter passed: a metric's name");
  }
  return asked;
}

// --- The series, evenly spaced ---

struct EvenSeries {
  double interval = 0;  // seconds
  Nanos first = 0;
  std::vector<double> values;
};

// The distance that most points have. Some metrics are not read at every tick.
Nanos SpacingOf(const TraceLine& line, Nanos least) {
  std::vector<Nanos> distances;
  for (size_t i = 1; i < line.size(); ++i) distances.push_back(line[i].time - line[i - 1].time);
  if (distances.empty()) return least;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  return std::max(*middle, least);
}

// Of the points within the times that are asked for, which count from `zero`.
EvenSeries EvenlySpaced(const TraceLine& line, Nanos zero, Nanos least, const FtioArgs& args) {
  EvenSeries even;
  if (line.empty()) return even;
  const Nanos spacing = SpacingOf(line, least);
  even.interval = InSeconds(spacing);
  const auto after = [&](double seconds) {
    return zero + static_cast<Nanos>(std::min(seconds, 1e9) * static_cast<double>(kSecond));
  };
  const Nanos start = args.start ? after(*args.start) : line.front().time;
  const Nanos end = args.end ? after(*args.end) : line.back().time;
  for (const auto& [time, value] : line) {
    if (time < start || time > end) continue;
    if (even.values.empty()) even.first = time;
    const auto at = static_cast<size_t>((time - even.first + spacing / 2) / spacing);
    even.values.resize(std::max(even.values.size(), at + 1),
                       std::numeric_limits<double>::quiet_NaN());
    even.values[at] = value;
  }
  return even;
}

// --- The answer ---

// In the metric's own time, in which a part of it does not begin at 0.
insight::Wave Since(insight::Wave wave, double start) {
  const double turns = wave.frequency * start;
  wave.phase = std::remainder(wave.phase - 2 * std::numbers::pi * turns, 2 * std::numbers::pi);
  return wave;
}

std::string NameOf(const insight::Wave& wave) {
  return fmt::format("{:.2e}*cos(2\u03c0*{:.2e}*t{}{:.2e})", wave.amplitude, wave.frequency,
                     wave.phase >= 0 ? '+' : '-', std::abs(wave.phase));
}

void WriteWaves(const std::vector<insight::Wave>& waves, std::string_view frequencies,
                JsonWriter& json) {
  const auto list = [&](std::string_view key, double insight::Wave::*member) {
    json.Key(key).BeginArray();
    for (const insight::Wave& wave : waves) json.Value(wave.*member);
    json.EndArray();
  };
  list(frequencies, &insight::Wave::frequency);
  list("conf", &insight::Wave::confidence);
  list("amp", &insight::Wave::amplitude);
  list("phi", &insight::Wave::phase);
}

Response PeriodResponse(const AskedTrace& asked, const AskedPeriod& of, double start,
                        const insight::Periodicity& found) {
  std::vector<insight::Wave> dominant, strongest;
  if (found.dominant) dominant.push_back(Since(*found.dominant, start));
  for (const insight::Wave& wave : found.strongest) strongest.push_back(Since(wave, start));
  const double length = found.samples == 0 ? 0 : static_cast<double>(found.samples - 1);
  Response response;
  JsonWriter json(response.body);
  json.BeginObject().Field("metric", of.Name());
  WriteWaves(dominant, "dominant_freq", json);
  json.Field("t_start", start).Field("t_end", start + length / found.sampling);
  json.Field("total_bytes", 0).Field("ranks", asked.profile.job.expected_tasks);
  json.Field("freq", found.sampling).Key("top_freq").BeginObject();
  WriteWaves(strongest, "freq", json);
  json.EndObject().Field("n_samples", found.samples).Key("wave_names").BeginArray();
  for (const insight::Wave& wave : strongest) json.Value(NameOf(wave));
  json.EndArray();
  if (found.period) {
    json.Field("period", *found.period).Field("correlation", found.correlation);
  } else {
    json.Field("why_not", found.why_not);
  }
  json.EndObject();
  return response;
}

Task<Response> AnswerPeriod(const Context& context, const Request& request, FtioArgs args) {
  const Result<AskedPeriod> of = AskedPeriodOf(request);
  if (!of.ok()) co_return ErrorResponse(of.status());
  const Result<std::shared_ptr<AskedTrace>> made =
      co_await AskForTrace(context, request, request.Param("jobid"), &of->metric);
  if (!made.ok()) co_return ErrorResponse(made.status());
  const std::shared_ptr<const AskedTrace> asked = *made;
  const bool derivate = of->derivate || IsCounting(asked->series->series.metric.type);
  Result<TraceLine> line = co_await LineOfTrace(context, asked, derivate);
  if (!line.ok()) co_return ErrorResponse(line.status());
  const Nanos zero = line->empty() ? 0 : line->front().time;
  // The first change is 0 for want of a point before it, and says nothing.
  if (derivate && !line->empty()) line->erase(line->begin());
  const Nanos least = std::max({asked->interval, asked->profile.job.period, kMinPeriod});
  const EvenSeries even = EvenlySpaced(*line, zero, least, args);
  const double interval = even.interval > 0 ? even.interval : InSeconds(least);
  const Result<insight::Periodicity> found =
      insight::FindPeriod(even.values, interval, args.options);
  if (!found.ok()) co_return ErrorResponse(found.status());
  const double start = even.values.empty() ? 0 : InSeconds(even.first - zero);
  co_return PeriodResponse(*asked, *of, start, *found);
}

Task<Response> GetFtio(const Context& context, const Request& request) {
  const Result<FtioArgs> args = KeptFtioArgs(*context.ftio_args);
  if (!args.ok()) co_return ErrorResponse(args.status());
  co_return co_await AnswerPeriod(context, request, *args);
}

Task<Response> GetModifiedFtio(const Context& context, const Request& request) {
  const std::string* text = request.Param("args");
  if (text == nullptr) {
    co_return ErrorResponse(
        {Code::kInvalid, "A GET parameter for jobid, metricid and args must be passed"});
  }
  const Result<FtioArgs> args = ReadFtioArgs(*text);
  if (!args.ok()) co_return ErrorResponse(args.status());
  co_return co_await AnswerPeriod(context, request, *args);
}

constexpr RouteParam kPeriodOf = {"jobid", "the step, such as 4711.0, or main", kText, true};
constexpr RouteParam kPeriodMetric = {"metricid", "the metric, as /trace/metrics lists it", kText,
                                      true};
constexpr RouteParam kPeriodDerivate = {
    "derivate", "deriv__: its change per second; of a counter always",
    R"({"type":"string","enum":["","deriv__","true","false"]})"};
constexpr RouteParam kPeriodPoints = {"points", "how many at most, 2 to 100000; 10000 if absent",
                                      kCount};

constexpr Route kFtioRoutes[] = {
    {"/trace/ftio",
     Waits<GetFtio>,
     nullptr,
     {.about = "Whether a metric of a step repeats itself, and how often",
      .params = {kPeriodOf, kPeriodMetric, kPeriodDerivate, kPeriodPoints},
      .answer = "#Periods",
      .example = "?jobid=4711.0&metricid=node_disk_read_bytes_total%7Bdevice%3D%22nvme0n1%22%7D"}},
    {"/ftio/modified_args",
     Waits<GetModifiedFtio>,
     nullptr,
     {.about = "The same, found as `args` says",
      .params = {kPeriodOf,
                 kPeriodMetric,
                 kPeriodDerivate,
                 {"args", "as /ftio/args has it, a JSON object", kText, true},
                 kPeriodPoints},
      .answer = "#Periods",
      .example = "?jobid=4711.0&metricid=node_load1&args=%7B%22tol%22%3A0.9%7D"}}};

}  // namespace

std::span<const Route> FtioRoutes() { return kFtioRoutes; }

}  // namespace sonde::web
