#include "serve/site/user_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log.h"
#include "profiles/archive/archive.h"
#include "serve/archive_source.h"
#include "serve/site/messages.h"
#include "web/server/server.h"

namespace sonde::site {
namespace {

constexpr size_t kTokenBytes = 16;

void KeepToItself() {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

// Until the next call; 0: for ever. SIGKILL ends also who is stopped, or waits for a server of
// files.
void KillAfter(int seconds) {
  static timer_t timer{};
  static const bool made = [] {
    sigevent how{};
    how.sigev_notify = SIGEV_SIGNAL;
    how.sigev_signo = SIGKILL;
    return timer_create(CLOCK_MONOTONIC, &how, &timer) == 0;
  }();
  const itimerspec when{{}, {seconds, 0}};
  if (made && timer_settime(timer, 0, &when, nullptr) == 0) return;
  log::Warning("this process is not killed if it hangs: {}", std::strerror(errno));
}

// Nothing else is harmed by what an archive holds.
void LimitMemory() {
  const rlimit most{kMostMemory, kMostMemory};
  if (setrlimit(RLIMIT_DATA, &most) != 0) {
    log::Warning("this process has no bound of memory: {}", std::strerror(errno));
  }
  const UniqueFd score(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kFirst = "500";
  if (score.get() < 0 || write(score.get(), kFirst.data(), kFirst.size()) < 0) {
    log::Warning("oom_score_adj: {}", std::strerror(errno));
  }
}

void SetEnvironment(const Account& account) {
  clearenv();
  setenv("HOME", account.home.c_str(), 1);
  setenv("USER", account.name.c_str(), 1);
  setenv("PATH", "/usr/bin:/bin", 1);
}

Result<std::unique_ptr<web::Server>> Open(const Account& account, const Config& config,
                                          const std::string& token) {
  const std::string path = ArchivePath(config, account.name, account.uid, account.home);
  // A missing archive is empty; one that its user may not read is a failure.
  if (access(path.c_str(), R_OK | X_OK) != 0 && errno != ENOENT) {
    return SystemError("open the archive " + path);
  }
  Result<std::shared_ptr<const Archive>> archive = Archive::Open(path);
  if (!archive.ok()) return archive.status();
  const Result<std::vector<ProfileEntry>> newest = (*archive)->List(1);
  if (!newest.ok()) return newest.status();
  web::Server::Options options;
  options.listen = false;
  options.token = token;
  options.nan_null = config.opentsdb_nan_null;
  serve::ConcludeOptions conclude;
  conclude.peak_files = {path + "/peaks.json"};
  if (!config.peaks.empty()) conclude.peak_files.push_back(config.peaks);
  conclude.carbon = {config.carbon_g_per_kwh, config.pue};
  return web::Server::Start(
      options, std::make_shared<serve::ArchiveSource>(*std::move(archive), nullptr,
                                                      serve::RunningHeads::kTimeout, conclude));
}

// False: there are no more connections.
bool TakeVisit(web::Server& server, const UniqueFd& door, bool wait) {
  Result<Message> message = ReceiveMessage(door.get(), wait);
  if (!message.ok()) return false;
  if (message->fd) server.Adopt(message->fd.Release(), std::move(message->text));
  return true;
}

// Until the door is gone, or there was no visitor for a while and all connections have ended.
void TakeVisits(web::Server& server, const UniqueFd& door) {
  constexpr int kLookMs = 60'000;
  constexpr int kIdleLooks = 10;
  for (int idle = 0; idle < kIdleLooks;) {
    pollfd ready{door.get(), POLLIN, 0};
    const int count = poll(&ready, 1, kLookMs);
    if (count < 0 && errno != EINTR) return;
    if (count > 0) {
      if (!TakeVisit(server, door, true)) return;
      idle = 0;
    } else if (count == 0) {
      idle = server.connections() == 0 ? idle + 1 : 0;
    }
  }
}

}  // namespace

Result<std::string> RandomToken() {
  unsigned char bytes[kTokenBytes];
  if (getrandom(bytes, sizeof(bytes), 0) != static_cast<ssize_t>(sizeof(bytes))) {
    return SystemError("make a random token");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

Status BecomeUser(const Account& account) {
  if (account.uid == 0) return {Code::kPermission, "root's archive is not served"};
  SetEnvironment(account);
  LimitMemory();
  if (initgroups(account.name.c_str(), account.gid) != 0 ||
      setresgid(account.gid, account.gid, account.gid) != 0 ||
      setresuid(account.uid, account.uid, account.uid) != 0) {
    return SystemError("become the user " + account.name);
  }
  KeepToItself();
  umask(077);
  if (chdir("/") != 0) return SystemError("change to /");
  return {};
}

int ServeUser(const Account& account, const Config& config, UniqueFd door) {
  KillAfter(kMostToOpen);
  const Result<std::string> token = RandomToken();
  const Result<std::unique_ptr<web::Server>> server =
      token.ok() ? Open(account, config, *token) : token.status();
  const std::string hello =
      server.ok() ? "ok " + *token : "error " + std::string(server.status().message());
  if (!SendMessage(door.get(), hello).ok() || !server.ok()) return EXIT_FAILURE;
  KillAfter(0);
  TakeVisits(**server, door);
  KillAfter(kMostToEnd);
  // The door finds it closed, and starts another process for later connections; connections that it
  // sent before are still answered.
  shutdown(door.get(), SHUT_RD);
  while (TakeVisit(**server, door, false)) {
  }
  return EXIT_SUCCESS;
}

}  // namespace sonde::site
