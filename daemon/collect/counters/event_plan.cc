#include "daemon/collect/counters/event_plan.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/unique_fd.h"
#include "daemon/collect/counters/event_set.h"
#include "daemon/collect/counters/pfm_library.h"
#include "daemon/collect/counters/vocabulary.h"
#include "daemon/collect/counters/words.h"

namespace sonde::collect {
namespace {

// A group is counted only while all of it fits. Processors have 4 counters or more for whatever is
// asked for, of which the kernel's watchdog may hold one.
constexpr size_t kMaxChosenGroup = 3;
constexpr size_t kMaxEventName = 96;
constexpr std::string_view kSyscalls = "syscalls";
constexpr std::string_view kHint = "`sonde events` lists those of a machine";

bool CountsTask(uint32_t type) {
  return type == PERF_TYPE_HARDWARE || type == PERF_TYPE_SOFTWARE || type == PERF_TYPE_HW_CACHE ||
         type == PERF_TYPE_RAW;
}

// The first processor's part is enough: writing all of the file takes the kernel milliseconds on a
// large machine.
ProcessorId ReadProcessor(const Roots& roots) {
  const UniqueFd file(open((roots.proc + "/cpuinfo").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text{};
  const ssize_t size = file ? read(file.get(), text.data(), text.size()) : 0;
  return ParseProcessor({text.data(), static_cast<size_t>(std::max<ssize_t>(size, 0))});
}

class Planner {
 public:
  Planner(const EventChoice& choice, std::vector<std::string>& notes)
      : choice_(choice),
        notes_(notes),
        pfm_(choice.roots),
        software_(SoftwareEventSet()),
        set_(FindEventSet(ReadProcessor(choice.roots), choice.site_sets, notes)) {}

  EventPlan Run() {
    std::string_view list = choice_.list;
    if (TrimLine(list).empty()) list = "default";
    while (!list.empty()) {
      if (const std::string_view item = TakeUntil(list, ','); !item.empty()) AddItem(item);
    }
    plan_.set = set_.name;
    NoteUnknown();
    Order();
    AddFormulas();
    return std::move(plan_);
  }

 private:
  void AddItem(std::string_view item) {
    if (item == "default") {
      for (const EventSet* set : {&software_, &set_}) {
        for (const EventSet::Group& group : set->groups) AddGroup(group);
      }
      if (choice_.syscalls) AddSyscalls();
      return;
    }
    if (item == kSyscalls) return AddSyscalls();
    std::string name(item);
    std::replace(name.begin(), name.end(), '-', '_');  // as the kernel's names have it
    for (const EventSet* set : {&software_, &set_}) {
      for (const EventSet::Group& group : set->groups) {
        if (group.name == name) return AddGroup(group);
        for (const EventSet::Event& event : group.events) {
          if (event.name == name) return Add(event, group.name);
        }
      }
    }
    AddChosen(std::string(item));
  }

  // Not libpfm4's: the launcher has the kernel's number for it.
  void AddSyscalls() {
    perf_event_attr attr = {};
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = launch::kSyscalls;
    Add(std::string(kSyscalls), std::string(kSyscalls), attr, std::string(kSyscalls));
  }

  void AddGroup(const EventSet::Group& group) {
    for (const EventSet::Event& event : group.events) Add(event, group.name);
  }

  void Add(const EventSet::Event& event, const std::string& group) {
    Status first;
    for (const std::string& spec : event.specs) {
      perf_event_attr attr = {};
      attr.size = sizeof(attr);
      Status status = Encode(spec, attr);
      if (status.ok()) return Add(event.name, spec, attr, group);
      if (first.ok()) first = std::move(status);
    }
    unknown_ += (unknown_.empty() ? "" : ", ") + event.specs[0];
    if (why_unknown_.empty()) why_unknown_ = first.message();
  }

  void AddChosen(const std::string& name) {
    perf_event_attr attr = {};
    attr.size = sizeof(attr);
    if (name.size() > kMaxEventName) {
      notes_.push_back(fmt::format("event {}... is not counted: no event has so long a name",
                                   name.substr(0, 32)));
    } else if (const Status status = Encode(name, attr); !status.ok()) {
      notes_.push_back(
          fmt::format("event {} is not counted: {}; {}", name, status.message(), kHint));
    } else if (attr.type == PERF_TYPE_SOFTWARE) {
      Add(name, name, attr, "software");
    } else {
      Add(name, name, attr, fmt::format("chosen{}", 1 + chosen_ / kMaxChosenGroup));
    }
  }

  Status Encode(const std::string& spec, perf_event_attr& attr) const {
    SONDE_RETURN_IF_ERROR(pfm_.Encode(spec, attr));
    if (CountsTask(attr.type)) return {};
    return {Code::kInvalid, "it cannot be counted for single tasks"};
  }

  void Add(const std::string& name, const std::string& spec, const perf_event_attr& attr,
           const std::string& group) {
    const bool clock =
        attr.type == PERF_TYPE_SOFTWARE &&
        (attr.config == PERF_COUNT_SW_TASK_CLOCK || attr.config == PERF_COUNT_SW_CPU_CLOCK);
    PlannedEvent event;
    event.metric = EventMetric(name, clock);
    const bool twice = std::any_of(
        plan_.events.begin(), plan_.events.end(),
        [&](const PlannedEvent& known) { return known.metric.name == event.metric.name; });
    if (twice) return;
    if (plan_.events.size() == launch::kMaxEvents) {
      notes_.push_back(fmt::format("event {} is not counted: {} events are the most there can be",
                                   spec, launch::kMaxEvents));
      return;
    }
    if (group.starts_with("chosen")) ++chosen_;
    event.name = name;
    event.text = spec;
    event.scale = clock ? 1e-9 : 1.0;
    event.request = {attr.type, 0, attr.config, attr.config1, attr.config2};
    const auto known = std::find(plan_.groups.begin(), plan_.groups.end(), group);
    event.group = static_cast<uint32_t>(known - plan_.groups.begin());
    if (known == plan_.groups.end()) plan_.groups.push_back(group);
    plan_.events.push_back(std::move(event));
  }

  // Unknown events of the set: one note for all.
  void NoteUnknown() {
    if (unknown_.empty()) return;
    notes_.push_back(
        fmt::format("events of {} are not counted: {} ({})", set_.name, why_unknown_, unknown_));
  }

  // Software events first, then the groups in the order named; the first of a group leads it.
  void Order() {
    std::vector<PlannedEvent>& events = plan_.events;
    std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
      if (a.IsSoftware() != b.IsSoftware()) return a.IsSoftware();
      return a.group < b.group;
    });
    for (size_t i = 0; i < events.size(); ++i) {
      events[i].request.leader = i == 0 || events[i].group != events[i - 1].group ? 1 : 0;
    }
  }

  void AddFormulas() {
    for (const EventSet* set : {&software_, &set_}) {
      for (const EventSet::Binding& binding : set->formulas) {
        const MetricDecl* decl = FindDerived(binding.metric);
        std::optional<std::vector<uint32_t>> inputs = Inputs(binding.formula);
        if (decl == nullptr || !inputs) continue;
        plan_.formulas.push_back({Metric(*decl), binding.formula, *std::move(inputs)});
      }
    }
  }

  // Nothing if one of them is not counted.
  std::optional<std::vector<uint32_t>> Inputs(const Formula& formula) const {
    std::vector<uint32_t> inputs;
    for (const std::string& name : formula.names()) {
      const auto event = std::find_if(plan_.events.begin(), plan_.events.end(),
                                      [&](const PlannedEvent& e) { return e.name == name; });
      if (event != plan_.events.end()) {
        inputs.push_back(static_cast<uint32_t>(event - plan_.events.begin()));
      } else if (name == "seconds") {
        inputs.push_back(PlannedFormula::kSeconds);
      } else {
        return std::nullopt;
      }
    }
    return inputs;
  }

  const EventChoice& choice_;
  std::vector<std::string>& notes_;
  const PfmLibrary pfm_;
  const EventSet software_;
  const EventSet set_;
  EventPlan plan_;
  size_t chosen_ = 0;
  std::string unknown_;
  std::string why_unknown_;
};

}  // namespace

bool PlannedEvent::IsSoftware() const {
  return request.type == PERF_TYPE_SOFTWARE || request.type == PERF_TYPE_TRACEPOINT;
}

EventPlan PlanEvents(const EventChoice& choice, std::vector<std::string>& notes) {
  return Planner(choice, notes).Run();
}

}  // namespace sonde::collect
