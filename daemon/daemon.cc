#include "daemon/daemon.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "core/launch.h"
#include "core/log.h"
#include "daemon/collect/registry.h"
#include "daemon/tree/local_link.h"

namespace sonde {
namespace {

// The numbers of a 'T' or 'X' packet.
struct TaskPacket {
  uint32_t rank = 0;
  int pid = 0;
  int status = 0;
  std::vector<int> perf;  // errno of every event, 0: opened
  bool has_totals = false;
  collect::TaskTotals totals;
};

template <typename T>
void ParseNumber(std::string_view text, T& out) {
  std::from_chars(text.data(), text.data() + text.size(), out);
}

// Nanoseconds as seconds.
double ParseSeconds(std::string_view text) {
  Nanos time = 0;
  ParseNumber(text, time);
  return static_cast<double>(time) / static_cast<double>(kSecond);
}

void ParseTotals(std::string_view key, std::string_view value, TaskPacket& task) {
  if (key == launch::key::kUserTime) task.has_totals = true;
  if (key == launch::key::kUserTime) task.totals.user_seconds = ParseSeconds(value);
  if (key == launch::key::kSystemTime) task.totals.system_seconds = ParseSeconds(value);
  if (key == launch::key::kMaxRss) ParseNumber(value, task.totals.peak_bytes);
  if (key == launch::key::kMinorFaults) ParseNumber(value, task.totals.minor_faults);
  if (key == launch::key::kMajorFaults) ParseNumber(value, task.totals.major_faults);
}

TaskPacket ParseTask(std::string_view body) {
  TaskPacket task;
  launch::ForEach(body, [&](std::string_view key, std::string_view value) {
    if (key == launch::key::kRank) ParseNumber(value, task.rank);
    if (key == launch::key::kPid) ParseNumber(value, task.pid);
    if (key == launch::key::kStatus) ParseNumber(value, task.status);
    ParseTotals(key, value, task);
    if (key != launch::key::kPerf) return;
    while (!value.empty() && task.perf.size() < launch::kMaxEvents) {
      const size_t comma = value.find(',');
      ParseNumber(value.substr(0, comma), task.perf.emplace_back(0));
      value.remove_prefix(comma == std::string_view::npos ? value.size() : comma + 1);
    }
  });
  return task;
}

// slurmstepd does not always know the user's name and home.
void FillInUser(LaunchMessage& launch) {
  if (launch.role == Role::kNode || (!launch.home.empty() && !launch.job.user.empty())) return;
  std::vector<char> buffer(16384);
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found);
  if (found == nullptr) return;
  if (launch.home.empty()) launch.home = found->pw_dir;
  if (launch.job.user.empty()) launch.job.user = found->pw_name;
}

// In the order of the events: descriptors, or -errno.
std::vector<int> PerfDescriptors(const TaskPacket& task, std::vector<UniqueFd>& fds) {
  std::vector<int> all;
  size_t next = 0;
  for (const int error : task.perf) {
    if (error == 0 && next < fds.size()) {
      all.push_back(fds[next++].Release());
    } else {
      all.push_back(error == 0 ? -EBADF : -error);
    }
  }
  return all;
}

}  // namespace

Daemon::Daemon(Loop& loop, Lifeline& lifeline, const LaunchMessage& launch)
    : loop_(loop), lifeline_(lifeline), launch_(launch) {
  FillInUser(launch_);
}

Daemon::~Daemon() = default;

