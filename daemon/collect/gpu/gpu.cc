#include "daemon/collect/gpu/gpu.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "daemon/collect/gpu/xid.h"
#include "daemon/collect/read/directory.h"

namespace sonde::collect {
namespace {

using gpu::DeviceReading;
using gpu::Reading;
using gpu::Value;

constexpr int kDetailsLevel = 4;
constexpr int kMaxXidNotes = 16;

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool HasIntelGpu(const Roots& roots) {
  const std::string drm = roots.sys + "/class/drm/";
  ReadBuffer buffer;
  for (const std::string& node : ListDirectory(drm)) {
    if (node.starts_with("renderD") && FirstLine(drm + node + "/device/vendor", buffer) == "0x8086")
      return true;
  }
  return false;
}

}  // namespace

// One series of a device, once it had a value.
struct GpuSource::Slot {
  double value = kMissing;
  bool seen = false;
  gpu::SteadyCounter counter;
};

struct GpuSource::GpuState {
  std::string name;
  std::vector<Slot> slots;     // beside columns_
  std::vector<Slot> received;  // by link
  std::vector<Slot> transmitted;
  bool counts_energy = false;
  double xids = 0;
};

struct GpuSource::TaskMemory {
  size_t device = 0;
  uint32_t rank = 0;
  double value = 0;
};

GpuSource::GpuSource(GpuOptions options, const TasksSource& tasks)
    : options_(std::move(options)), tasks_(tasks) {
  for (const gpu::Column& column : gpu::Columns()) {
    if (column.decl.level <= options_.level) columns_.push_back(column);
  }
  if (!gpu::Selection(options_.wanted).none()) ChooseLibraries();
}

GpuSource::~GpuSource() = default;

void GpuSource::ChooseLibraries() {
  gpu::Fleet::Options fleet;
  fleet.wanted = options_.wanted;
  fleet.clock = options_.clock;
  fleet.libraries = std::move(options_.libraries);
  if (fleet.libraries.empty()) {
    const bool given = !options_.wanted.empty();
    const Roots& roots = options_.roots;
    const auto add = [&](bool there, auto make) {
      if (!there && !given) return;
      fleet.libraries.push_back(
          make({.details = options_.level >= kDetailsLevel, .clock = options_.clock}));
    };
    add(Exists(roots.proc + "/driver/nvidia/version") || Exists(roots.sys + "/module/nvidia"),
        gpu::MakeNvml);
    add(Exists(roots.sys + "/class/kfd/kfd"), gpu::MakeRocmSmi);
    add(HasIntelGpu(roots), gpu::MakeLevelZero);
  }
  if (!fleet.libraries.empty()) fleet_ = std::make_unique<gpu::Fleet>(std::move(fleet));
}

void GpuSource::Start() {
  Result<std::unique_ptr<gpu::Worker>> worker = gpu::Worker::Start(std::move(fleet_));
  if (worker.ok()) {
    worker_ = *std::move(worker);
  } else {
    notes_.push_back(fmt::format("no GPU metrics: {}", worker.status().message()));
  }
}

void GpuSource::Sample(Nanos) {
  if (fleet_ != nullptr) Start();
  if (worker_ == nullptr) return;
  const Nanos now = options_.clock->Monotonic();
  if (now >= ask_at_) {
    ask_at_ = now + kReadPeriod;
    if (worker_->Ask()) asked_at_ = now;
    const Nanos patience = first_ ? options_.first_patience : options_.patience;
    if (first_ || took_ <= patience) worker_->Wait(patience);
    first_ = false;
  }
  if (worker_->Take(devices_, notes_)) {
    took_ = worker_->took();
    NoteSilence(false);
    Update();
  } else if (now - asked_at_ >= kSilence && !worker_->Wait(0)) {
    NoteSilence(true);
    std::fill(values_.begin(), values_.end(), kMissing);
  }
}

void GpuSource::NoteSilence(bool silent) {
  if (silent == silent_) return;
  silent_ = silent;
  notes_.push_back(silent ? fmt::format("GPUs have not answered for {}: their metrics are missing "
                                        "until they do",
                                        FormatDuration(kSilence))
                          : std::string("GPUs answer again"));
}

void GpuSource::Update() {
  for (size_t i = states_.size(); i < devices_.size(); ++i) AddDevice(devices_[i].name);
  for (size_t i = 0; i < devices_.size(); ++i) {
    UpdateDevice(states_[i], devices_[i]);
    if (options_.level >= kDetailsLevel) UpdateTasks(i, devices_[i].reading);
  }
  if (std::exchange(grown_, false)) Declare();
  ShowValues();
}

void GpuSource::AddDevice(const std::string& name) {
  GpuState& state = states_.emplace_back();
  state.name = name;
  state.slots.resize(columns_.size());
  if (options_.level < kDetailsLevel) return;
  state.received.resize(gpu::kMaxLinks);
  state.transmitted.resize(gpu::kMaxLinks);
}

void GpuSource::UpdateDevice(GpuState& state, const DeviceReading& device) {
  const Reading& reading = device.reading;
  const auto show = [&](Slot& slot, double value) {
    slot.value = value;
    if (std::isnan(value) || slot.seen) return;
    slot.seen = grown_ = true;
  };
  for (size_t i = 0; i < columns_.size(); ++i) {
    const gpu::Column& column = columns_[i];
    Slot& slot = state.slots[i];
    const double value = reading[column.value];
    if (column.value == Value::kEnergy) {
      show(slot, EnergyOf(state, slot.counter, device));
    } else if (column.decl.type == MetricType::kCounter) {
      show(slot, slot.counter.Add(value, device.read_at, column.most));
    } else {
      show(slot, value <= column.most ? value : kMissing);
    }
  }
  for (size_t i = 0; i < state.received.size(); ++i) {
    const gpu::Link& link = reading.links[i];
    Slot& in = state.received[i];
    Slot& out = state.transmitted[i];
    show(in, in.counter.Add(link.received, device.read_at, gpu::kMostLinkBytes));
    show(out, out.counter.Add(link.transmitted, device.read_at, gpu::kMostLinkBytes));
  }
  NoteXid(state, device);
}

double GpuSource::EnergyOf(GpuState& state, gpu::SteadyCounter& counter,
                           const DeviceReading& device) const {
  constexpr double kMostWatts = 1e5;
  const double energy = device.reading[Value::kEnergy];
  if (!std::isnan(energy)) state.counts_energy = true;
  if (state.counts_energy) return counter.Add(energy, device.read_at, kMostWatts);
  const double power = device.reading[Value::kPower];
  return counter.Integrate(power <= kMostWatts ? power : kMissing, device.read_at);
}

void GpuSource::NoteXid(GpuState& state, const DeviceReading& device) {
  const double xids = device.reading[Value::kXidErrors];
  if (!(xids > state.xids)) return;
  const double rise = xids - std::exchange(state.xids, xids);
  if (++xid_notes_ > kMaxXidNotes) return;
  const double last = device.reading[Value::kLastXid];
  const auto number = last >= 0 && last < 1e6 ? static_cast<unsigned>(last) : 0;
  const std::string_view text = gpu::XidText(number);
  notes_.push_back(fmt::format("GPU {}: XID {}{}{}{}", state.name, number, text.empty() ? "" : ": ",
                               text,
                               rise > 1 ? fmt::format(" ({} since the last look)", rise) : ""));
}

void GpuSource::UpdateTasks(size_t device, const Reading& reading) {
  for (TaskMemory& memory : memories_) {
    if (memory.device == device) memory.value = reading.processes_known ? 0 : kMissing;
  }
  for (const gpu::Process& process : reading.processes) {
    const std::optional<uint32_t> rank = tasks_.RankOf(static_cast<pid_t>(process.pid));
    if (!rank || !reading.processes_known) continue;
    auto at = std::find_if(memories_.begin(), memories_.end(), [&](const TaskMemory& memory) {
      return memory.device == device && memory.rank == *rank;
    });
    if (at == memories_.end()) {
      at = memories_.insert(at, {device, *rank, 0});
      grown_ = true;
    }
    at->value += process.memory;
  }
}

void GpuSource::Declare() {
  series_.clear();
  const auto add = [&](const Slot& slot, const MetricDecl& decl, const GpuState& state,
                       std::string_view tag, std::string_view value) {
    if (!slot.seen) return;
    Series& s = series_.emplace_back();
    s.metric = Metric(decl);
    s.tags.Set("gpu", state.name);
    if (!tag.empty()) s.tags.Set(tag, value);
  };
  for (const GpuState& state : states_) {
    for (size_t i = 0; i < columns_.size(); ++i) {
      const gpu::Column& column = columns_[i];
      add(state.slots[i], column.decl, state, column.tag, column.tag_value);
    }
    for (size_t i = 0; i < state.received.size(); ++i) {
      const std::string link = std::to_string(i);
      add(state.received[i], gpu::kLinkReceivedDecl, state, "link", link);
      add(state.transmitted[i], gpu::kLinkTransmittedDecl, state, "link", link);
    }
  }
  for (const TaskMemory& memory : memories_) {
    Series& s = series_.emplace_back();
    s.metric = Metric(gpu::kProcessMemoryDecl);
    s.tags.Set("gpu", states_[memory.device].name);
    s.tags.Set("task", std::to_string(memory.rank));
  }
  values_.assign(series_.size(), kMissing);
  ++generation_;
}

// In the order of Declare.
void GpuSource::ShowValues() {
  double* to = values_.data();
  const auto show = [&](const Slot& slot) {
    if (slot.seen) *to++ = slot.value;
  };
  for (const GpuState& state : states_) {
    for (const Slot& slot : state.slots) show(slot);
    for (size_t i = 0; i < state.received.size(); ++i) {
      show(state.received[i]);
      show(state.transmitted[i]);
    }
  }
  for (const TaskMemory& memory : memories_) *to++ = memory.value;
}

}  // namespace sonde::collect
