#include "web/proxy/traces/trace_query.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "web/proxy/snapshot.h"
#include "web/proxy/traces/traced.h"
#include "web/route/waiting.h"

namespace sonde::web {

void SetTraceRange(uint64_t points, Nanos now, AskedTrace& asked) {
  const JobDescription& job = asked.profile.job;
  const Nanos period = std::max(job.period, kMinPeriod);
  asked.start = job.start;
  asked.end = std::max((job.end != 0 ? job.end : now) + period, job.start + period);
  const Nanos wanted = (asked.end - asked.start) / static_cast<Nanos>(points);
  if (wanted <= period) return;
  asked.interval = (wanted + period - 1) / period * period;
  asked.start -= asked.start % asked.interval;  // a bucket that starts before would be dropped
}

Task<Result<std::shared_ptr<AskedTrace>>> AskForTrace(const Context& context,
                                                      const Request& request,
                                                      const std::string* job,
                                                      const std::string* filter) {
  if (job == nullptr || job->empty()) co_return NoTracedJob();
  const Result<uint64_t> points =
      NumberParam(request, "points", kDefaultTracePoints, 2, kMaxTracePoints);
  if (!points.ok()) co_return points.status();
  Result<Traced> traced = co_await TracedSteps(context, *job);
  if (!traced.ok()) co_return traced.status();
  const auto asked = std::make_shared<AskedTrace>();
  asked->profile = std::move(traced->profile);
  asked->steps = std::move(traced->steps);
  asked->series = nullptr;
  if (filter != nullptr) asked->metric = *filter;
  for (const FootprintEntry& entry : asked->profile.footprint) {
    if (SeriesName(entry.series.metric.name, entry.series.tags) == asked->metric) {
      asked->series = &entry;
    }
  }
  if (!asked->metric.empty() && asked->series == nullptr) {
    co_return Status(Code::kNotFound, "No such metric " + asked->metric);
  }
  SetTraceRange(*points, context.clock->Now(), *asked);
  co_return asked;
}

Aggregator TraceAggregatorOf(const Metric& metric) {
  return web::AggregatorOf(IsCounting(metric.type) ? Reduction::kSum : metric.reduction);
}

QuerySpec TraceSpecOf(const AskedTrace& asked, const Metric& metric, Aggregator aggregator) {
  QuerySpec spec;
  spec.metric = metric.name;
  spec.aggregator = aggregator;
  spec.start = asked.start;
  spec.end = asked.end;
  if (asked.interval != 0) {
    const bool gauge = !IsCounting(metric.type);
    const bool extreme = aggregator == Aggregator::kMin || aggregator == Aggregator::kMax;
    const Aggregator mean = extreme ? aggregator : Aggregator::kAvg;
    spec.downsample =
        Downsample{.interval = asked.interval, .function = gauge ? mean : Aggregator::kLast};
  }
  spec.filters.push_back({TagFilter::Type::kLiteralOr, "job", asked.steps, false});
  return spec;
}

QuerySpec TraceSpecOf(const AskedTrace& asked, const FootprintEntry& entry, Aggregator aggregator) {
  QuerySpec spec = TraceSpecOf(asked, entry.series.metric, aggregator);
  for (const auto& [key, value] : entry.series.tags.pairs()) {
    spec.filters.push_back({TagFilter::Type::kLiteralOr, key, value, true});
  }
  return spec;
}

double InSeconds(Nanos time) { return static_cast<double>(time) / kSecond; }

TraceLine TraceLineOf(const std::vector<Point>& points) {
  TraceLine line;
  line.reserve(points.size());
  for (const Point& point : points) {
    if (std::isfinite(point.value)) line.push_back(point);
  }
  return line;
}

bool AsksForRates(const QuerySpec& spec, const Metric& metric) {
  return spec.downsample && IsCounting(metric.type);
}

QuerySpec RatesOf(QuerySpec spec) {
  spec.rate = true;
  return spec;
}

TraceLine FromRates(const TraceLine& line, const TraceLine& rates) {
  TraceLine out;
  if (line.empty()) return out;
  out.push_back({line.front().time, 0});
  for (const Point& rate : rates) {
    if (rate.time > line.front().time) out.push_back(rate);
  }
  return out;
}

TraceLine Derived(const TraceLine& line) {
  TraceLine out;
  out.reserve(line.size());
  for (size_t i = 0; i < line.size(); ++i) {
    const double seconds = i == 0 ? 0 : InSeconds(line[i].time - line[i - 1].time);
    const double change = seconds > 0 ? (line[i].value - line[i - 1].value) / seconds : 0;
    out.push_back({line[i].time, change});
  }
  return out;
}

TraceLine FirstLine(const Answer& answer) {
  return answer.results.empty() ? TraceLine() : TraceLineOf(answer.results.front().points);
}

Task<Result<TraceLine>> LineOfTrace(const Context& context, std::shared_ptr<const AskedTrace> asked,
                                    bool derivate) {
  const Metric& metric = asked->series->series.metric;
  std::vector<QuerySpec> specs = {TraceSpecOf(*asked, *asked->series, TraceAggregatorOf(metric))};
  if (derivate && AsksForRates(specs[0], metric)) specs.push_back(RatesOf(specs[0]));
  const Result<Answers> answers = co_await Gather(context, std::move(specs));
  if (!answers.ok()) co_return answers.status();
  TraceLine line = FirstLine(answers->front());
  if (answers->size() == 2) co_return FromRates(line, FirstLine(answers->back()));
  if (derivate) co_return Derived(line);
  co_return line;
}

}  // namespace sonde::web
