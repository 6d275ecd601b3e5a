#include "forward/formats/columns.h"

#include <utility>

#include "profiles/archive/step_numbers.h"
#include "profiles/model/shown_series.h"
#include "series/block/thin.h"

namespace sonde::forward {

RowsWanted RowsFor(const JobDescription& job, const Destination& destination) {
  RowsWanted rows;
  rows.end = destination.until;
  rows.metric = [&](const Metric& metric) { return Wants(destination, metric.name); };
  rows.stream = [&](uint32_t node, const std::string&, const BlockInfo&) {
    return node == kReducedNode || WantsHost(destination, HostOfNode(job, node));
  };
  return rows;
}

std::vector<std::optional<Column>> ColumnsOf(const JobDescription& job, uint32_t node,
                                             std::string_view group, const Schema& schema,
                                             const Destination& destination) {
  std::vector<std::optional<Column>> columns;
  if (node == kReducedNode) {
    for (StepNumbers::Number& number : StepNumbers::NumbersOf(schema)) {
      std::optional<Column>& column = columns.emplace_back();
      if (!Wants(destination, number.series.metric.name)) continue;
      column = {std::move(number.series), std::move(number.suffix)};
    }
    return columns;
  }
  columns.resize(schema.size());
  if (!WantsHost(destination, HostOfNode(job, node))) return columns;
  for (size_t i = 0; i < schema.size(); ++i) {
    const Series& series = schema[i];
    if (IsExtreme(series) || !Wants(destination, series.metric.name)) continue;
    columns[i] = {ShownSeries(series, node, group, job), ""};
  }
  return columns;
}

std::vector<std::unique_ptr<Line>> LinesOf(const JobDescription& job, uint32_t node,
                                           std::string_view group, const Schema& schema,
                                           const Destination& destination) {
  std::vector<std::unique_ptr<Line>> lines;
  for (const auto& column : ColumnsOf(job, node, group, schema, destination)) {
    lines.push_back(
        column ? std::make_unique<Line>(MakeLine(column->series, column->suffix, job, destination))
               : nullptr);
  }
  return lines;
}

}  // namespace sonde::forward
