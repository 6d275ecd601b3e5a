#include "cli/model/queued_job.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>

#include "core/text/slurm_time.h"

namespace sonde::cli {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr size_t kMostOutput = 1u << 20;

// After `key` up to a blank or, if the key begins its line, up to the end: names and commands have
// blanks. "" if there is none.
std::string_view ValueOf(std::string_view text, std::string_view key, bool to_the_end) {
  for (size_t at = 0; (at = text.find(key, at)) != std::string_view::npos; at += key.size()) {
    if (at != 0 && text[at - 1] != ' ' && text[at - 1] != '\n') continue;
    const std::string_view rest = text.substr(at + key.size());
    return rest.substr(0, rest.find_first_of(to_the_end ? "\n" : " \n"));
  }
  return "";
}

// A number, or the first of a range such as 2-4: what the job gets at least.
uint32_t NumberOf(std::string_view text) {
  uint32_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of(kDigits) == std::string_view::npos;
}

}  // namespace

bool IsJobId(std::string_view text) {
  const size_t bar = text.find('_');
  if (bar == std::string_view::npos) return IsNumber(text);
  return IsNumber(text.substr(0, bar)) && IsNumber(text.substr(bar + 1));
}

Result<QueuedJob> QueuedJobOf(const std::string& id) {
  if (!IsJobId(id)) return Status(Code::kInvalid, fmt::format("'{}' is no job's id", id));
  const std::string command = "exec scontrol show job " + id + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) return SystemError("start scontrol");
  std::string text;
  std::array<char, 4096> part;
  for (size_t n; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    if (text.size() < kMostOutput) text.append(part.data(), n);
  }
  const int status = pclose(pipe);
  constexpr int kNoProgram = 127;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoProgram) {
    return Status(Code::kUnsupported, "scontrol cannot be run on this host");
  }
  if (status != 0) {
    return Status(Code::kNotFound,
                  fmt::format("scontrol knows no job {}: {}", id, text.substr(0, text.find('\n'))));
  }
  return ParseQueuedJob(text);
}

Result<QueuedJob> ParseQueuedJob(std::string_view text) {
  // An array has a paragraph for each of its tasks.
  if (const size_t end = text.find("\n\n"); end != std::string_view::npos) {
    text = text.substr(0, end);
  }
  QueuedJob job;
  job.id = ValueOf(text, "JobId=", false);
  job.name = ValueOf(text, "JobName=", true);
  job.command = ValueOf(text, "Command=", true);
  if (job.command == "(null)") job.command.clear();
  job.nodes = NumberOf(ValueOf(text, "NumNodes=", false));
  job.tasks = NumberOf(ValueOf(text, "NumTasks=", false));
  job.cpus_per_task = NumberOf(ValueOf(text, "CPUs/Task=", false));
  job.time_limit = std::max(0.0, ParseTimeLimit(ValueOf(text, "TimeLimit=", false)));
  if (job.id.empty() || job.nodes == 0) {
    return Status(Code::kCorrupt, "scontrol says nothing of the job's nodes");
  }
  return job;
}

double ParseTimeLimit(std::string_view text) {
  const std::optional<int64_t> seconds = ParseSlurmTime(text);
  if (!seconds) return -1;
  return *seconds == kNoTimeLimit ? 0 : static_cast<double>(*seconds);
}

}  // namespace sonde::cli
