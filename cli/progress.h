// The progress of long work, as one line on a terminal:
//
//   exporting 4711.0  [#########...............]  38 %  52.1 MiB/s  8 s left
//
// It appears after kPatience, so quick work shows nothing, is written anew a few times a second,
// and is cleared when the work ends. If standard error is no terminal nothing is written.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/time.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/disk/progress.h"

namespace sonde::cli {

class Progress {
 public:
  static constexpr Nanos kPatience = kSecond / 2;
  static constexpr Nanos kBetween = kSecond / 5;

  // `what` is the work, as in "exporting 4711.0"; `unit` is what is counted, as in "bytes" or
  // "profiles". `shown`: false writes nothing.
  Progress(std::string_view what, std::string_view unit, bool shown = true);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { End(); }

  // `total` 0: the total is unknown.
  void Set(uint64_t done, uint64_t total);
  // The function for work on an archive; it never stops the work. Valid while this object lives.
  ArchiveProgress Follow();
  // Clears the line, so that other text can be written to the terminal.
  void End();

 private:
  const std::string what_;
  const std::string unit_;
  const bool shown_;
  const Nanos begin_;
  Nanos next_;
  bool visible_ = false;
};

// Says that other work of a server comes first, which the user cannot see otherwise.
OnWait TellWait(Progress& progress);

// The line, at most `width` characters.
std::string ProgressLine(std::string_view what, std::string_view unit, uint64_t done,
                         uint64_t total, Nanos elapsed, size_t width);

}  // namespace sonde::cli
