// What the step's control group may use at most: memory, swap space, processes, processor time and
// processors.
//
// A limit is the smallest of the group's and of those above it; they are read every 10 s, for they
// hardly ever change.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "daemon/collect/job/cgroup_columns.h"
#include "daemon/collect/job/cgroup_finder.h"
#include "daemon/collect/read/file_reader.h"

namespace sonde::collect {

class CgroupLimits {
 public:
  explicit CgroupLimits(ReadBuffer& buffer);

  // Looks for the files of the group that was found.
  void Open(const CgroupFinder& finder);
  // Reads them if it is time.
  void Read(Nanos now);
  // By column; missing where there is no limit.
  const std::vector<double>& values() const { return values_; }
  // Whether the column is a limit that this group might have.
  bool Has(uint8_t column) const;

 private:
  struct File {
    const struct CgroupLimitSpec* spec;
    std::string directory;
  };

  double ReadLimit(const File& file);
  std::string_view ReadFile(const std::string& directory, std::string_view name);

  ReadBuffer& buffer_;
  std::vector<File> files_;
  std::vector<double> values_;
  size_t size_ = 64;
  Nanos read_at_ = 0;
};

}  // namespace sonde::collect
