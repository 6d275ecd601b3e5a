// The step's control group: what the kernel counts for all its tasks together, and the limits it
// holds them to. Version 1, version 2, or some controllers of each.
//
// Series are those of the controllers in which the step has a group; before it is found there are
// none. A file that is missing, or gone with the group, leaves its values missing.
//
// Version 1 counts a kill only in the group that the process was in, so the kills of the groups of
// tasks are added up.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/job/cgroup_files.h"
#include "daemon/collect/job/cgroup_finder.h"
#include "daemon/collect/job/cgroup_limits.h"
#include "daemon/collect/job/tasks.h"
#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

class CgroupSource final : public Source {
 public:
  // `tasks` is sampled before this one; it and `buffer`, which is shared, outlive it.
  CgroupSource(const Roots& roots, const TasksSource& tasks, ReadBuffer& buffer);
  ~CgroupSource() override;

  std::string_view name() const override { return "cgroup"; }
  Group group() const override { return Group::kOs; }
  // The group is made with the step.
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;

 private:
  struct File;
  struct KillsFile;

  void OpenFiles();
  void AddKillsFile(const std::string& directory);
  void Declare();
  void ReadFile(File& file, Nanos now);
  void ReadKills(Nanos now);
  void ClearDevices();
  void WriteValues();
  std::string DeviceName(const CgroupDevice& device) const;

  const std::string devices_path_;
  ReadBuffer& buffer_;
  CgroupFinder finder_;
  CgroupLimits limits_;
  std::vector<File> files_;
  std::vector<KillsFile> kills_files_;
  std::vector<uint8_t> columns_;  // those that have a series, in their order
  std::vector<double> read_;      // by column
  std::vector<CgroupDevice> devices_;
  size_t devices_declared_ = 0;
};

std::vector<MetricDecl> CgroupMetrics();

}  // namespace sonde::collect
