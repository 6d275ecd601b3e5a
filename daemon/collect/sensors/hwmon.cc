#include "daemon/collect/sensors/hwmon.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

#include "core/metric.h"
#include "daemon/collect/read/directory.h"

namespace sonde::collect {
namespace {

namespace fs = std::filesystem;

constexpr Nanos kSlow = kMillisecond;
constexpr size_t kMaxFiles = 1024;  // of all chips together

// Empty if the file cannot be read or holds no fit name.
std::string ReadName(const std::string& path, ReadBuffer& buffer) {
  std::string line = FirstLine(path, buffer);
  return CheckTag("sensor", line).ok() ? line : std::string();
}

// Drivers number their chips by the order in which they were found; the device is always the same.
std::string ChipName(const std::string& directory, const std::string& driver) {
  std::error_code error;
  const fs::path device = fs::read_symlink(directory + "/device", error);
  if (error) return driver;
  const std::string name = device.lexically_normal().filename();
  if (name.empty() || !CheckTag("chip", driver + "-" + name).ok()) return driver;
  return name.starts_with(driver) ? name : driver + "-" + name;
}

bool Match(std::string_view name, const HwmonKind& kind, unsigned& number) {
  if (!name.starts_with(kind.prefix) || !name.ends_with(kind.suffix)) return false;
  if (name.size() <= kind.prefix.size() + kind.suffix.size()) return false;
  const char* const end = name.data() + name.size() - kind.suffix.size();
  const auto [stop, error] = std::from_chars(name.data() + kind.prefix.size(), end, number);
  return error == std::errc() && stop == end;
}

void AddFiles(const std::string& directory, const HwmonFile& chip, std::span<const HwmonKind> kinds,
              ReadBuffer& buffer, std::vector<HwmonFile>& files) {
  const size_t first = files.size();
  for (const std::string& name : ListDirectory(directory)) {
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      unsigned number = 0;
      if (!Match(name, kinds[kind], number) || files.size() == kMaxFiles) continue;
      HwmonFile& file = files.emplace_back(chip);
      file.kind = kind;
      file.number = number;
      file.path = directory + "/" + name;
      const std::string unlabelled = fmt::format("{}{}", kinds[kind].prefix, number);
      file.sensor = ReadName(directory + "/" + unlabelled + "_label", buffer);
      const bool taken = std::any_of(
          files.begin() + static_cast<std::ptrdiff_t>(first), files.end() - 1,
          [&](const HwmonFile& f) { return f.kind == kind && f.sensor == file.sensor; });
      if (file.sensor.empty() || taken) file.sensor = unlabelled;
    }
  }
  std::sort(files.begin() + static_cast<std::ptrdiff_t>(first), files.end(),
            [](const HwmonFile& a, const HwmonFile& b) {
              return std::tie(a.number, a.kind) < std::tie(b.number, b.kind);
            });
}

}  // namespace

std::vector<HwmonFile> ListHwmon(const Roots& roots, std::span<const HwmonKind> kinds) {
  std::vector<HwmonFile> files;
  std::vector<std::string> chips;
  ReadBuffer buffer;
  const std::string all = roots.sys + "/class/hwmon";
  for (const std::string& name : ListDirectory(all)) {
    const std::string directory = all + "/" + name;
    HwmonFile chip;
    chip.driver = ReadName(directory + "/name", buffer);
    if (chip.driver.empty()) continue;
    chip.chip = ChipName(directory, chip.driver);
    if (std::find(chips.begin(), chips.end(), chip.chip) != chips.end()) chip.chip += "-" + name;
    if (!CheckTag("chip", chip.chip).ok()) continue;
    chips.push_back(chip.chip);
    AddFiles(directory, chip, kinds, buffer, files);
  }
  return files;
}

bool SlowChips::IsFast(const HwmonFile& file, FileReader& reader, ReadBuffer& buffer, Nanos now) {
  if (std::find(chips_.begin(), chips_.end(), file.chip) != chips_.end()) return false;
  if (!fast_.insert(file.path).second) return true;
  // On a busy node the first read may have waited for a processor, not for the chip.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Nanos start = clock_.Monotonic();
    reader.Read(buffer, now);
    if (clock_.Monotonic() - start <= kSlow) return true;
  }
  // The other sensors of the chip are on the same bus: trying them all could take a second.
  chips_.push_back(file.chip);
  return false;
}

std::string SlowChips::TakeNote(std::string_view source) {
  if (noted_ == chips_.size()) return {};
  std::string note =
      fmt::format("{}: sensors that take more than 1 ms to read are left out:", source);
  for (; noted_ < chips_.size(); ++noted_) note += " " + chips_[noted_];
  return note;
}

}  // namespace sonde::collect
