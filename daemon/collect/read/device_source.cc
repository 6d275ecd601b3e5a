#include "daemon/collect/read/device_source.h"

#include <fmt/core.h>

#include <algorithm>

namespace sonde::collect {
namespace {

// More than any node has; a host of containers may have thousands of virtual interfaces.
constexpr size_t kMaxDevices = 1024;

}  // namespace

void ReadFields(Cursor& line, std::span<const DeviceField> fields, double* values) {
  size_t at = 0;
  for (const DeviceField& field : fields) {
    double value = kMissing;
    for (; at <= field.index; ++at) value = line.Number();
    *values++ = value * field.scale;
  }
}

DeviceSource::DeviceSource(std::string path, int level, std::span<const DeviceField> fields,
                           ReadBuffer& buffer)
    : FileSource(std::move(path), Shape::kRecords, 4096, buffer) {
  std::copy_if(fields.begin(), fields.end(), std::back_inserter(fields_),
               [&](const DeviceField& f) { return f.decl.level <= level; });
}

void DeviceSource::Parse(std::string_view text) {
  size_t device = 0;
  size_t column = 0;
  for (Cursor line(text); !line.AtEnd(); line.Line()) {
    const std::string_view name = TakeName(line);
    if (name.empty()) continue;
    if (device == kMaxDevices) break;
    if (device == devices_.size() || name != devices_[device].name) {
      Rescan(text);
      return;
    }
    if (devices_[device++].wanted) {
      ReadFields(line, fields_, &values_[column]);
      column += fields_.size();
    }
  }
  if (device != devices_.size()) Rescan(text);
}

bool DeviceSource::IsKnown(std::string_view name) const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [&](const Device& device) { return device.name == name; });
}

void DeviceSource::Rescan(std::string_view text) {
  const size_t before = devices_.size();
  devices_.clear();
  series_.clear();
  values_.clear();
  std::string_view parent;
  for (Cursor line(text); !line.AtEnd(); line.Line()) {
    const std::string_view name = TakeName(line);
    if (name.empty()) continue;
    if (devices_.size() == kMaxDevices) {
      if (before != kMaxDevices) {
        notes_.push_back(
            fmt::format("{}: only the first {} devices are recorded", this->name(), kMaxDevices));
      }
      break;
    }
    const bool part = IsPartOf(name, parent);
    if (!part) parent = name;
    const bool wanted = CheckTag("device", name).ok() && Wanted(name, part) && !IsKnown(name);
    devices_.push_back({std::string(name), wanted});
    if (!wanted) continue;
    for (const DeviceField& field : fields_) AddSeries(field.decl, {{"device", std::string(name)}});
    ReadFields(line, fields_, &values_[values_.size() - fields_.size()]);
  }
  ++generation_;
}

}  // namespace sonde::collect
