// The names of functions that libsonde_functions counts: it registers their symbols
// (core/text/symbol_tags.h), which become the names that people write.
//
// Names are made once for all processes: as many as are kept here. Where that fails three times,
// further ones stay as they are.
//
// Thread safety: none; the daemon's one thread, the first one of the process.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/metric.h"
#include "daemon/collect/app/segment.h"

namespace sonde::collect {

// The symbol of a function's metric, put together from its tags; "" if it is another metric, or the
// function is not one of C++.
std::string SymbolOf(const Series& series);

class FunctionNames {
 public:
  // False, once, if names stay as they are from now on.
  bool Translate(std::vector<AppMetric>& metrics);

 private:
  static constexpr size_t kMostKept = 8192;
  static constexpr int kMostFailures = 3;

  std::unordered_map<std::string, std::string> values_;  // of the tag `function`, by the symbol
  int failures_ = 0;
};

}  // namespace sonde::collect
