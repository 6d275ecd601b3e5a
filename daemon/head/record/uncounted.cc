#include "daemon/head/record/uncounted.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace sonde::head {
namespace {

struct Kind {
  bool preload::Calls::*asked;
  std::string_view metric;  // that is there from the first call on
  std::string_view words;   // after "calls"
};
constexpr Kind kKinds[] = {{&preload::Calls::mpi, "mpi_calls_total", "of MPI"},
                           {&preload::Calls::io, "io_calls_total", "for files"},
                           {&preload::Calls::functions, "function_calls_total", "of functions"}};

bool Has(const std::vector<Series>& series, std::string_view metric) {
  return std::any_of(series.begin(), series.end(),
                     [&](const Series& one) { return one.metric.name == metric; });
}

// "a", "a and b", "a, b and c"
std::string Listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace

std::string UncountedNote(const preload::Calls& asked, const std::vector<Series>& series) {
  std::vector<std::string_view> missing;
  for (const Kind& kind : kKinds) {
    if (asked.*kind.asked && !Has(series, kind.metric)) missing.push_back(kind.words);
  }
  if (missing.empty()) return "";
  const bool functions = missing.back() == kKinds[2].words;
  std::string none = missing.size() == 1 && functions ? "" : "made none, or ";
  if (functions) none += "were not compiled with -finstrument-functions, or ";
  return fmt::format(
      "calls {} were to be counted, and no process recorded any: the programs {}did not load the "
      "library that counts, because they are static or setuid, run in a container that does not "
      "have it, or were started by something that sets LD_PRELOAD anew",
      Listed(missing), none);
}

}  // namespace sonde::head
