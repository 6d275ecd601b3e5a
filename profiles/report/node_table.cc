#include "profiles/report/node_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "profiles/model/text.h"

namespace sonde {
namespace {

using text::Bytes;
using text::Percent;
using text::Printable;
using text::Seconds;

// The node to look at first: the one whose tasks got the least CPU per task, if that differs a lot
// from the others; a shortened table is in that order.
std::vector<size_t> WorstFirst(const std::vector<NodeRow>& rows) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto badness = [&](size_t i) {
    const NodeRow& row = rows[i];
    if (row.lost || std::isnan(row.cpu_seconds)) return -1.0;
    return row.cpu_seconds / std::max(1u, row.tasks);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return badness(a) < badness(b); });
  return order;
}

}  // namespace

std::string NodeTable(const JobDescription& job, const Summary& summary,
                      const ReportOptions& options) {
  const auto& rows = options.nodes;
  if (rows.empty()) return "";
  const std::vector<size_t> worst = WorstFirst(rows);
  std::vector<size_t> shown(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                               rows.size(), options.max_nodes)));
  if (rows.size() <= options.max_nodes) {  // n2 before n10
    std::sort(shown.begin(), shown.end(), [&](size_t a, size_t b) {
      return strverscmp(rows[a].host.c_str(), rows[b].host.c_str()) < 0;
    });
  }
  const bool differ = rows.size() > 1 && summary.least_cpu.value < summary.most_cpu.value;
  using enum text::Table::Align;
  text::Table table({{"", kLeft},
                     {"node", kLeft, true},
                     {"tasks", kRight},
                     {"CPU", kRight},
                     {"memory", kRight},
                     {"received", kRight, false, 1},
                     {"sent", kRight, false, 1},
                     {"read", kRight, false, 1},
                     {"written", kRight, false, 1}});
  std::vector<double> measured = MeasuredSeconds(job, options.now, /*of_tasks=*/true);
  measured.resize(rows.size(), summary.duration);
  for (const size_t i : shown) {
    const NodeRow& row = rows[i];
    const double share = row.cpu_seconds / (measured[i] * row.tasks);
    const bool is_worst = row.lost || (differ && i == worst.front());
    table.Row({is_worst ? "*" : "", Printable(row.host), std::to_string(row.tasks),
               row.tasks == 0 ? Seconds(row.cpu_seconds) : Percent(share), Bytes(row.memory_peak),
               Bytes(row.network_received), Bytes(row.network_sent), Bytes(row.disk_read),
               Bytes(row.disk_written)});
  }
  std::string out = table.Render("", options.width);
  if (shown.size() < rows.size()) {
    out += fmt::format("{}the {} of {} nodes with the least CPU time per task; all with --json\n",
                       text::kIndent, shown.size(), rows.size());
  }
  if (differ) out += fmt::format("{}* the least CPU time per task, or lost\n", text::kIndent);
  return out;
}

}  // namespace sonde
