// Lines of /proc/PID/mountinfo: what is mounted where.
//
// Thread safety: functions without state; a line's views lie in the text it was taken from.
#pragma once

#include <string>
#include <string_view>

namespace sonde::collect {

// One line, as the kernel writes it: blanks and backslashes in paths are escaped (see Unescaped).
struct MountLine {
  std::string_view device;  // major:minor, the same for all mounts of one filesystem
  std::string_view root;    // the part of the filesystem that shows there
  std::string_view point;
  std::string_view type;
  std::string_view source;
  std::string_view super_options;
};

// False for a line that is not one, or is cut short before its source.
bool ParseMountLine(std::string_view line, MountLine& mount);

// With blanks and backslashes in place of the three octal digits the kernel writes for them.
std::string Unescaped(std::string_view text);

}  // namespace sonde::collect
