// Which of the mounted filesystems are asked for their space, and which of them may not answer.
//
// Those a step can fill or run out of: local disks, network filesystems, tmpfs (/tmp, /dev/shm),
// overlays. Not the kernel's own (proc, sysfs, cgroup), images that are full by nature (squashfs,
// iso9660), nor what lies below /proc, /sys, /dev (but for /dev/shm), /run, /cvmfs and the
// directories of container engines.
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
  // A server has to answer for it, or for the path to it: it may block for ever.
  bool remote = false;
  bool operator==(const Filesystem&) const = default;
};

// From the text of /proc/self/mountinfo, in its order. Each filesystem once, however often it is
// mounted: at a mount that shows all of it if there is one, and at the shortest such path.
std::vector<Filesystem> ListFilesystems(std::string_view mountinfo);

// Whether calls go, or may go, to a server.
bool IsRemoteType(std::string_view type);

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