Status Daemon::Start(UniqueFd listen, UniqueFd application) {
  Result<Config> config = LoadConfig(launch_.config_path);
  Config used = config.ok() ? *config : Config();
  if (const auto level = log::ParseLevel(used.log_level); level.ok() && !used.log_dir.empty()) {
    const std::string path =
        fmt::format("{}/sonded.{}.{}.log", used.log_dir, launch_.job.id.ToString(), launch_.host);
    const Status opened = log::Open("sonded", path, *level);
    if (!opened.ok()) log::Warning("{}", opened.message());
  }
  if (!config.ok()) log::Error("{}; defaults are used", config.status().message());
  log::Debug("sonded " SONDE_VERSION " for step {} at level {}", launch_.job.id.ToString(),
             launch_.job.level);
  if (launch_.role != Role::kNode) {
    head_ = std::make_unique<head::Head>(loop_, launch_, used,
                                         [this](const std::string& text) { OnReport(text); });
    SONDE_RETURN_IF_ERROR(head_->Start(std::move(listen)));
    if (!config.ok()) {
      head_->AddNote(fmt::format("{}; defaults were used", config.status().message()));
    }
  }
  if (launch_.role != Role::kHead) {
    node_ = std::make_unique<node::Node>(loop_, launch_, used, [this] { OnNodeDone(); });
    node_->TakeAppSocket(std::move(application));
    if (const collect::PerfSource* perf = node_->sampler().perf()) SendEvents(*perf);
  }
  lifeline_.Start(
      {.packet = [this](char kind, std::string_view body,
                        std::vector<UniqueFd> fds) { OnPacket(kind, body, std::move(fds)); },
       .end = [this](Lifeline::End how) { OnEnd(how); }});
  if (launch_.role == Role::kNode) node_->ConnectToHead();
  if (launch_.role == Role::kSolo) ConnectSolo();
  return {};
}

void Daemon::ConnectSolo() {
  auto [node_end, head_end] = tree::LocalLink::MakePair(loop_, "this node", "the head");
  const Result<uint32_t> index = head_->AddNode(node_->registration(), std::move(head_end));
  if (!index.ok()) log::Error("{}", index.status().message());
  node_->UseControl(std::move(node_end));
}

void Daemon::SendEvents(const collect::PerfSource& perf) {
  const auto& events = perf.events();
  std::string body(1, static_cast<char>(events.size()));
  body.append(reinterpret_cast<const char*>(events.data()),
              events.size() * sizeof(launch::PerfEvent));
  lifeline_.Send(launch::kEvents, body);
}

void Daemon::OnPacket(char kind, std::string_view body, std::vector<UniqueFd> fds) {
  if (node_ == nullptr) return;
  if (kind == launch::kTask) return OnTask(body, std::move(fds));
  if (kind != launch::kTaskExit) return;
  const TaskPacket task = ParseTask(body);
  node_->sampler().TaskExited(task.rank,
                              task.has_totals ? std::optional(task.totals) : std::nullopt);
  node_->OnTaskExit(task.status);
}

void Daemon::OnTask(std::string_view body, std::vector<UniqueFd> fds) {
  const TaskPacket task = ParseTask(body);
  const Status added = node_->sampler().tasks().AddTask(task.rank, task.pid);
  if (!added.ok()) log::Warning("{}", added.message());
  collect::PerfSource* perf = node_->sampler().perf();
  if (perf != nullptr && !task.perf.empty()) {
    perf->AddTask(task.rank, PerfDescriptors(task, fds));
  }
}

void Daemon::OnEnd(Lifeline::End how) {
  launcher_gone_ = how == Lifeline::End::kLauncherGone;
  if (node_ != nullptr) return node_->Finish(launcher_gone_);
  head_->Finish(launcher_gone_);
}

void Daemon::OnNodeDone() {
  node_.reset();
  if (head_ != nullptr) return head_->Finish(launcher_gone_);
  lifeline_.Close();
  loop_.Stop();
}

void Daemon::OnReport(const std::string& text) {
  lifeline_.SendReport(text);
  lifeline_.Close();
  loop_.Post([this] {
    head_.reset();  // joins the archive's thread: the profile is ingested when the process ends
    loop_.Stop();
  });
}

int PrintMetrics() {
  const std::string text = collect::MetricsAsJsonLines();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}

}  // namespace sonde
