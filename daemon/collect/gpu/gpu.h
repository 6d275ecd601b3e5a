// The step's GPUs: NVIDIA's by NVML, AMD's by ROCm SMI, Intel's by Level Zero Sysman.
//
// Which devices: those that the launcher names (launcher/launch.h, key gpus), by number in the
// order of the PCI bus, as Slurm and nvidia-smi count them; all of the node if it names none. On a
// node with GPUs of two vendors the numbers are those of the first in the list above.
//
// Libraries are loaded only if the kernel has a driver for such GPUs or the step was given some,
// and only then is anything amiss if none is installed: one note says so. On other nodes nothing is
// loaded, and no thread made. A library that finds no device is no news.
//
// They are opened and read by a thread (worker.h), so that no driver holds up the daemon. A tick
// asks for a reading and waits a few milliseconds for it, if the last one was as quick; else, and
// with periods shorter than kReadPeriod, the tick takes the last reading. Values of devices that
// say nothing for kSilence are missing.
//
// A series appears with its first value: what a device does not have has none. Counters are steady
// (steady_counter.h). Energy is the device's own counter, or its power summed up if it has none.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/collect/gpu/fleet.h"
#include "daemon/collect/gpu/gpu_metrics.h"
#include "daemon/collect/gpu/steady_counter.h"
#include "daemon/collect/gpu/worker.h"
#include "daemon/collect/job/tasks.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

struct GpuOptions {
  int level = 3;
  Roots roots = {};
  std::string wanted = {};  // gpu/selection.h
  // Instead of the vendors' own.
  std::vector<std::unique_ptr<gpu::Library>> libraries = {};
  // How long a tick waits for a reading, and for the first, which opens the libraries.
  Nanos patience = 5 * kMillisecond;
  Nanos first_patience = 0;
  const Clock* clock = &Clock::System();
};

class GpuSource final : public Source {
 public:
  // Ticks may come a little early.
  static constexpr Nanos kReadPeriod = 95 * kMillisecond;
  static constexpr Nanos kSilence = 5 * kSecond;

  // `tasks` outlives it.
  GpuSource(GpuOptions options, const TasksSource& tasks);
  ~GpuSource() override;

  std::string_view name() const override { return "gpu"; }
  Group group() const override { return Group::kOs; }
  // Counters begin with the first reading.
  bool counts_from_boot() const override { return false; }
  void Sample(Nanos now) override;
  // Whether there is anything to look for.
  bool loads() const { return fleet_ != nullptr || worker_ != nullptr; }

 private:
  struct Slot;
  struct GpuState;
  struct TaskMemory;

  void ChooseLibraries();
  void Start();
  void NoteSilence(bool silent);
  void Update();
  void AddDevice(const std::string& name);
  void UpdateDevice(GpuState& state, const gpu::DeviceReading& device);
  double EnergyOf(GpuState& state, gpu::SteadyCounter& counter,
                  const gpu::DeviceReading& device) const;
  void NoteXid(GpuState& state, const gpu::DeviceReading& device);
  void UpdateTasks(size_t device, const gpu::Reading& reading);
  void Declare();
  void ShowValues();

  GpuOptions options_;
  const TasksSource& tasks_;
  std::vector<gpu::Column> columns_;   // of the step's level
  std::unique_ptr<gpu::Fleet> fleet_;  // until the worker has it
  std::unique_ptr<gpu::Worker> worker_;
  Nanos ask_at_ = 0;
  Nanos asked_at_ = 0;
  Nanos took_ = 0;
  bool first_ = true;
  bool silent_ = false;
  std::vector<gpu::DeviceReading> devices_;
  std::vector<GpuState> states_;  // beside devices_
  std::vector<TaskMemory> memories_;
  bool grown_ = false;
  int xid_notes_ = 0;
};

}  // namespace sonde::collect
