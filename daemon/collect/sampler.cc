#include "daemon/collect/sampler.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "daemon/collect/filesystems/filesystem_sources.h"
#include "daemon/collect/gpu/gpu.h"
#include "daemon/collect/job/allocation.h"
#include "daemon/collect/job/cgroup.h"
#include "daemon/collect/os/os_sources.h"
#include "daemon/collect/read/parse.h"
#include "daemon/collect/sensors/sensor_sources.h"
#include "daemon/collect/sensors/step_energy.h"

namespace sonde::collect {

struct Sampler::Part {
  // What makes a counter count from the step's start.
  struct Offset {
    double base = kMissing;  // subtracted from what is read; missing: not read yet
    double last = 0;         // what was read last
  };
  uint32_t generation = 0;
  bool built = false;
  bool from_boot = false;
  bool dear = false;
  bool was_read = false;  // ever
  bool read = false;      // at the last sample
  size_t clock = 0;       // of SelfSource
  const Source* source = nullptr;
  std::vector<size_t> times;    // columns of counters in seconds
  std::vector<bool> counter;    // by column; empty unless from_boot
  std::vector<Offset> offsets;  // by column; empty unless from_boot
  std::vector<std::string> names;
  std::map<std::string, Offset> gone;  // of series that are not there now, should they come back
};

Sampler::Sampler(const Options& options)
    : period_(std::max<Nanos>(options.period, 1)), times_sources_(options.level >= 4) {
  const Roots& roots = options.roots;
  const int level = options.level;
  auto self = std::make_unique<SelfSource>(roots, level, buffer_);
  self_ = self.get();
  AddSource(std::move(self));
  auto tasks = std::make_unique<TasksSource>(roots, buffer_, &forks_);
  tasks_ = tasks.get();
  if (level < 2) {
    idle_tasks_ = std::move(tasks);
    return;
  }
  AddSystemSources(options);
  AddSource(std::move(tasks));
  if (options.memory != 0) AddSource(std::make_unique<AllocationSource>(options.memory));
  AddSource(std::make_unique<CgroupSource>(roots, *tasks_, buffer_));
  if (level < 3) return;
  AddSource(MakeProcessorSource(roots));
  auto power = MakePowerSource(roots, level, buffer_);
  auto machine = std::make_unique<MachineSource>(roots, level);
  machine_ = machine.get();
  auto share = std::make_unique<StepEnergySource>(
      *cpu_, *tasks_, std::vector<const Source*>{power.get(), machine_});
  AddSource(std::move(power));
  AddSource(std::move(machine));
  AddSource(std::move(share));
  auto perf = std::make_unique<PerfSource>(
      EventChoice{options.events, options.event_sets, options.roots, level >= 4});
  perf_ = perf.get();
  handover_ = std::make_unique<Handover>(roots, *tasks_, *perf_);
  AddSource(std::move(perf));
  AddSource(std::make_unique<GpuSource>(
      GpuOptions{.level = level, .roots = roots, .wanted = options.gpus}, *tasks_));
}

Sampler::~Sampler() = default;

namespace {

// The double closest to a time in whole nanoseconds, than which the kernel tells nothing finer. A
// sum or difference of decimals is next to such a number, not on it, and takes three times the room
// in a block.
double WholeNanos(double seconds) {
  constexpr double kEnd = 4e6;  // from here on a double is no finer than a nanosecond itself
  return std::fabs(seconds) < kEnd ? std::nearbyint(seconds * 1e9) / 1e9 : seconds;
}

}  // namespace

void Sampler::AddSystemSources(const Options& options) {
  const Roots& roots = options.roots;
  const int level = options.level;
  auto cpu = MakeCpuSource(roots, level, buffer_, &forks_);
  cpu_ = cpu.get();
  AddSource(std::move(cpu));
  AddSource(MakeMeminfoSource(roots, level, buffer_));
  AddSource(MakeLoadavgSource(roots, buffer_));
  AddSource(MakeNetdevSource(roots, level, buffer_));
  // These cost 10 to 40 us each, however few of their values are kept.
  const Price dear = level >= 4 ? Price::kCheap : Price::kDear;
  AddSource(MakeVmstatSource(roots, level, buffer_), dear);
  AddSource(MakeSnmpSource(roots, level, buffer_), dear);
  AddSource(MakeNetstatSource(roots, level, buffer_), dear);
  AddSource(MakeSnmp6Source(roots, level, buffer_), dear);
  AddSource(MakeSockstatSource(roots, level, buffer_), dear);
  AddSource(MakeSoftnetSource(roots, level, buffer_), dear);
  AddSource(MakeInfinibandSource(roots, level, buffer_));
  AddSource(MakeSlingshotSource(roots, level, buffer_));
  AddSource(MakeDisksSource(roots, level, buffer_));
  AddSource(MakeSpaceSource(roots, options.ask_filesystems, buffer_));
  AddSource(MakeNfsSource(roots, level, buffer_));
  AddSource(MakeNfsMountsSource(roots, level, buffer_));
  AddSource(MakeLustreSource(roots, level, buffer_));
  for (const Pressure what : {Pressure::kCpu, Pressure::kIo, Pressure::kMemory}) {
    AddSource(MakePressureSource(roots, what, buffer_));
  }
  AddSource(MakeTemperatureSource(roots, level, buffer_));
  AddSource(MakeThrottlingSource(roots, level, buffer_));
  if (level < 4) return;
  AddSource(MakeFrequencySource(roots, buffer_));
  AddSource(MakeHugepagesSource(roots, level, buffer_));
  AddSource(MakeNumaSource(roots, buffer_));
  AddSource(MakeSoftirqsSource(roots, buffer_));
  AddSource(MakeSchedstatSource(roots, buffer_));
  // The first is as long as processors times devices, the second stops the allocator for a moment.
  AddSource(MakeInterruptsSource(roots, buffer_), Price::kDear);
  AddSource(MakeBuddyinfoSource(roots, buffer_), Price::kDear);
}

void Sampler::AddSource(std::unique_ptr<Source> source) {
  AddSource(std::move(source), Price::kCheap);
}

void Sampler::AddSource(std::unique_ptr<Source> source, Price price) {
  Part& part = parts_.emplace_back();
  part.source = source.get();
  part.from_boot = source->counts_from_boot();
  part.dear = price == Price::kDear;
  if (times_sources_) part.clock = self_->AddSource(source->name());
  sources_.push_back(std::move(source));
}

void Sampler::Sample(Nanos now, Extent extent) {
  const Nanos start = Clock::System().Monotonic();
  if (handover_ != nullptr) handover_->Look(now);
  forks_ = kMissing;
  const bool all = extent == Extent::kAll || IsSlowTick(now, period_);
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.read = all || !part.dear || !part.was_read;
    if (part.read) Read(part, *sources_[i], now, extent);
  }
  for (size_t g = 0; g < kGroups; ++g) {
    const auto group = static_cast<Group>(g);
    RebuildIfChanged(group);
    double* to = groups_[g].values.data();
    for (Part& part : parts_) {
      if (part.source->group() != group) continue;
      Copy(part, to);
      to += part.source->values().size();
    }
  }
  self_->CountSample(Clock::System().Monotonic() - start);
}

