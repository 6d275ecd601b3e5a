// Takes a profile's file (records/profile_file.h) into an archive.
//
// The file is read twice: first it is checked as a whole, so a damaged file changes nothing; then
// its records are written, and last and synced the indexes, which make it visible. A kill in
// between leaves blocks that no reader sees, and importing again completes it. Records in the
// archive are never replaced.
//
// Thread safety: functions without state; takes the archive's lock.
#pragma once

#include <leveldb/db.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "core/job.h"
#include "core/status.h"
#include "core/time.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/disk/progress.h"

namespace sonde {

struct Imported {
  JobDescription job;
  uint64_t blocks = 0;
  bool was_there = false;  // the same profile was there, and nothing was changed
};
// Makes the archive if there is none. kBusy: another program has it open; kCorrupt, kInvalid and
// kUnsupported for a file that is no whole profile of a version known here; kInvalid also if the
// archive has another record of the same step. `progress` in bytes read, of two times the file's.
Result<Imported> ImportProfile(const std::string& archive, const std::string& path, Nanos wait,
                               const ArchiveProgress& progress = nullptr);
// The same from an open file, whose `name` is for messages, into db/, which is open as well.
Result<Imported> ImportInto(leveldb::DB& db, const ArchivePaths& paths, int file,
                            const std::string& name, const ArchiveProgress& progress);

// The report without the number of blocks, as the archive's keeper sends it.
std::string ImportedToText(const Imported& imported);
Result<Imported> ImportedFromText(uint64_t blocks, std::string_view text);

}  // namespace sonde
