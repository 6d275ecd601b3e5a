#include "daemon/collect/filesystems/lustre_stats.h"

namespace sonde::collect {

bool TakeLustreLine(Cursor& at, LustreLine& line) {
  // A line without its end is cut short, and so may be its last number.
  if (at.Rest().find('\n') == std::string_view::npos) return false;
  Cursor text(at.Line());
  line = {};
  line.name = text.Word();
  const double samples = text.Number();
  if (!text.Skip(" samples [")) return true;
  const std::string_view unit = text.Word();
  if (!unit.ends_with(']')) return true;
  line.unit = unit.substr(0, unit.size() - 1);
  line.samples = samples;
  text.Word();  // the smallest and the largest, which may be negative
  text.Word();
  line.sum = text.Number();
  return true;
}

bool IsLustreStats(std::string_view text) { return text.starts_with("snapshot_time "); }

}  // namespace sonde::collect
