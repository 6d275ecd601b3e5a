// Which of the mounted filesystems are asked for their space, and by whom.
//
// Those a step can fill or run out of: local disks, network filesystems, tmpfs (/tmp, /dev/shm),
// overlays. Not the kernel's own (proc, sysfs, cgroup), images that are full by nature (squashfs,
// iso9660), nor what lies below /proc, /sys, /dev (but for /dev/shm), /run, /cvmfs and the
// directories of container engines.
//
// A call to a filesystem whose server is gone may last until the server is back. A process with a
// thread in such a call cannot be killed, unless the filesystem's code provides for that: the
// process stays in its step's control group, and Slurm drains the node. So only those are asked
// whose answer is in memory, or whose wait ends when the process is killed. In Linux that is NFS,
// and autofs on the path: they wait killably, and hold no lock meanwhile. It is not
// - FUSE: what its server has taken, it waits for (request_wait_answer);
// - SMB and Ceph: they wait for a lock whose holder waits for the server (session_mutex; the mutex
//   of a quota realm);
// - Lustre: requests on their way end by their timeout only (ptlrpc_set_wait);
// - 9p: it waits until its server has forgotten the request (p9_client_rpc, P9_TFLUSH);
// - overlay: it passes the call on to any filesystem.
// Of the others it is not known.
//
// Thread safety: functions without state, except where a class says otherwise.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/unique_fd.h"
#include "daemon/collect/read/file_reader.h"
#include "daemon/collect/read/source.h"

namespace sonde::collect {

struct Filesystem {
  std::string point;
  std::string type;
  std::string device;  // major:minor
  enum class Asked : unsigned char {
    kAtOnce,    // its answer is in memory
    kByHelper,  // a server has to answer for it, or for the path to it, and may do so late or never
    kNever,     // whoever waits for that server may not be killed
  };
  Asked asked = Asked::kAtOnce;
  // Of kNever: the type that may hang, its own or that of a filesystem on the path to it.
  std::string hangs = {};
  bool operator==(const Filesystem&) const = default;
};

// From the text of /proc/self/mountinfo, in its order. Each filesystem once, however often it is
// mounted: where it can be asked, at a mount that shows all of it if there is one, and at the
// shortest such path. `allowed` has types, separated by commas, that the site wants to be asked all
// the same, with '*' for any text.
std::vector<Filesystem> ListFilesystems(std::string_view mountinfo, std::string_view allowed = {});

// /proc/self/mountinfo, read only when something was mounted or unmounted.
//
// Thread safety: none; the daemon's one thread.
class MountTable {
 public:
  explicit MountTable(const Roots& roots) : path_(roots.proc + "/self/mountinfo") {}

  // Whether the text has changed since it was last given; then `text` lies in `buffer`.
  bool Changed(ReadBuffer& buffer, std::string_view& text);

 private:
  bool MayHaveChanged() const;

  const std::string path_;
  UniqueFd fd_;
  size_t size_ = 8192;
  size_t hash_ = 0;
  bool read_ = false;
};

}  // namespace sonde::collect
