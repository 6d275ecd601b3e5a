// Writing profiles to files: what `sonde export --to FILE` does.
//
// Thread safety: one thread.
#pragma once

#include <vector>

#include "forward/formats/destination.h"
#include "profiles/archive/archive.h"

namespace sonde::cli {

// Writes `entries` to the file, or one file each into the directory, that `to` names, and says so
// unless `quiet`. A file appears under its name when it is whole. Gives the exit code.
int ExportToFile(const Archive& archive, const std::vector<ProfileEntry>& entries,
                 const forward::Destination& to, bool quiet);

}  // namespace sonde::cli
