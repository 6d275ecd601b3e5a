#include "profiles/report/call_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "profiles/model/text.h"
#include "profiles/report/calls.h"

namespace sonde {
namespace {

using text::Printable;
using text::Seconds;
using enum text::Table::Align;

constexpr size_t kMaxCallRows = 16;
constexpr size_t kMostMpiFunctions = 5;

// MPI's classes or functions: their columns are the same.
class MpiRows {
 public:
  MpiRows(std::string_view what, double task_seconds)
      : task_seconds_(task_seconds),
        table_({{std::string(what), kLeft, true},
                {"calls", kRight},
                {"time", kRight},
                {"share", kRight},
                {"waiting", kRight},
                {"sent", kRight, false, 1},
                {"received", kRight, false, 1}}) {}

  void Add(const CallRow& row) {
    table_.Row({Printable(row.name), text::Number(row.calls), Seconds(row.seconds),
                text::Percent(row.seconds / task_seconds_), Seconds(row.waiting),
                text::Bytes(row.out), text::Bytes(row.in)});
  }
  std::string Render(size_t width) const { return table_.Render("", width); }

 private:
  double task_seconds_;
  text::Table table_;
};

std::string AndMore(size_t all, size_t shown, std::string_view what) {
  if (all <= shown) return "";
  return fmt::format("  and {} {} more; all with --json\n", all - shown, what);
}

}  // namespace

std::string MpiTable(const Profile& profile, double task_seconds, size_t width) {
  const std::vector<CallRow> classes = MpiClasses(profile);
  if (classes.empty()) return "";
  MpiRows rows("MPI", task_seconds);
  for (const CallRow& one : classes) rows.Add(one);
  if (classes.size() > 1) rows.Add(AllOf(classes));
  return rows.Render(width);
}

std::string MpiFunctionTable(const Profile& profile, double task_seconds, size_t width) {
  const std::vector<CallRow> functions = MpiFunctions(profile);
  if (functions.empty()) return "";
  MpiRows rows("MPI function", task_seconds);
  const size_t shown = std::min(functions.size(), kMostMpiFunctions);
  for (size_t i = 0; i < shown; ++i) rows.Add(functions[i]);
  return rows.Render(width) + AndMore(functions.size(), shown, "functions");
}

std::string FileTable(const Profile& profile, double task_seconds, size_t width) {
  const std::vector<CallRow> rows = FileCalls(profile);
  if (rows.empty()) return "";
  text::Table table({{"files on", kLeft, true},
                     {"", kLeft},
                     {"calls", kRight},
                     {"bytes", kRight},
                     {"median", kRight, false, 1},
                     {"time", kRight},
                     {"share", kRight}});
  const size_t shown = std::min(rows.size(), kMaxCallRows);
  for (size_t i = 0; i < shown; ++i) {
    const CallRow& row = rows[i];
    const bool first = i == 0 || rows[i - 1].name != row.name;
    table.Row({first ? Printable(row.name) : "", row.operation, text::Number(row.calls),
               text::Bytes(row.Moved()), text::Bytes(row.median), Seconds(row.seconds),
               text::Percent(row.seconds / task_seconds)});
  }
  return table.Render("", width) + AndMore(rows.size(), shown, "rows");
}

std::string FunctionTable(const Profile& profile, double task_seconds, size_t width) {
  const std::vector<CallRow> functions = FunctionCalls(profile);
  if (functions.empty()) return "";
  text::Table table(
      {{"function", kLeft, true}, {"calls", kRight}, {"time", kRight}, {"share", kRight}});
  const size_t shown = std::min(functions.size(), kMaxCallRows);
  for (size_t i = 0; i < shown; ++i) {
    const CallRow& row = functions[i];
    table.Row({Printable(row.name), text::Number(row.calls), Seconds(row.seconds),
               text::Percent(row.seconds / task_seconds)});
  }
  return table.Render("", width) + AndMore(functions.size(), shown, "functions");
}

}  // namespace sonde
