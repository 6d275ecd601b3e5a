// Whether a live step's directory is still its writer's: another host may have taken it.
//
// Thread safety: as its lock.
#pragma once

#include <string>
#include <utility>

#include "core/status.h"
#include "profiles/disk/claim.h"
#include "profiles/disk/file_lock.h"

namespace sonde {

// The files of a directory that is not ours any more may be another writer's of the same name.
class DirectoryFence final : public Fence {
 public:
  DirectoryFence(const FileLock& lock, std::string path) : lock_(lock), path_(std::move(path)) {}
  Status Check() override {
    const auto here = lock_.IsAt(path_);
    if (!here.ok()) return here.status();
    return *here ? Status() : Status(Code::kBusy, path_ + " was taken by another host");
  }

 private:
  const FileLock& lock_;
  const std::string path_;
};

}  // namespace sonde
