#include "daemon/collect/app/function_names.h"

#include <utility>

#include "core/text/symbol_tags.h"
#include "daemon/collect/app/demangle.h"

namespace sonde::collect {

std::string SymbolOf(const Series& series) {
  if (series.metric.name != kFunctionCalls && series.metric.name != kFunctionSeconds) return {};
  std::string symbol;
  for (const char* key : kSymbolKeys) {
    const std::string* const piece = series.tags.Find(key);
    if (piece == nullptr) break;
    symbol += *piece;
  }
  return IsMangled(symbol) ? symbol : std::string();
}

bool FunctionNames::Translate(std::vector<AppMetric>& metrics) {
  if (values_.size() > kMostKept) values_.clear();
  std::vector<CxxName> unknown;
  std::vector<std::pair<Series*, const std::string*>> found;
  for (AppMetric& metric : metrics) {
    const std::string symbol = SymbolOf(metric.series);
    if (symbol.empty()) continue;
    const auto [at, is_new] = values_.try_emplace(symbol);
    if (is_new) unknown.push_back({.symbol = at->first, .value = &at->second});
    found.emplace_back(&metric.series, &at->second);
  }
  bool good = true;
  if (failures_ < kMostFailures) {
    good = unknown.empty() || Demangle(unknown);
    if (!good) ++failures_;
  } else {
    LeaveMangled(unknown);
  }
  for (const auto& [series, value] : found) {
    for (const char* key : kSymbolKeys) series->tags.Erase(key);
    series->tags.Set(kSymbolKeys[0], *value);
  }
  return good || failures_ < kMostFailures;
}

}  // namespace sonde::collect
