// The daemon's end of the lifeline (launcher/launch.h): its line to the launcher.
//
// Packets come in through the loop; the end of file says that the step's tasks here, or srun, are
// done. It is told apart from the launcher's death: after a shutdown the launcher still reads the
// report, after a death nobody does.
//
// Thread safety: the loop's thread only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "daemon/loop.h"

namespace sonde {

class LauncherLine {
 public:
  // Who gets what the launcher sends.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    // A packet's kind (launcher/launch.h), the rest of it, and the descriptors that came with it.
    virtual void OnPacket(char kind, std::string_view body, std::vector<UniqueFd> fds) = 0;
    // Once: the end was asked for, or the launcher is dead.
    virtual void OnEnd(bool launcher_gone) = 0;
  };

  // Owns `fd`.
  LauncherLine(Loop& loop, UniqueFd fd);
  ~LauncherLine();

  // Waits for the first packet, which is the launch message, before the loop runs.
  Result<std::string> ReadLaunch(Nanos timeout);
  // `receiver` is there as long as the loop runs.
  void Start(Receiver& receiver);

  // Sends one packet; a launcher that does not read it in time or is gone does not matter.
  void Send(char kind, std::string_view body);
  // What launcher/launch.h calls the daemon's state, with a reason for people, if there is one.
  void SendState(std::string_view state, std::string_view reason = "");
  // That the daemon has begun; with `tells_end` that its last word will be "ended".
  void SendUp(bool tells_end);
  // The report, in as many packets as it takes.
  void SendReport(std::string_view text);
  // Nothing of the launcher's comes any more.
  void StopReading();
  // And the launcher sees the end of file.
  void Close();

 private:
  struct Packet;
  bool ReadOne(Packet& packet);
  void OnReady(uint32_t events);

  Loop& loop_;
  UniqueFd fd_;
  Receiver* receiver_ = nullptr;
  bool ended_ = false;
};

}  // namespace sonde
