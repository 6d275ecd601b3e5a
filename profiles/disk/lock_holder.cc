#include "profiles/disk/lock_holder.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace sonde {
namespace {

namespace fs = std::filesystem;

bool IsPid(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

// Whether the kernel reports that a lock was taken through this descriptor. A process that waits
// for the lock has the file open as well.
bool HasLock(const fs::path& fdinfo) {
  std::ifstream info(fdinfo);
  std::string line;
  while (std::getline(info, line)) {
    if (line.starts_with("lock:") && line.find("WRITE") != std::string::npos) return true;
  }
  return false;
}

bool Holds(const fs::path& process, const struct stat& file) {
  std::error_code error;
  fs::directory_iterator it(process / "fd", error);
  for (; !error && it != fs::directory_iterator(); it.increment(error)) {
    struct stat info {};
    if (::stat(it->path().c_str(), &info) == 0 && info.st_ino == file.st_ino &&
        info.st_dev == file.st_dev && HasLock(process / "fdinfo" / it->path().filename())) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string LockHolder(const std::string& path) {
  struct stat file {};
  std::error_code error;
  if (::stat(path.c_str(), &file) == 0) {
    fs::directory_iterator it("/proc", error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
      const std::string pid = it->path().filename();
      if (!IsPid(pid) || !Holds(it->path(), file)) continue;
      std::string name;
      std::getline(std::ifstream(it->path() / "comm"), name);
      return "process " + pid + " (" + name + ")";
    }
  }
  return "another process";
}

}  // namespace sonde
