// /queue/list, in the shape of metric-proxy: {"jobs": {"JOBID": {"COLUMN": value, ...}}}.
#include "web/proxy/queue.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>

#include "core/process/close_descriptors.h"
#include "core/text/split.h"
#include "profiles/json/writer.h"
#include "web/proxy/routes.h"
#include "web/source/running_step.h"

namespace sonde::web {
namespace {

constexpr Nanos kPatience = 3 * kSecond;  // a thread of the server waits this long
constexpr size_t kMaxOutput = 8u << 20;

// Reads to the end; false if the end does not come in time, or the text is too long.
bool ReadAll(int fd, std::string& out) {
  const Nanos until = Clock::System().Monotonic() + kPatience;
  char buffer[16384];
  for (;;) {
    const Nanos left = until - Clock::System().Monotonic();
    pollfd waiting{fd, POLLIN, 0};
    if (left <= 0 || poll(&waiting, 1, static_cast<int>(left / kMillisecond) + 1) == 0) {
      return false;
    }
    const ssize_t n = read(fd, buffer, sizeof(buffer));
    if (n == 0) return true;
    if (n < 0 && errno != EINTR) return false;
    if (n > 0) out.append(buffer, static_cast<size_t>(n));
    if (out.size() > kMaxOutput) return false;
  }
}

Result<std::string> RunSqueue() {
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC) != 0) return SystemError("make a pipe for squeue");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // A head that serves may have a fabric, whose descriptors nobody marks.
#if __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#else
  CloseDescriptorsOnExec(STDERR_FILENO + 1);
#endif
  char name[] = "squeue", me[] = "--me", all[] = "--format=%all";
  char* const arguments[] = {name, me, all, nullptr};
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipes[1]);
  std::string out;
  const bool whole = error == 0 && ReadAll(pipes[0], out);
  close(pipes[0]);
  if (error != 0) return Status(Code::kUnsupported, "squeue cannot be run on this host");
  if (!whole) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!whole) return Status(Code::kTimeout, "squeue gave no answer in 3 s");
  if (status != 0) return Status(Code::kUnavailable, "squeue failed: is Slurm running?");
  return out;
}

// The rows of squeue's table: by column, whose names come more than once. Leaves out a line without
// as many columns as the header: one of its names contains the separator.
using Row = std::map<std::string_view, std::string_view>;

std::vector<Row> RowsOf(std::string_view table) {
  std::vector<std::string_view> lines = Split(table, '\n');
  const std::vector<std::string_view> header = Split(lines.front(), '|');
  std::vector<Row> rows;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string_view> values = Split(lines[i], '|');
    if (values.size() != header.size()) continue;
    Row row;
    for (size_t c = 0; c < header.size(); ++c) row[header[c]] = values[c];
    if (row.contains("JOBID")) rows.push_back(std::move(row));
  }
  return rows;
}

void WriteQueue(std::string_view table, JsonWriter& json) {
  json.BeginObject().Key("jobs").BeginObject();
  for (const Row& row : RowsOf(table)) {
    json.Key(row.at("JOBID")).BeginObject();
    for (const auto& [column, value] : row) json.Field(column, value);
    json.EndObject();
  }
  json.EndObject().EndObject();
}

void GetQueue(const Context&, const Request&, Reply reply) {
  const Result<std::string> table = RunSqueue();
  if (!table.ok()) return reply(ErrorResponse(table.status()));
  Response response;
  JsonWriter json(response.body);
  WriteQueue(*table, json);
  reply(std::move(response));
}

constexpr Route kQueueRoutes[] = {
    {"/queue/list",
     GetQueue,
     nullptr,
     {.about = "The user's jobs in Slurm's queue, by id: every column of squeue(1)",
      .answer = R"({"type":"object","required":["jobs"],"properties":{"jobs":{"type":"object",)"
                R"("additionalProperties":{"type":"object",)"
                R"("additionalProperties":{"type":"string"}}}},"additionalProperties":false})"}}};

}  // namespace

Result<std::string> QueuedCommand(std::string_view job) {
  const Result<std::string> table = RunSqueue();
  if (!table.ok()) return table.status();
  for (const Row& row : RowsOf(*table)) {
    const auto command = row.find("COMMAND");
    if (row.at("JOBID") == job && command != row.end()) return std::string(command->second);
  }
  return Status(Code::kNotFound, "no job " + std::string(job) + " of yours is in the queue");
}

std::span<const Route> QueueRoutes() { return kQueueRoutes; }

}  // namespace sonde::web
