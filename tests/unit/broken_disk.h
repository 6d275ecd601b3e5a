// A disk that breaks: whatever a process changes below one directory is counted, and at the Nth
// change the process is killed, the machine loses its power, or the disk is full.
//
// The calls to the operating system are taken over in the whole program (write, open, rename,
// unlink, mkdir, fsync and their like), so LevelDB's and the standard library's are seen as well as
// ours. Until Arm they do what they always do.
//
// Thread safety: Arm once a process, in a child that is there to be broken; the calls from any
// thread.
#pragma once

#include <cstdint>
#include <string>

namespace sonde::broken_disk {

enum class Fault {
  kNone,   // only counts
  kKill,   // SIGKILL in place of the change
  kTear,   // SIGKILL after it; of a write, after half of its bytes
  kPower,  // as kKill, and every file is cut to what was synced; names are kept
  kFull,   // from the change on whatever takes space fails
  kOnce,   // only this one fails
};

struct Plan {
  Fault fault = Fault::kNone;
  uint64_t at = 0;        // counted from 1
  int error = 0;          // of kFull and kOnce
  bool exchanges = true;  // the file system can exchange two names
};

// `root` has no symbolic link in it. What lies there already is taken as synced.
void Arm(const std::string& root, const Plan& plan);
// Changes so far.
uint64_t Changes();
// Ends kFull: there is space again.
void Repair();

}  // namespace sonde::broken_disk
