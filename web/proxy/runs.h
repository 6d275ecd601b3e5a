// The finished runs of one command: what models of it are made from.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiles/model/profile.h"
#include "web/route/gather.h"
#include "web/route/route.h"

namespace sonde::web {

// The name under which metric-proxy has the duration of a run, in seconds.
inline constexpr std::string_view kWalltime = "walltime";
double WalltimeOf(const JobDescription& job);

// The newest finished steps, as many as the parameter `limit` says: 1 to 100000, 10000 if absent.
Task<Result<std::vector<JobDescription>>> FinishedSteps(const Context& context,
                                                        const Request& request);

// The parameter `jobid`; kInvalid without it.
Result<std::string> AskedStep(const Request& request);
// The profile that the parameter `jobid` names.
Task<Result<Profile>> AskedProfile(const Context& context, const Request& request);

struct Runs {
  uint64_t count = 0;
  // {metric: [[tasks, value], ...]}, by number of tasks: of a counter its total, of a gauge its
  // mean; and kWalltime.
  std::map<std::string, std::vector<std::pair<uint32_t, double>>> points;
};

// Which of a command's runs count.
enum class RunEnd : uint8_t { kAny, kCompleted };

// The parameters of FinishedSteps and RunsOf, where a step names the command.
inline constexpr RouteParam kStepOfCommand = {"jobid", "a step of the command, such as 4711.0",
                                              kText, true};
inline constexpr RouteParam kLookedThrough = {
    "limit", "how many steps are looked through, 1 to 100000", kCount};
inline constexpr RouteParam kRunsRead = {
    "runs", "how many of them are read at most, 1 to 1000; 100 if absent", kCount};

// The newest runs, as many as the parameter `runs` says: 1 to 1000, 100 if absent. Runs are looked
// for among FinishedSteps; one that cannot be read is left out.
Task<Result<Runs>> RunsOf(const Context& context, const Request& request, std::string command,
                          RunEnd end);

}  // namespace sonde::web
