// list_metrics: prints every metric that Sonde collects itself, and what its libraries in a program
// tell, one JSON object per line; with --markdown, docs/metrics.md.
#include <cstdio>
#include <string>
#include <string_view>

#include "daemon/collect/call_metrics.h"
#include "daemon/collect/registry.h"

namespace {

std::string AsJsonLines() {
  std::string text = sonde::collect::MetricsAsJsonLines();
  for (const sonde::Metric& m : sonde::collect::CallMetrics()) {
    text += sonde::collect::MetricAsJsonLine(
        {m.name, m.unit, m.type, m.level, m.reduction, m.help, m.spread});
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && std::string_view(argv[1]) != "--markdown")) {
    std::fprintf(stderr, "usage: list_metrics [--markdown]\n");
    return 2;
  }
  const std::string text = argc == 2 ? sonde::collect::MetricsAsMarkdown() : AsJsonLines();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
