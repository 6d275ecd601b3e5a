// The socket at which programs for metric-proxy connect, and the programs that have connected.
//
// It accepts processes of the step's user, cuts what they send into messages and hands these on. A
// program writes and waits until there is room, so whoever owns the door calls Poll as soon as fd()
// is readable, and not only at ticks. A program that breaks the protocol is dropped with one log
// line, and all others go on.
//
// Thread safety: none; the daemon's one thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/socket_file.h"
#include "core/status.h"
#include "core/unique_fd.h"

namespace sonde::collect {

// A program that has connected.
struct ProxyProgram {
  UniqueFd connection;
  pid_t pid = 0;
  int rank = -1;        // as its environment says; -1: it does not
  std::string begun;    // of a message whose end has not come
  bool passes = false;  // the rest of a message that is too long is passed over
};

class ProxyDoor {
 public:
  struct Options {
    uint32_t uid = 0;  // whose processes may connect
    std::string proc = "/proc";
    size_t max_programs = 512;       // at a time
    size_t max_message = 64u << 10;  // bytes; a longer one is passed over
    size_t max_rest = 64u << 20;     // bytes that ReadRest reads
  };
  // What became of the programs that came, and of their messages.
  struct Counts {
    uint64_t accepted = 0;
    uint64_t refused = 0;   // another user's, or too many
    uint64_t dropped = 0;   // broke the protocol
    uint64_t too_long = 0;  // messages
  };
  // Takes a message. An error drops the program.
  using Take = std::function<Status(ProxyProgram&, std::string_view message)>;

  ProxyDoor(Options options, Take take) : options_(std::move(options)), take_(std::move(take)) {}

  Status Open(SocketFile listener);

  // Turns readable when Poll has something to do; -1 if the door is not open.
  int fd() const { return epoll_.get(); }
  // Reads some of what there is, so that a flood cannot keep the daemon here. Programs that connect
  // are read from the next call on.
  void Poll();
  // Where there were too many open files when a program came: looks again.
  void Retry();
  // Reads all that the programs have sent, but for what a flood would never end to send.
  void ReadRest();
  // Lets nobody in any more: the file is gone, and a program that writes on is told that nobody
  // reads.
  void Close();

  // Why somebody was refused, or a message was passed over, the first time; "": nothing is left to
  // tell.
  std::string TakeLeftOut() { return std::exchange(left_out_, {}); }

  size_t programs() const { return programs_.size(); }
  const Counts& counts() const { return counts_; }

 private:
  size_t ReadReady();
  size_t Read(ProxyProgram& program);
  Status Cut(ProxyProgram& program, std::string_view bytes);
  Status EndMessage(ProxyProgram& program, std::string_view last_piece);
  bool TooLong(ProxyProgram& program, std::string_view piece);
  void AcceptAll();
  void Admit(UniqueFd connection);
  Status WatchListener(bool watched);
  void Refuse(std::string why);
  void LeaveOut(std::string why);
  void Drop(ProxyProgram& program, const Status& why);
  void Remove(ProxyProgram& program);

  const Options options_;
  const Take take_;
  SocketFile listener_;
  UniqueFd epoll_;
  bool listens_ = false;  // the listener is watched
  std::vector<std::unique_ptr<ProxyProgram>> programs_;
  std::unique_ptr<char[]> piece_;  // what was received last
  Counts counts_;
  int complaints_ = 0;
  std::string left_out_;
};

}  // namespace sonde::collect
