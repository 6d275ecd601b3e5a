// list_metrics: prints every metric that Sonde collects itself, one JSON object per line; with
// --markdown, docs/metrics.md.
#include <cstdio>
#include <string>
#include <string_view>

#include "daemon/collect/registry.h"

int main(int argc, char** argv) {
  if (argc > 2 || (argc == 2 && std::string_view(argv[1]) != "--markdown")) {
    std::fprintf(stderr, "usage: list_metrics [--markdown]\n");
    return 2;
  }
  const std::string text =
      argc == 2 ? sonde::collect::MetricsAsMarkdown() : sonde::collect::MetricsAsJsonLines();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
