// POST /api/v1/part: the answer of a running step's nodes to a query, as a part, so that the asking
// server can merge the parts of several steps. `sonde serve` asks heads this way.
#include <fmt/core.h>

#include <memory>
#include <string>
#include <utility>

#include "series/query/steps.h"
#include "web/api/routes.h"
#include "web/http/json_input.h"
#include "web/opentsdb/ask.h"
#include "web/opentsdb/request.h"

namespace sonde::web {
namespace {

namespace json = boost::json;

struct AskedPart {
  QuerySpec spec;
  QueryGrid grid;
};

Result<Nanos> ReadNanos(const json::value& value, std::string_view key) {
  uint64_t count = 0;
  SONDE_RETURN_IF_ERROR(ReadCount(value, key, count));
  if (count > static_cast<uint64_t>(kMaxQueryTime)) return Wrong(key, "nanoseconds");
  return static_cast<Nanos>(count);
}

Result<QueryGrid> ParseGrid(std::string_view body) {
  return WithObject<QueryGrid>(body, [](const json::object& object) -> Result<QueryGrid> {
    QueryGrid grid;
    if (const json::value* step = object.if_contains("step")) {
      const Result<Nanos> read = ReadNanos(*step, "step");
      if (!read.ok()) return read.status();
      grid.step = *read;
    }
    const json::value* times = object.if_contains("times");
    if (times == nullptr) return grid;
    const json::array* list = times->if_array();
    if (list == nullptr || list->size() > kMaxGridTimes) {
      return Wrong("times", fmt::format("a list of at most {} times", kMaxGridTimes));
    }
    for (const json::value& one : *list) {
      const Result<Nanos> time = ReadNanos(one, "times");
      if (!time.ok()) return time.status();
      if (!grid.times.empty() && *time <= grid.times.back()) {
        return Wrong("times", "ascending times");
      }
      grid.times.push_back(*time);
    }
    return grid;
  });
}

Result<AskedPart> ParseAskedPart(std::string_view body, Nanos now) {
  Result<OpenTsdbQuery> query = ParseOpenTsdbQuery(body, now);
  if (!query.ok()) return query.status();
  if (query->queries.size() != 1) return Status(Code::kInvalid, "queries: expected one");
  Result<QueryGrid> grid = ParseGrid(body);
  if (!grid.ok()) return grid.status();
  AskedPart asked{std::move(query->queries.front()), *std::move(grid)};
  if (!query_steps::HasParts(asked.spec)) {
    return Status(Code::kInvalid,
                  "queries: expected no grouping by host or job, and an aggregator that can be put "
                  "together from parts, such as sum or max; others are asked at /api/query");
  }
  return asked;
}

Response PartResponse(const Result<PartAnswer>& answer) {
  if (!answer.ok()) return ErrorResponse(answer.status());
  Result<std::string> bytes = EncodePart(answer->part);
  if (!bytes.ok()) return ErrorResponse(bytes.status());
  Response response;
  response.content_type = "application/octet-stream";
  response.headers.emplace_back(kNodesAnswered, std::to_string(answer->nodes_answered));
  response.headers.emplace_back(kNodesExpected, std::to_string(answer->nodes_expected));
  if (!answer->rows_only.empty()) {
    response.headers.emplace_back(kRowsOnly, HeaderValue(answer->rows_only));
  }
  response.body = *std::move(bytes);
  return response;
}

void PostPart(const Context& context, const Request& request, Reply reply) {
  const Result<AskedPart> asked = ParseAskedPart(request.body, context.clock->Now());
  if (!asked.ok()) return reply(ErrorResponse(asked.status()));
  context.series->QueryForPart(
      asked->spec, asked->grid,
      [reply = std::move(reply), executor = context.executor](Result<PartAnswer> answer) {
        const auto part = std::make_shared<const Result<PartAnswer>>(std::move(answer));
        const auto finish = [reply, part] { reply(PartResponse(*part)); };
        executor ? executor(finish) : finish();
      });
}

constexpr Route kPartRoutes[] = {
    {"/api/v1/part",
     nullptr,
     PostPart,
     {.about = "What a running step's nodes come to for a query of /api/query, in a form to which "
               "the parts of other steps are added",
      .answer = "application/octet-stream",
      .body =
          R"({"type":"object","required":["start","queries"],"properties":{)"
          R"("start":{},"end":{},"queries":{"type":"array","minItems":1,"maxItems":1},)"
          R"("step":{"type":"integer","description":"ns: values at its multiples too"},)"
          R"("times":{"type":"array","items":{"type":"integer"},"description":"ns: and there"}}})",
      .example_body = R"({"start": "5m-ago", "step": 1000000000, )"
                      R"("queries": [{"metric": "node_load1", "aggregator": "sum"}]})"}}};

}  // namespace

std::span<const Route> PartRoutes() { return kPartRoutes; }

}  // namespace sonde::web
