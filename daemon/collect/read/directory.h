// Looking for devices in sysfs, when a source starts or has lost one; not for every tick.
//
// Thread safety: functions without state.
#pragma once

#include <string>
#include <vector>

#include "daemon/collect/read/file_reader.h"

namespace sonde::collect {

// The names in a directory, at most 4096; none if it cannot be read. Short names come first, so
// that cpu2 stands before cpu10.
std::vector<std::string> ListDirectory(const std::string& path);

// The first line of a small file; empty if it cannot be read.
std::string FirstLine(const std::string& path, ReadBuffer& buffer);

}  // namespace sonde::collect
