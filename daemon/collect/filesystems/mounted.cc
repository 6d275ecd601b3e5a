#include "daemon/collect/filesystems/mounted.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "core/text/ascii.h"
#include "core/text/site_rules.h"
#include "daemon/collect/read/mountinfo.h"
#include "daemon/collect/read/parse.h"

namespace sonde::collect {
namespace {

constexpr std::string_view kLocalTypes[] = {
    "bcachefs", "btrfs",  "exfat",    "ext2",  "ext3", "ext4", "f2fs", "hfsplus", "jfs",
    "msdos",    "nilfs2", "reiserfs", "tmpfs", "udf",  "ufs",  "vfat", "xfs",     "zfs"};
// A process that waits for their servers can be killed.
constexpr std::string_view kKillableTypes[] = {"autofs", "nfs", "nfs4"};
// With filesystems on a disk that other nodes write too (ocfs2, gfs2), whose locks these nodes may
// hold, and filesystems that pass calls on to another one, whichever that is (overlay).
constexpr std::string_view kRemoteTypes[] = {
    "9p",    "acfs",     "afs",      "aufs",    "beegfs", "ceph",   "cifs",      "coda",
    "dvs",   "fhgfs",    "gfs",      "gfs2",    "gpfs",   "lustre", "mmfs",      "nfs",
    "nfs4",  "ocfs2",    "orangefs", "overlay", "panfs",  "pvfs2",  "quantcast", "smb3",
    "smbfs", "virtiofs", "vboxsf",   "wekafs",  "yas3fs"};
// Programs of a desktop or of containers that answer for nothing a step can fill.
constexpr std::string_view kNoRemoteTypes[] = {
    "fuse.archivemount", "fuse.cvmfs2",        "fuse.gvfsd-fuse",    "fuse.lxcfs",
    "fuse.portal",       "fuse.squashfuse",    "fuse.squashfuse_ll", "fuse.snapfuse",
    "fuse.rofiles-fuse", "fuse.vmware-vmblock"};
// Nobody waits on a path through them, and nothing of them is recorded.
constexpr std::string_view kHarmlessTypes[] = {"cramfs", "devtmpfs", "erofs",  "iso9660",  "proc",
                                               "ramfs",  "romfs",    "rootfs", "squashfs", "sysfs"};
constexpr std::string_view kExcluded[] = {
    "/proc",           "/sys", "/dev", "/run", "/cvmfs", "/var/lib/docker", "/var/lib/containers",
    "/var/lib/kubelet"};
// More than any machine has.
constexpr size_t kMountedMostMounts = 16384;

template <size_t N>
bool Contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Whether `path` is `directory` or lies below it.
bool IsIn(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

bool IsExcluded(std::string_view point) {
  if (IsIn(point, "/dev/shm")) return false;
  return std::any_of(std::begin(kExcluded), std::end(kExcluded),
                     [&](std::string_view directory) { return IsIn(point, directory); });
}

bool IsRemoteType(std::string_view type) {
  if (type.starts_with("fuse.") || type == "fuse" || type == "fuseblk") {
    return !Contains(kNoRemoteTypes, type);
  }
  return Contains(kRemoteTypes, type);
}

bool IsWanted(std::string_view type, std::string_view source) {
  if (Contains(kLocalTypes, type)) return true;
  if (IsRemoteType(type)) return true;
  // A type that is not known here and lies on a device.
  return source.starts_with("/dev/") && !Contains(kHarmlessTypes, type);
}

bool IsAllowed(std::string_view allowed, std::string_view type) {
  while (!allowed.empty()) {
    const size_t comma = allowed.find(',');
    if (MatchesPattern(TrimLine(allowed.substr(0, comma)), type)) return true;
    if (comma == std::string_view::npos) break;
    allowed.remove_prefix(comma + 1);
  }
  return false;
}

// Of a filesystem by its type alone; for the paths through it as well.
Filesystem::Asked ByType(std::string_view type, std::string_view allowed) {
  if (Contains(kLocalTypes, type) || Contains(kHarmlessTypes, type)) {
    return Filesystem::Asked::kAtOnce;
  }
  return Contains(kKillableTypes, type) || IsAllowed(allowed, type) ? Filesystem::Asked::kByHelper
                                                                    : Filesystem::Asked::kNever;
}

struct Candidate {
  Filesystem filesystem;
  bool whole = false;
  bool wanted = false;
};

std::vector<Candidate> ParseCandidates(std::string_view mountinfo, std::string_view allowed) {
  std::vector<Candidate> candidates;
  std::map<std::string, size_t> by_point;
  for (Cursor lines(mountinfo); !lines.AtEnd() && candidates.size() < kMountedMostMounts;) {
    MountLine line;
    if (!ParseMountLine(lines.Line(), line)) continue;
    Candidate mount{{Unescaped(line.point), std::string(line.type), std::string(line.device),
                     ByType(line.type, allowed)},
                    line.root == "/"};
    mount.wanted = IsWanted(line.type, line.source) && !IsExcluded(mount.filesystem.point);
    if (mount.filesystem.asked == Filesystem::Asked::kNever) mount.filesystem.hangs = line.type;
    // A later mount at the same place hides the earlier one.
    const auto [known, added] = by_point.try_emplace(mount.filesystem.point, candidates.size());
    if (added) {
      candidates.push_back(std::move(mount));
    } else {
      candidates[known->second] = std::move(mount);
    }
  }
  return candidates;
}

// The better of two mounts of one filesystem.
bool IsBetter(const Candidate& a, const Candidate& b) {
  if (a.filesystem.asked != b.filesystem.asked) return a.filesystem.asked < b.filesystem.asked;
  if (a.whole != b.whole) return a.whole;
  return a.filesystem.point.size() < b.filesystem.point.size();
}

// The filesystems that a path may wait for. Not the root: all that a daemon does goes through it.
std::vector<Filesystem> OnPaths(const std::vector<Candidate>& candidates) {
  std::vector<Filesystem> found;
  for (const Candidate& mount : candidates) {
    const Filesystem& filesystem = mount.filesystem;
    if (filesystem.asked != Filesystem::Asked::kAtOnce && filesystem.point != "/") {
      found.push_back(filesystem);
    }
  }
  return found;
}

void MindPath(const std::vector<Filesystem>& on_paths, Filesystem& filesystem) {
  for (const Filesystem& above : on_paths) {
    if (above.asked <= filesystem.asked || !IsIn(filesystem.point, above.point)) continue;
    filesystem.asked = above.asked;
    filesystem.hangs = above.hangs;
  }
}

}  // namespace

std::vector<Filesystem> ListFilesystems(std::string_view mountinfo, std::string_view allowed) {
  std::vector<Candidate> candidates = ParseCandidates(mountinfo, allowed);
  const std::vector<Filesystem> on_paths = OnPaths(candidates);
  std::map<std::string_view, size_t> best;  // by device
  for (size_t i = 0; i < candidates.size(); ++i) {
    Candidate& mount = candidates[i];
    if (!mount.wanted) continue;
    MindPath(on_paths, mount.filesystem);
    const auto [known, added] = best.try_emplace(mount.filesystem.device, i);
    if (!added && IsBetter(mount, candidates[known->second])) known->second = i;
  }
  std::vector<size_t> chosen;
  chosen.reserve(best.size());
  for (const auto& [device, index] : best) chosen.push_back(index);
  std::sort(chosen.begin(), chosen.end());
  std::vector<Filesystem> filesystems;
  filesystems.reserve(chosen.size());
  for (const size_t index : chosen) filesystems.push_back(std::move(candidates[index].filesystem));
  return filesystems;
}

bool MountTable::Changed(ReadBuffer& buffer, std::string_view& text) {
  if (fd_ && !MayHaveChanged()) return false;
  if (!fd_) fd_ = UniqueFd(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd_) return false;
  int error = 0;
  text = ReadText(fd_.get(), Shape::kRecords, size_, buffer, error);
  if (error != 0) {
    fd_.Reset();
    return false;
  }
  const size_t hash = std::hash<std::string_view>()(text);
  if (std::exchange(read_, true) && hash == hash_) return false;
  hash_ = hash;
  return true;
}

// The kernel reports a change of the table once as an exception of the open file. A file that is
// ready for writing is not the kernel's and cannot tell.
bool MountTable::MayHaveChanged() const {
  pollfd descriptor{fd_.get(), POLLIN | POLLOUT | POLLPRI, 0};
  if (poll(&descriptor, 1, 0) < 0) return true;
  return !read_ || (descriptor.revents & (POLLPRI | POLLERR | POLLOUT)) != 0;
}

}  // namespace sonde::collect
