#include "daemon/collect/read/file_source.h"

#include <fmt/core.h>

#include <cstring>

namespace sonde::collect {

void FileSource::NoteFailure(int error, Nanos now) {
  constexpr int kMostTold = 4;
  if (++failures_ > kMostTold) return;
  notes_.push_back(fmt::format(
      "{} could not be read at {}: {}; it is tried again, and its metrics are missing until then{}",
      reader_.path(), FormatTime(now), std::strerror(error),
      failures_ == kMostTold ? "; more of this is not told" : ""));
}

}  // namespace sonde::collect
