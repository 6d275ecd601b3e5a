// The socket at which processes of the application attach, and the processes that have attached.
//
// It accepts processes of the step's user, checks what they send (libclient/layout.h) and maps
// their memory; others read that memory. A process that breaks the rules is dropped with one log
// line, and all others go on.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "core/unique_fd.h"
#include "daemon/collect/app/process.h"

namespace sonde::collect {

class AppDoor {
 public:
  struct Options {
    std::string socket;  // abstract, without the leading zero byte
    int listener = -1;   // that socket, if it listens already; owned from Open on
    uint32_t uid = 0;    // whose processes may attach
    int level = 1;       // the step's, for the welcome
    Nanos period = kDefaultPeriod;
    size_t max_processes = 512;             // attached at a time
    Nanos hello_within = 5 * kSecond;       // of attaching
    const Clock* clock = &Clock::System();  // of the times that Poll gets
  };

  // What became of the processes that came.
  struct Counts {
    uint64_t attached = 0;
    uint64_t refused = 0;  // another user's, too many, or no hello
    uint64_t dropped = 0;  // broke the layout
  };

  // `let_go` removes ended processes from processes(), so that new ones find a place.
  explicit AppDoor(Options options, std::function<void(Nanos now)> let_go)
      : options_(std::move(options)), let_go_(std::move(let_go)) {}

  Status Open();

  // Turns readable when Poll has something to do.
  int fd() const { return epoll_.get(); }
  // Accepts new processes and notices which ones have gone.
  void Poll(Nanos now);

  std::vector<std::unique_ptr<AppProcess>>& processes() { return processes_; }
  const std::vector<std::unique_ptr<AppProcess>>& processes() const { return processes_; }
  const Counts& counts() const { return counts_; }

  // The process is not read any more.
  void Drop(AppProcess& process, const Status& why);

 private:
  Status Bind();
  void AcceptAll(Nanos now);
  void Admit(UniqueFd connection, Nanos now);
  void Receive(AppProcess& process);
  void OnPacket(AppProcess& process, const char* packet, size_t size, UniqueFd memory);
  Status Greet(AppProcess& process, std::string_view packet, const UniqueFd& memory);
  void SendWelcome(const AppProcess& process);
  void Refuse(const std::string& why);
  void DropSilent(Nanos now);

  Options options_;
  std::function<void(Nanos)> let_go_;
  UniqueFd listener_;
  UniqueFd epoll_;
  std::vector<std::unique_ptr<AppProcess>> processes_;
  Counts counts_;
  int complaints_ = 0;
  bool said_refused_ = false;
};

}  // namespace sonde::collect
