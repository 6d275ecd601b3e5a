// Starting a daemon from srun or slurmstepd: both have threads and descriptors of their own, and
// slurmstepd is root.
//
// The child calls only async-signal-safe functions until exec. It gets a session of its own, all
// signals unblocked, no descriptor but 0 and 1 (/dev/null), 2 (a socket to the launcher), the
// lifeline and the listening sockets, directory /, umask 077 and, in slurmstepd, the user's ids and
// groups and nothing of root's. Signals that a job's processes get and that a daemon must outlive
// are ignored from the start; the daemon may install handlers. A signal that the user sends before
// exec ends the child alone. Starting takes a limited time, also if the user stops the child
// (launcher/spawn.h).
//
// The daemon is a grandchild, left to init. As a child of slurmstepd it would, under
// proctrack/linuxproc, be killed with the tasks when a step is cancelled, before it could deliver
// its data; and its early end would wake slurmstepd, which then sleeps 100 ms before it looks at
// its tasks again. The lifeline ties the daemon to the launcher.
//
// The ends can be made before the daemon is started. Not so the application's socket: whoever had
// it too would have to drop it, and with it connections that nobody accepted and the open files
// that the user's programs sent over them (launcher/user_socket.h says why root must not). So the
// new process makes the socket, as the user, and nobody else ever has it: when the daemon is gone,
// programs are refused at once. So it is with the socket for programs for metric-proxy, without
// which a daemon goes on where its file cannot be made.
//
// Thread safety: may be called while other threads run.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/unique_fd.h"
#include "launcher/lifeline.h"
#include "launcher/placement.h"
#include "launcher/process_id.h"

namespace sonde::launch {

struct Credentials {
  uid_t uid;
  gid_t gid;
  std::vector<gid_t> groups;
};

struct Process {
  std::string path;
  std::vector<std::string> arguments;    // argv, argv[0] included
  std::vector<std::string> environment;  // NAME=VALUE
  int listen_fd = -1;                    // becomes kListenFd; -1: none
  const Credentials* become = nullptr;   // null: stay who we are
  Placement placement;
  std::string application;  // abstract name of the socket for kApplicationFd; empty: none
  std::string proxy;        // path of the socket for kProxyFd; empty: none
  // How long it may take until the program has been executed.
  std::chrono::milliseconds patience{3000};
};

// The connections between a daemon and its launcher.
struct Ends {
  Lifeline lifeline;    // the launcher's
  UniqueFd daemon;      // the daemon's end of it, for the child
  UniqueFd errors;      // what the daemon writes to its stderr; reading does not block
  UniqueFd stderr_end;  // the daemon's end of that, for the child
};
Result<Ends> MakeEnds();

// Starts the daemon with its ends, which stay open here. The application's socket listens, as the
// daemon's user, when this returns. Gives why, if the daemon could not be executed.
Result<ProcessId> Start(const Process& process, Ends& ends);

// A daemon under way.
struct Daemon {
  Lifeline lifeline;
  ProcessId process;
  UniqueFd errors;  // as in Ends
};

// Makes the ends and starts the daemon; then the daemon alone holds its ends.
Result<Daemon> Start(const Process& process);

// Removes the file of Process::proxy that a daemon has left which was killed. Another process does,
// and is killed if the file system does not answer within `most`.
void RemoveLeftFile(const std::string& path, std::chrono::milliseconds most);

}  // namespace sonde::launch
