// The daemon's end of the lifeline (launcher/launch.h): its line to the launcher.
//
// Packets come in through the loop; the end of file says that the step's tasks here, or srun, are
// done. It is told apart from the launcher's death: after a shutdown the launcher still reads the
// report, after a death nobody does.
//
// Thread safety: the loop's thread only.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "daemon/loop.h"

namespace sonde {

class LauncherLine {
 public:
  enum class End { kAsked, kLauncherGone };
  struct Handler {
    // The kind, the rest of the packet, and the descriptors that came with it.
    std::function<void(char kind, std::string_view body, std::vector<UniqueFd> fds)> packet;
    std::function<void(End how)> end;  // once
  };

  // Owns `fd`.
  LauncherLine(Loop& loop, UniqueFd fd);
  ~LauncherLine();

  // Waits for the first packet, which is the launch message, before the loop runs.
  Result<std::string> ReadLaunch(Nanos timeout);
  void Start(Handler handler);

  // Sends one packet; a launcher that does not read it in time or is gone does not matter.
  void Send(char kind, std::string_view body);
  // The report, in as many packets as it takes.
  void SendReport(std::string_view text);
  // The launcher sees the end of file.
  void Close();

 private:
  struct Packet;
  bool ReadOne(Packet& packet);
  void OnReady(uint32_t events);

  Loop& loop_;
  UniqueFd fd_;
  Handler handler_;
  bool ended_ = false;
};

}  // namespace sonde
