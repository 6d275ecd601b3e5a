// Opening an archive as commands do: what finished is taken in by the way, if db/ can be had.
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
  std::unique_ptr<OwnedArchive> owner;  // nullptr: db/ could not be had, or nobody needed it

  // Whether db/ is ours to write, and no failure has closed it.
  bool owned() const { return owner != nullptr && owner->IsOpen(); }
};

enum class ArchiveUse { kReading, kWriting };

// kWriting takes db/ (waiting up to `wait` for whoever holds it), and ingests what lies finished or
// abandoned in live/. If it stays locked: still a usable archive that reads both, and its note says
// so. Progress of a long ingest goes to `progress` (done, total). kReading does so only if there is
// something to ingest, to index or to bring up to date, and else reads, which takes less time and
// keeps nobody out.
Result<OpenedArchive> OpenArchive(const std::string& root, Nanos wait = kSecond,
                                  const std::function<void(size_t, size_t)>& progress = nullptr,
                                  ArchiveUse use = ArchiveUse::kWriting);

// Why an archive that has no owner here cannot be changed: kPermission, or kBusy with its note.
Status WhyNotOwned(const Archive& archive);

}  // namespace sonde
