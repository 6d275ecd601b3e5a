// How far long work is, as one line on a terminal:
//
//   exporting 4711.0  [#########...............]  38 %  52.1 MiB/s  8 s left
//
// It appears after kPatience, so that what is quick shows nothing, is written anew a few times a
// second, and is gone when the work ends. Where standard error is no terminal nothing is written.
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

  // `what` is done, as in "exporting 4711.0"; `unit` of what is counted, as in "bytes" or
  // "profiles". `shown`: false writes nothing.
  Progress(std::string_view what, std::string_view unit, bool shown = true);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { End(); }

  // `total` 0: nobody knows how much it will be.
  void Set(uint64_t done, uint64_t total);
  // For work on an archive, which goes on; as long as this lives.
  ArchiveProgress Follow();
  // Clears the line, before something else is written to the terminal.
  void End();

 private:
  const std::string what_;
  const std::string unit_;
  const bool shown_;
  const Nanos begin_;
  Nanos next_;
  bool visible_ = false;
};

// Says that other work of a server comes first, which nobody sees otherwise.
OnWait TellWait(Progress& progress);

// The line, at most `width` characters.
std::string ProgressLine(std::string_view what, std::string_view unit, uint64_t done,
                         uint64_t total, Nanos elapsed, size_t width);

}  // namespace sonde::cli
