// The names that Dragon's telemetry has for what Sonde records under others: its programs and its
// dashboard ask a step by them. Nothing is stored under these names. A real series of the same
// name, such as an application's own, comes first: who asks looks for one before.
//
// Some are ratios of two metrics, for each host (and device). So their series are queried one by
// one, divided here, and only then aggregated. The nodes themselves do a downsample by avg: the
// ratio of means, exact if the divisor does not change; other functions work on the ratios.
//
// Thread safety: functions and values without shared state.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "series/query/query.h"

namespace sonde {

// The help of metrics that a program records by the Telemetry.add_data() of Dragon's Python side
// (libclient/python), which gives none.
inline constexpr std::string_view kHelpOfAddData = "Recorded by Telemetry.add_data().";

struct Alias;

// A query for an alias: the queries to ask instead, and what their answers come to.
class AliasQuery {
 public:
  // Nothing if no alias has the query's name.
  static std::optional<AliasQuery> Of(const QuerySpec& query);

  // The metric whose series the alias's series are made of.
  std::string_view metric() const;
  // One or two.
  const std::vector<QuerySpec>& specs() const { return specs_; }
  // `answers`: the results of each of specs().
  Result<std::vector<QueryResult>> Fold(std::vector<std::vector<QueryResult>> answers) const;

 private:
  AliasQuery(const Alias& alias, const QuerySpec& query);

  const Alias* alias_;  // of the table
  QuerySpec query_;
  std::vector<QuerySpec> specs_;
};

// Adds the names whose metrics are there.
void AddAliases(std::set<std::string>& metrics);
// The series of the aliases whose metrics are among `series` and whose names are not.
std::vector<Series> AliasSeries(const std::vector<Series>& series);

}  // namespace sonde
