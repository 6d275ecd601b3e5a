// Opens an archive for commands, and ingests finished steps on the way if db/ can be taken.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "profiles/archive/archive.h"
#include "profiles/archive/owned_archive.h"

namespace sonde {

struct OpenedArchive {
  std::shared_ptr<const Archive> reader;
  std::unique_ptr<OwnedArchive> owner;  // nullptr: db/ could not be taken, or was not needed

  // Whether we can write db/, and no failure has closed it.
  bool owned() const { return owner != nullptr && owner->IsOpen(); }
};

enum class ArchiveUse { kReading, kWriting };

// kWriting takes db/ (waiting up to `wait` for its holder), and ingests the finished or abandoned
// steps in live/. If db/ stays locked, the archive still reads both, and its note says so. Progress
// of a long ingest goes to `progress` (done, total). kReading does the same only if there is
// something to ingest, to index or to bring up to date; otherwise it only reads, which takes less
// time and keeps no other process out.
Result<OpenedArchive> OpenArchive(const std::string& root, Nanos wait = kSecond,
                                  const std::function<void(size_t, size_t)>& progress = nullptr,
                                  ArchiveUse use = ArchiveUse::kWriting);

// Why an archive that has no owner here cannot be changed: kPermission, or kBusy and its note.
Status WhyNotOwned(const Archive& archive);

}  // namespace sonde
