// The sensors of the chips in /sys/class/hwmon, and which of them are cheap enough to be read.
//
// Some chips answer in microseconds, others sit behind a slow bus (I2C, or IPMI to the board's
// controller) and take milliseconds, in which the daemon can do nothing else. A sensor's first read
// tells which.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

// Which files of a chip: those named PREFIX<number>SUFFIX.
struct HwmonKind {
  std::string_view prefix;
  std::string_view suffix;
};

struct HwmonFile {
  std::string chip;    // the driver with its device: coretemp.0, nvme0, k10temp-0000:00:18.3
  std::string driver;  // coretemp
  std::string sensor;  // its label, or PREFIX<number> if it has none
  std::string path;
  size_t kind = 0;  // index among the kinds
  unsigned number = 0;
};

// By chip, number and kind. Chips have different names, and so have the sensors of one chip that
// are of one kind.
std::vector<HwmonFile> ListHwmon(const Roots& roots, std::span<const HwmonKind> kinds);

// The chips that were found to be slow: none of their sensors is read again.
class SlowChips {
 public:
  explicit SlowChips(const Clock& clock) : clock_(clock) {}

  // Reads a sensor that was not read before; false if its chip is slow.
  bool IsFast(const HwmonFile& file, FileReader& reader, ReadBuffer& buffer, Nanos now);
  // What was found since the last call, for the profile's reader; empty if nothing.
  std::string TakeNote(std::string_view source);

 private:
  const Clock& clock_;
  std::set<std::string> fast_;  // paths: measured once, as anything may delay a read
  std::vector<std::string> chips_;
  size_t noted_ = 0;
};

// Sensors are read no more often than this, however short the period.
inline constexpr Nanos kSensorPeriod = kSecond;

}  // namespace sonde::collect