bool Sampler::IsDear(size_t source) const { return parts_[source].dear; }

void Sampler::Read(Part& part, Source& source, Nanos now, Extent extent) {
  part.was_read = true;
  const auto sample = [&] {
    if (extent == Extent::kAll) return source.SampleLast(now);
    source.Sample(now);
  };
  if (!times_sources_) return sample();
  const Nanos start = Clock::System().Monotonic();
  sample();
  self_->CountSource(part.clock, Clock::System().Monotonic() - start);
}

void Sampler::Copy(Part& part, double* to) {
  const std::span<const double> values = part.source->values();
  if (!part.read) {
    std::fill_n(to, values.size(), kMissing);
    return;
  }
  std::copy(values.begin(), values.end(), to);
  if (part.from_boot) FromStart(part, values, to);
  for (const size_t i : part.times) to[i] = WholeNanos(to[i]);
}

void Sampler::FromStart(Part& part, std::span<const double> values, double* to) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!part.counter[i] || std::isnan(values[i])) continue;
    Part::Offset& offset = part.offsets[i];
    if (std::isnan(offset.base)) {
      offset.base = values[i];
    } else if (values[i] < offset.last) {
      offset.base -= offset.last - values[i];
    }
    offset.last = values[i];
    to[i] = values[i] - offset.base;
  }
}

