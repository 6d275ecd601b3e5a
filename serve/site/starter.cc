#include "serve/site/starter.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <map>
#include <utility>

#include "core/log.h"
#include "serve/site/user_process.h"

namespace sonde::site {

bool Starter::Run(const UniqueFd& door, const sigset_t& signals) {
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, nullptr);
  const UniqueFd signalled(signalfd(-1, &signals, SFD_CLOEXEC));
  const UniqueFd ended(signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK));
  for (;;) {
    pollfd ready[] = {
        {signalled.get(), POLLIN, 0}, {door.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}};
    if (poll(ready, std::size(ready), -1) < 0) continue;
    if (ready[0].revents != 0) return true;
    signalfd_siginfo info;
    while (read(ended.get(), &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info))) {
    }
    Reap();
    if (ready[1].revents == 0) continue;
    const Result<Message> asked = ReceiveMessage(door.get(), true);
    if (!asked.ok()) return false;
    Start(asked->text, door);
  }
}

void Starter::Reap() {
  std::erase_if(running_, [](const Running& process) {
    return waitpid(process.pid, nullptr, WNOHANG) == process.pid;
  });
}

// A user can stop his processes, and have his archive hang. Besides the one that is to begin he
// keeps the last one, which may still be answering; where there are too many, nobody has a second.
void Starter::KeepFew(uid_t user) {
  const bool full = running_.size() >= 2 * most_;
  std::map<uid_t, size_t> seen;
  for (const Running& process : running_) {
    const bool is_last = ++seen[process.user] == 1;
    if (!is_last && (full || process.user == user)) kill(process.pid, SIGKILL);
  }
}

void Starter::Start(const std::string& user, const UniqueFd& door) {
  const Result<Account> account = accounts_.ByName(user);
  Result<UniqueFd> end = account.ok() ? Fork(*account, door) : account.status();
  // The door never waits for this message, so the socket always has room.
  if (end.ok()) {
    (void)SendMessage(door.get(), "ok " + user, end->get());
  } else {
    (void)SendMessage(door.get(), fmt::format("error {} {}", user, end.status().message()));
  }
}

Result<UniqueFd> Starter::Fork(const Account& account, const UniqueFd& door) {
  KeepFew(account.uid);
  // Processes that were told to end take a moment.
  if (running_.size() >= 2 * most_) {
    return Status(Code::kLimit, "too many processes of users run; ask again");
  }
  if (account.uid == 0) return Status(Code::kPermission, "root's archive is not served");
  Result<std::pair<UniqueFd, UniqueFd>> ends = MakePair();
  if (!ends.ok()) return ends.status();
  const pid_t pid = fork();
  if (pid < 0) return SystemError("start a process");
  if (pid > 0) {
    running_.insert(running_.begin(), {pid, account.uid});
    return std::move(ends->first);
  }
  close(door.get());
  ends->first.Reset();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  int code = EXIT_FAILURE;
  try {
    const Status became = BecomeUser(account);
    if (became.ok()) {
      code = ServeUser(account, config_, std::move(ends->second));
    } else {
      (void)SendMessage(ends->second.get(), "error " + std::string(became.message()));
    }
  } catch (const std::exception& e) {
    log::Error("serve {}: {}", account.name, e.what());
  }
  _exit(code);
}

}  // namespace sonde::site
