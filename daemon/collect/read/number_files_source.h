// A source whose devices have a directory each, with a file for every number: ports of a network
// adapter, pools of huge pages.
//
// Which files are which metrics is a table; a derived class says which devices there are. A device
// has series for the files that are there and hold a number.
//
// Devices are listed once a minute, and soon after one could not be read at all.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

struct NumberField {
  std::string_view file;  // below the device's directory
  double scale;           // to the metric's unit
  MetricDecl decl;
  // More than 0: the number is the sum of so many files, named FILE0, FILE1, ...
  uint8_t parts = 0;
};

class NumberFilesSource : public Source {
 public:
  Group group() const override { return Group::kOs; }
  void Sample(Nanos now) final;

 protected:
  struct Device {
    Tags tags;
    std::string directory;
    double scale = 1;  // of its bytes, on top of the fields'
    std::partial_ordering operator<=>(const Device&) const = default;
  };

  // `root`: without this directory there are no devices. `fields` and `buffer` outlive this. The
  // files are read at most every `period`.
  NumberFilesSource(std::string root, int level, std::span<const NumberField> fields,
                    ReadBuffer& buffer, Nanos period = 0)
      : root_(std::move(root)), level_(level), fields_(fields), buffer_(buffer), period_(period) {}

  virtual std::vector<Device> ListDevices() const = 0;
  // The number in a file's text; kMissing if there is none, or it is cut short.
  virtual double ParseNumber(std::string_view text) const;

  const std::string& root() const { return root_; }

 private:
  struct Found {
    Device device;
    std::vector<const NumberField*> fields;
    std::partial_ordering operator<=>(const Found&) const = default;
  };
  struct Number {
    std::vector<FileReader> files;
    double scale;
  };
  struct Entry {
    std::vector<Number> numbers;
    bool readable = false;  // the last time
  };

  double Read(Number& number, Nanos now);
  void Rescan(Nanos now);
  std::vector<Found> ListFields() const;
  void Declare(Nanos now);
  void DeclareDevice(const Found& found, Nanos now);

  const std::string root_;
  const int level_;
  const std::span<const NumberField> fields_;
  ReadBuffer& buffer_;
  const Nanos period_;
  std::vector<Found> found_;
  std::vector<Entry> entries_;  // of found_, in its order
  Nanos read_at_ = 0;
  Nanos rescan_at_ = 0;
  bool limit_noted_ = false;
};

}  // namespace sonde::collect
