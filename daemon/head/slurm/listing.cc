#include "daemon/head/slurm/listing.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <ctime>

#include "core/text/slurm_time.h"

namespace sonde::head {
namespace {

// squeue pads fields to these widths and cuts longer ones. Its --format with signs between fields
// has no time of preemption.
struct Column {
  std::string_view name;  // as squeue calls it
  size_t width;
};
enum Field : size_t {
  kJob,
  kState,
  kReason,
  kTimeLimit,
  kSubmitted,
  kBegun,
  kPreempted,
  kCpus,
  kQos,
  kGres,
  kFeatures,
  kFields
};
constexpr std::array<Column, kFields> kColumns = {{{"JobID", 20},
                                                   {"State", 24},
                                                   {"Reason", 40},
                                                   {"TimeLimit", 20},
                                                   {"SubmitTime", 24},
                                                   {"StartTime", 24},
                                                   {"PreemptTime", 24},
                                                   {"NumCPUs", 16},
                                                   {"QOS", 64},
                                                   {"tres-per-node", 256},
                                                   {"Feature", 256}}};
constexpr size_t kMaxWord = 256;

using Fields = std::array<std::string_view, kFields>;

Fields Split(std::string_view line) {
  Fields fields;
  for (size_t i = 0; i < kFields; ++i) {
    const std::string_view field = line.substr(0, kColumns[i].width);
    line.remove_prefix(field.size());
    fields[i] = field.substr(0, field.find_last_not_of(' ') + 1);
  }
  return fields;
}

template <typename T>
T Number(std::string_view text) {
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

// "2026-11-26T07:42:34"; 0: none, as of a job that has not begun.
Nanos Time(std::string_view text) {
  std::tm parts{};
  const std::string copy(text.substr(0, kMaxWord));
  const char* const end = strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (end == nullptr || *end != '\0') return 0;
  const std::time_t seconds = timegm(&parts);
  constexpr std::time_t kLast = 9'000'000'000;  // of what nanoseconds can say
  return seconds <= 0 || seconds > kLast ? 0 : Nanos{seconds} * kSecond;
}

// Slurm's words for nothing.
std::string Word(std::string_view text) {
  if (text == "(null)" || text == "N/A" || text == "null") return "";
  return std::string(text.substr(0, kMaxWord));
}

// As long as a job is completing its state says nothing else, but the reason does, and the time at
// which it was preempted.
std::optional<EndState> EndOf(const Fields& fields) {
  const std::string_view state = fields[kState], reason = fields[kReason];
  if (state == "TIMEOUT" || state == "DEADLINE") return EndState::kTimeout;
  if (state == "PREEMPTED") return EndState::kPreempted;
  if (state == "NODE_FAIL" || state == "BOOT_FAIL") return EndState::kNodeFail;
  if (state == "CANCELLED") return EndState::kCancelled;
  if (state != "COMPLETING") return {};
  if (reason == "TimeLimit") return EndState::kTimeout;
  if (reason == "NodeDown") return EndState::kNodeFail;
  return Time(fields[kPreempted]) != 0 ? EndState::kPreempted : EndState::kCancelled;
}

}  // namespace

std::vector<std::string> SqueueArguments(std::string_view job) {
  std::string columns;
  for (const Column& column : kColumns) {
    columns += fmt::format("{}{}:{}", columns.empty() ? "" : ",", column.name, column.width);
  }
  return {"squeue", "--noheader", "--states=all", "--jobs=" + std::string(job),
          "--Format=" + columns};
}

Nanos ParseTimeLimit(std::string_view text) {
  const std::optional<int64_t> seconds = ParseSlurmTime(text);
  if (seconds == kNoTimeLimit) return JobRequest::kNoLimit;
  return seconds.value_or(0) * kSecond;
}

Result<JobNow> ParseListing(std::string_view text, std::string_view job) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const Fields fields = Split(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (fields[kJob] != job) continue;
    JobNow now;
    now.end = EndOf(fields);
    now.request.time_limit = ParseTimeLimit(fields[kTimeLimit]);
    now.request.submitted = Time(fields[kSubmitted]);
    now.request.begun = Time(fields[kBegun]);
    now.request.cpus = Number<uint32_t>(fields[kCpus]);
    now.request.qos = Word(fields[kQos]);
    now.request.gres = Word(fields[kGres]);
    now.request.features = Word(fields[kFeatures]);
    return now;
  }
  return Status(Code::kNotFound, fmt::format("squeue does not list job {}", job));
}

}  // namespace sonde::head
