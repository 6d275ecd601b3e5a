// Taking a profile's file (profile_file.h) into an archive.
//
// The file is read twice: first it is checked as a whole, so that one that is damaged changes
// nothing; then its records are written, and the indexes, by which it is seen, last and synced. A
// kill in between leaves blocks that nobody sees, and doing it again completes it. What is in the
// archive is never replaced.
//
// Thread safety: functions without state; takes the archive's lock.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/job.h"
#include "core/status.h"
#include "core/time.h"

namespace sonde {

struct Imported {
  JobDescription job;
  uint64_t blocks = 0;
  bool was_there = false;  // the very same, and nothing was changed
};
// Bytes read, of two times the file's.
using OnBytes = std::function<void(uint64_t done, uint64_t total)>;

// Makes the archive if there is none. kBusy: another program has it open; kCorrupt, kInvalid and
// kUnsupported for a file that is no whole profile of a version known here; kInvalid also if the
// archive has another record of that very step.
Result<Imported> ImportProfile(const std::string& archive, const std::string& path, Nanos wait,
                               const OnBytes& on_bytes = nullptr);

}  // namespace sonde
