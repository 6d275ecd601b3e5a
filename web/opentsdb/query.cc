// /api/query: asks the data source and writes the answer.
#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "web/opentsdb/aliases.h"
#include "web/opentsdb/answer.h"
#include "web/opentsdb/ask.h"
#include "web/opentsdb/handlers.h"
#include "web/opentsdb/request.h"
#include "web/route/gather.h"
#include "web/source/answers.h"

namespace sonde::web {
namespace {

constexpr size_t kMaxPoints = 4'000'000;  // in one response: some 100 MB of JSON
constexpr size_t kMaxSeries = 100'000;
constexpr size_t kStreamedPoints = 50'000;  // beyond this the text is never whole

std::vector<std::string_view> Alternatives(std::string_view pattern) {
  std::vector<std::string_view> parts;
  while (!pattern.empty()) {
    const size_t bar = std::min(pattern.find('|'), pattern.size());
    if (bar != 0) parts.push_back(pattern.substr(0, bar));
    pattern.remove_prefix(std::min(bar + 1, pattern.size()));
  }
  return parts;
}

// Whether a result has a name that the filter asks for, if results can show that.
bool ShowsEveryName(const TagFilter& filter, const std::vector<QueryResult>& results) {
  if (filter.type == TagFilter::Type::kNotKey) return false;  // results never show its key
  if (!filter.group_by || filter.type != TagFilter::Type::kLiteralOr) return true;
  std::set<std::string_view> shown;
  for (const QueryResult& result : results) {
    if (const std::string* value = result.tags.Find(filter.key)) shown.insert(*value);
  }
  const std::vector<std::string_view> names = Alternatives(filter.pattern);
  return std::all_of(names.begin(), names.end(),
                     [&](std::string_view name) { return shown.contains(name); });
}

Status NoSuchName(std::string_view kind, std::string_view name) {
  std::string text = "No such name for '";
  text.append(kind).append("': '").append(name).append("'");
  return {Code::kInvalid, text};
}

// A name that does not exist is an error, no data in the range is not. Looked up only if the
// results do not decide it, since that takes long.
bool LeavesNamesOpen(const QuerySpec& spec, const std::vector<QueryResult>& results) {
  const bool shown = std::all_of(spec.filters.begin(), spec.filters.end(), [&](const auto& filter) {
    return ShowsEveryName(filter, results);
  });
  return results.empty() || !shown;
}

Status CheckNames(const SeriesNames& names, const QuerySpec& spec) {
  if (!names.metrics.contains(spec.metric)) return NoSuchName("metrics", spec.metric);
  for (const TagFilter& filter : spec.filters) {
    if (!names.keys.contains(filter.key)) return NoSuchName("tagk", filter.key);
    if (filter.type != TagFilter::Type::kLiteralOr) continue;
    for (const std::string_view name : Alternatives(filter.pattern)) {
      if (!names.values.contains(std::string(name))) return NoSuchName("tagv", name);
    }
  }
  return {};
}

// Of which nodes the answers are, and whether rows made some alone.
void AddCaveats(const Answers& answers, Response& response) {
  Answer all;
  for (const Answer& answer : answers) KeepWorst(answer, all);
  if (!all.rows_only.empty()) {
    response.headers.emplace_back(kRowsOnly, HeaderValue(all.rows_only));
  }
  if (all.nodes_expected == 0) return;
  response.headers.emplace_back(kNodesAnswered, std::to_string(all.nodes_answered));
  response.headers.emplace_back(kNodesExpected, std::to_string(all.nodes_expected));
}

Task<Response> QueryResponse(const StepSeries& source, std::shared_ptr<const OpenTsdbQuery> query,
                             const OpenTsdbPlan& plan, AnswerForm form, bool any_name,
                             Answers answers) {
  size_t series = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const QuerySpec& spec = plan.queries()[i];
    if (!any_name && !plan.MayBeAbsent(i) && LeavesNamesOpen(spec, answers[i].results)) {
      const Result<SeriesNames> names = co_await NamesAndAliases(source);
      const Status named = names.ok() ? CheckNames(*names, spec) : names.status();
      if (!named.ok()) co_return ErrorResponse(named);
    }
    series += answers[i].results.size();
  }
  if (series > kMaxSeries) co_return TooMuchResponse(series, kMaxSeries, "series");
  Response response;
  AddCaveats(answers, response);
  std::vector<Note> notes;
  if (!query->no_annotations) {
    notes = co_await Ask(source, &StepSeries::Notes, query->start, query->end);
  }
  const auto writer =
      std::make_shared<AnswerWriter>(query, std::move(answers), std::move(notes), form);
  const size_t points = writer->Points();
  if (points > kMaxPoints) co_return TooMuchResponse(points, kMaxPoints, "points");
  if (points > kStreamedPoints) {
    response.next = [writer](std::string& out) { return writer->Next(out); };
    response.held_bytes = points * sizeof(Point);
    co_return response;
  }
  constexpr size_t kBytesOfPoint = 32;
  response.body.reserve(points * kBytesOfPoint + 1024);
  while (writer->Next(response.body)) {
  }
  co_return response;
}

Result<AnswerForm> FormOf(const Context& context, const Request& request) {
  AnswerForm form;
  const std::string* arrays = request.Param("arrays");
  form.arrays = arrays != nullptr && *arrays != "false";
  form.nan_null = context.nan_null;
  if (const std::string* nan = request.Param("nan")) {
    if (*nan != "null" && *nan != "text") {
      return Status(Code::kInvalid, "parameter nan: expected null or text");
    }
    form.nan_null = *nan == "null";
  }
  return form;
}

// Whether unknown names are no error: other stores may know names that this one does not.
Result<bool> TakesAnyName(const Request& request) {
  const std::string* unknown = request.Param("unknown");
  if (unknown == nullptr || *unknown == "error") return false;
  if (*unknown == "none") return true;
  return Status(Code::kInvalid, "parameter unknown: expected none or error");
}

Task<Response> Evaluate(const Context& context, const Request& request,
                        Result<OpenTsdbQuery> parsed) {
  if (!parsed.ok()) co_return ErrorResponse(parsed.status());
  const Result<AnswerForm> form = FormOf(context, request);
  if (!form.ok()) co_return ErrorResponse(form.status());
  const Result<bool> any_name = TakesAnyName(request);
  if (!any_name.ok()) co_return ErrorResponse(any_name.status());
  const auto query = std::make_shared<const OpenTsdbQuery>(*std::move(parsed));
  const OpenTsdbPlan plan = co_await OpenTsdbPlan::Make(*context.series, *query);
  Result<Answers> answers = co_await Gather(context, plan.specs());
  if (!answers.ok()) co_return ErrorResponse(answers.status());
  Result<Answers> folded = plan.Fold(*std::move(answers));
  if (!folded.ok()) co_return ErrorResponse(folded.status());
  co_return co_await QueryResponse(*context.series, query, plan, *form, *any_name,
                                   *std::move(folded));
}

}  // namespace

Task<Response> GetQuery(const Context& context, const Request& request) {
  return Evaluate(context, request, ParseOpenTsdbQuery(request, context.clock->Now()));
}

Task<Response> PostQuery(const Context& context, const Request& request) {
  return Evaluate(context, request, ParseOpenTsdbQuery(request.body, context.clock->Now()));
}

}  // namespace sonde::web
