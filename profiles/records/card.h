// The card of a profile: the values by which lists show, filter and sort it, in a few hundred bytes
// in the index by time, so that a list reads no profile. docs/format.md specifies the bytes.
//
// A card is made from a profile alone, and the same profile always has the same card.
//
// Thread safety: values and functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/job.h"
#include "core/status.h"
#include "profiles/model/profile.h"

namespace sonde {

struct Summary;

// Numbers on a card. Their order is written to disk; new ones go last.
enum class CardNumber : uint8_t {
  kCpu,      // seconds, of the tasks
  kCpuUser,  // seconds
  kCpuSystem,
  kCpuOfNodes,  // ratio
  kNodeCpus,
  kLeastCpu,  // seconds
  kMostCpu,
  kMemoryPeak,  // bytes
  kMemoryTotal,
  kNetworkReceived,  // bytes
  kNetworkSent,
  kDiskRead,
  kDiskWritten,
  kTaskRead,
  kTaskWritten,
  kEnergy,         // joules, of processors and memory (the step's share) and of its GPUs
  kMeasuredTasks,  // of which the CPU time is known; with it:
  kMeasured,       // seconds, for each in the mean
  kMemoryLimit,    // bytes
};
inline constexpr size_t kCardNumbers = 19;
inline constexpr size_t kMaxCard = 16'384;  // bytes; what DecodeCard takes at most

// Texts point into the decoded bytes. The step and its start are in the profile's key.
struct Card {
  EndState state = EndState::kRunning;
  int level = 0;
  int exit_status = 0;
  uint32_t nodes = 0;  // expected
  uint32_t tasks = 0;
  Nanos end = 0;      // 0 while running
  uint64_t size = 0;  // the profile's stored_bytes or, if they are not known, those of its JSON
  Coverage coverage;
  std::string_view name;
  std::string_view user;
  std::string_view account;
  std::string_view partition;
  std::string_view command;  // the first kMaxCardCommand bytes
  std::string_view array_job;
  std::string_view array_task;
  std::string_view het_job;
  std::string_view figure;  // the first figure of merit's name; "": none
  std::string_view figure_unit;
  double figure_value = 0;
  std::vector<std::pair<std::string_view, std::string_view>> tags;  // in the order of their names
  std::array<double, kCardNumbers> numbers{};                       // NaN: not measured
  std::string_view least_by, most_by, memory_by;                    // of kLeastCpu and so on

  double Number(CardNumber number) const { return numbers[static_cast<size_t>(number)]; }
};

inline constexpr size_t kMaxCardName = 128;
inline constexpr size_t kMaxCardWord = 64;  // users, accounts, partitions, ids of jobs
inline constexpr size_t kMaxCardCommand = 512;
inline constexpr size_t kMaxCardHolder = 300;

// `profile_bytes`: of the profile as JSON. `now`: the end of a step that still runs.
std::string MakeCard(const Profile& profile, size_t profile_bytes, Nanos now = 0);
// kUnsupported: a later version made it; kCorrupt. Reusing `card` spares allocations.
Status DecodeCard(std::string_view bytes, Card& card);

// The summary of the step that began at `start`.
Summary SummaryOfCard(const Card& card, Nanos start, Nanos now);

// `text` as JSON holds it, cut to so many bytes: wrong UTF-8 is replaced.
std::string CardText(std::string_view text, size_t limit);

}  // namespace sonde
