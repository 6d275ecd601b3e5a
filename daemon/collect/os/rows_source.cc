#include "daemon/collect/os/rows_source.h"

namespace sonde::collect {
namespace {

// More than any node has.
constexpr size_t kMaxRows = 8192;
constexpr size_t kMaxColumns = 65536;
constexpr size_t kMaxCpus = 4096;

}  // namespace

void RowsSource::Parse(std::string_view text) {
  const bool cut = !text.ends_with('\n');
  text = text.substr(0, text.rfind('\n') + 1);
  const bool same_head = TakeHead(text);
  if (scanned_ && same_head && ReadRows(text, cut)) return;
  Rescan(text);
  ReadRows(text, true);
}

// False if the lines are not those of before. A text that is cut short may lack lines.
bool RowsSource::ReadRows(std::string_view text, bool cut) {
  ClearValues();
  Begin();
  size_t row = 0;
  for (Cursor lines(text); !lines.AtEnd();) {
    Cursor line(lines.Line());
    const std::string_view name = TakeName(line);
    if (name.empty()) continue;
    if (row == kMaxRows) break;
    if (row == rows_.size() || rows_[row].name != name) return false;
    const Row& known = rows_[row++];
    if (!known.settled && NeedsOthers(line, known.width)) return false;
    ReadRow(line, std::span(values_).subspan(known.column, known.width));
  }
  Finish(row == rows_.size());
  return cut || row == rows_.size();
}

void RowsSource::Rescan(std::string_view text) {
  rows_.clear();
  series_.clear();
  values_.clear();
  DeclareHead();
  for (Cursor lines(text); !lines.AtEnd() && rows_.size() < kMaxRows;) {
    Cursor line(lines.Line());
    const std::string_view name = TakeName(line);
    if (name.empty()) continue;
    const size_t column = values_.size();
    const bool settled = column >= kMaxColumns || DeclareRow(name, line);
    rows_.push_back({std::string(name), column, values_.size() - column, settled});
  }
  scanned_ = true;
  ++generation_;
}

bool CpuHead::Take(std::string_view line) {
  if (line == line_) return true;
  line_ = line;
  cpus_.clear();
  for (Cursor words(line); cpus_.size() < kMaxCpus;) {
    const std::string_view word = words.Word();
    if (word.empty()) return false;
    Cursor cpu(word);
    uint64_t id = 0;
    if (cpu.Skip("CPU") && cpu.Unsigned(id) && cpu.AtEnd()) cpus_.push_back(std::to_string(id));
  }
  return false;
}

}  // namespace sonde::collect