void Sampler::RebuildIfChanged(Group group) {
  GroupRow& row = groups_[static_cast<size_t>(group)];
  bool changed = row.schema == nullptr;
  for (Part& part : parts_) {
    if (part.source->group() != group) continue;
    if (part.built && part.generation == part.source->generation()) continue;
    Rebuild(part);
    changed = true;
  }
  if (!changed) return;
  std::vector<Series> series;
  SchemaRoom room;
  size_t count = 0;
  for (const Part& part : parts_) {
    if (part.source->group() != group) continue;
    for (const Series& one : part.source->series()) {
      // Once one has had no room the others have none.
      if (count++ == series.size() && room.Take(one)) {
        series.push_back(one);
      } else if (!std::exchange(row.said_left_out, true)) {
        notes_.push_back(fmt::format(
            "series of this node are not recorded, the first of them {}: there is room for {}",
            SeriesName(one.metric.name, one.tags), series.size()));
      }
    }
  }
  row.values.assign(count, kMissing);
  row.schema = Schema::Make(std::move(series));
}

// The offsets of series that stay, or come back, are kept.
void Sampler::Rebuild(Part& part) {
  part.built = true;
  part.generation = part.source->generation();
  part.times.clear();
  for (size_t i = 0; i < part.source->series().size(); ++i) {
    const Metric& metric = part.source->series()[i].metric;
    if (metric.type == MetricType::kCounter && metric.unit == "seconds") part.times.push_back(i);
  }
  if (!part.from_boot) return;
  for (size_t i = 0; i < part.names.size(); ++i) part.gone[part.names[i]] = part.offsets[i];
  part.names.clear();
  part.counter.clear();
  part.offsets.clear();
  for (const Series& s : part.source->series()) {
    std::string name = SeriesName(s.metric.name, s.tags);
    const auto known = part.gone.extract(name);
    part.offsets.push_back(known.empty() ? Part::Offset{} : known.mapped());
    part.counter.push_back(s.metric.type == MetricType::kCounter);
    part.names.push_back(std::move(name));
  }
  if (part.gone.size() > kMaxSeries) part.gone.clear();  // of a machine that never rests
}

const Schema::Ptr& Sampler::schema(Group group) const {
  return groups_[static_cast<size_t>(group)].schema;
}

std::span<const double> Sampler::row(Group group) const {
  const GroupRow& row = groups_[static_cast<size_t>(group)];
  return std::span(row.values).first(row.schema == nullptr ? 0 : row.schema->size());
}

void Sampler::TaskExited(uint32_t rank, const std::optional<TaskTotals>& totals) {
  tasks_->TaskExited(rank, totals);
  if (perf_ != nullptr) perf_->TaskExited(rank);
}

std::vector<std::string> Sampler::TakeNotes() {
  std::vector<std::string> notes = std::exchange(notes_, {});
  for (const auto& source : sources_) {
    for (std::string& note : source->TakeNotes()) notes.push_back(std::move(note));
  }
  if (handover_ != nullptr) {
    for (std::string& note : handover_->TakeNotes()) notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace sonde::collect
