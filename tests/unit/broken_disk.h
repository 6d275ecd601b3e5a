// A disk that breaks: whatever a process changes below one directory is counted, and at the Nth
// change the process is killed, the machine loses its power, or the disk is full.
//
// A sync that fails is one that the kernel has given up: what was to be written can be read until
// the power goes, and no later sync of the file writes it.
//
// Without power a file that was renamed has its old name again, and the file that it replaced is
// back, unless the file or the directory was synced since. All other names are kept: of what was
// made, deleted, or is a directory. With Plan::keeps_names that file has its new name: file systems
// write names and what is in files in any order, and so it may be there with nothing in it.
//
// The calls to the operating system are taken over in the whole program (write, open, rename,
// unlink, mkdir, fsync and their like), so LevelDB's and the standard library's are seen as well as
// ours. Until Arm they do what they always do.
//
// Thread safety: Arm in a child that is there to be broken; all calls from any thread.
#pragma once

#include <cstdint>
#include <string>

namespace sonde::broken_disk {

enum class Fault {
  kNone,    // only counts
  kKill,    // SIGKILL in place of the change
  kTear,    // SIGKILL after it; of a write, after half of its bytes
  kPower,   // as kKill, and every file is cut to what was synced; see below for names
  kFull,    // from the change on whatever takes space fails
  kOnce,    // only this one fails
  kOften,   // each fails by chance, some in a row
  kLoses,   // the next sync fails, and zeros are read at once of what it had to write
  kCloses,  // the next close of a file that was not synced to its end fails, and loses as kLoses
};

struct Plan {
  Fault fault = Fault::kNone;
  uint64_t at = 0;           // counted from 1
  int error = 0;             // of kFull, kOnce, kLoses and kCloses
  bool exchanges = true;     // the file system can exchange two names
  bool partial = false;      // of a write that fails half of the bytes are written
  uint64_t seed = 0;         // of kOften, for which the rest is drawn
  uint64_t one_of = 40;      // of kOften: a failure begins at one of so many changes
  std::string suffix;        // of kCloses: of the file's name
  bool keeps_names = false;  // of kPower
};

// `root` has no symbolic link in it. What lies there already is taken as synced. Again with another
// plan: changes are counted on.
void Arm(const std::string& root, const Plan& plan);
// Changes so far.
uint64_t Changes();
// Ends kFull and kOften: there is space again.
void Repair();
// The machine loses its power now.
[[noreturn]] void CutPower();

}  // namespace sonde::broken_disk
