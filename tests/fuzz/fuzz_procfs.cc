// Whatever a kernel file holds, or something that pretends to be one: no parser reads past the end,
// loses step between series and values, or makes up a negative number.
//
// The first byte chooses the parser. The text is parsed, then one half of it, then the whole again,
// so that devices come and go.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/os_sources.h"
#include "daemon/collect/sensor.h"
#include "daemon/collect/task_files.h"

namespace {

using namespace sonde::collect;

void Check(bool good) {
  if (!good) std::abort();
}
void CheckNumber(double value) { Check(std::isnan(value) || value >= 0); }

std::unique_ptr<FileSource> MakeSource(unsigned kind, ReadBuffer& buffer) {
  const Roots roots;
  const int level = kind % 2 == 0 ? 2 : 4;
  switch (kind / 2) {
    case 0:
      return MakeCpuSource(roots, level, buffer);
    case 1:
      return MakeMeminfoSource(roots, level, buffer);
    case 2:
      return MakeNetdevSource(roots, level, buffer);
    case 3:
      return MakeDiskstatsSource(roots, level, buffer);
    case 4:
      return MakeLoadavgSource(roots, buffer);
    default:
      return MakePressureSource(roots, level == 2 ? Pressure::kCpu : Pressure::kIo, buffer);
  }
}

void RunSource(unsigned kind, std::string_view text) {
  ReadBuffer buffer;
  const std::unique_ptr<FileSource> source = MakeSource(kind, buffer);
  for (const std::string_view part : {text, text.substr(0, text.size() / 2), text}) {
    source->Parse(part);
    Check(source->values().size() == source->series().size());
    for (const double value : source->values()) CheckNumber(value);
  }
}

void RunTaskFile(unsigned kind, std::string_view text) {
  TaskStat stat;
  TaskCounters counters{};
  switch (kind) {
    case 0:
      if (ParseTaskStat(text, stat)) {
        Check(stat.parent >= 0);
        CheckNumber(stat.processor);
        for (const double value : stat.counters) CheckNumber(value);
      }
      break;
    case 1:
      ParseTaskIo(text, counters);
      for (const double value : counters) CheckNumber(value);
      break;
    case 2:
      CheckNumber(ParsePeakResident(text));
      break;
    default:
      ForEachChild(text, [](pid_t pid) { Check(pid > 0); });
      break;
  }
}

void RunSensor(std::string_view text) {
  const double value = ParseSensor(text);
  Check(std::isnan(value) || std::isfinite(value));
  CheckNumber(ParseQuantity(text, "J"));
  // Each line a reading; whatever they are, the total only rises.
  EnergyCounter counter(1'000'000);
  double total = 0;
  sonde::Nanos now = 0;
  for (Cursor lines(text); !lines.AtEnd(); now += sonde::kSecond) {
    const double reading = ParseSensor(lines.Line());
    const double sum = counter.Add(reading < 0 ? kMissing : reading, now);
    CheckNumber(sum);
    if (std::isnan(sum)) continue;
    Check(sum >= total);
    total = sum;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // A copy of its own, so that the sanitizer sees a read past the end.
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view text(copy.data(), copy.size());
  const unsigned kind = data[0] % 17;
  if (kind < 12) {
    RunSource(kind, text);
  } else if (kind < 16) {
    RunTaskFile(kind - 12, text);
  } else {
    RunSensor(text);
  }
  return 0;
}
