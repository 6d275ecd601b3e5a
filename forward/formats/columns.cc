#include "forward/formats/columns.h"

#include <utility>

#include "profiles/archive/archive.h"
#include "profiles/archive/step_numbers.h"
#include "profiles/model/shown_series.h"
#include "series/block/thin.h"

namespace sonde::forward {

std::vector<std::optional<Column>> ColumnsOf(const JobDescription& job, uint32_t node,
                                             std::string_view group, const Schema& schema,
                                             const Destination& destination) {
  std::vector<std::optional<Column>> columns;
  const auto add = [&](Series series, std::string suffix) {
    const bool wanted = Wants(destination, series.metric.name);
    columns.push_back(wanted ? std::optional(Column{std::move(series), std::move(suffix)})
                             : std::nullopt);
  };
  if (node == kReducedNode) {
    for (StepNumbers::Number& number : StepNumbers::NumbersOf(schema)) {
      add(std::move(number.series), std::move(number.suffix));
    }
    return columns;
  }
  const bool wanted = WantsHost(destination, HostOfNode(job, node));
  for (const Series& series : schema.series()) {
    if (wanted && !IsExtreme(series)) {
      add(ShownSeries(series, node, group, job), "");
    } else {
      columns.emplace_back();
    }
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
