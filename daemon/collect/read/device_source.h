// A source whose file has a line of numbers for each device, as /proc/net/dev and /proc/diskstats.
//
// Which columns are which metrics is a table; a derived class says where a line's name ends and
// which devices are wanted. The devices of the last reading are remembered by line, so nothing is
// looked up while no device comes or goes.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/read/file_source.h"

namespace sonde::collect {

// One number of a device's line.
struct DeviceField {
  MetricDecl decl;
  uint8_t index;  // of the number behind the name, from 0; the table is sorted by it
  double scale;   // to the metric's unit
};

// Takes the numbers that follow, one for each field; a number that is not there is missing.
void ReadFields(Cursor& line, std::span<const DeviceField> fields, double* values);

class DeviceSource : public FileSource {
 public:
  void Parse(std::string_view text) final;
  bool counts_from_boot() const final { return true; }

 protected:
  DeviceSource(std::string path, int level, std::span<const DeviceField> fields,
               ReadBuffer& buffer);

  // Goes behind the device's name; empty if the line names none.
  virtual std::string_view TakeName(Cursor& line) const = 0;
  // Whether it is a part of `whole`, which stands before it: a disk's partition.
  virtual bool IsPartOf(std::string_view device, std::string_view whole) const = 0;
  // Whether the device's series are kept.
  virtual bool Wanted(std::string_view device, bool is_part) const = 0;

 private:
  struct Device {
    std::string name;
    bool wanted = false;
  };
  bool IsKnown(std::string_view name) const;
  void Rescan(std::string_view text);

  std::vector<DeviceField> fields_;  // of the step's level
  std::vector<Device> devices_;      // in the order of the file
};

}  // namespace sonde::collect
