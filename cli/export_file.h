// Writing profiles to files: what `sonde export --to FILE` does.
//
// Thread safety: one thread.
#pragma once

#include <vector>

#include "forward/formats/destination.h"
#include "profiles/archive/archive.h"

namespace sonde::cli {

// Writes `entries` to the file `to`, or one file each into the directory `to`, and says so unless
// `quiet`. A file gets its name only when it is whole. Gives the exit code.
int ExportToFile(const Archive& archive, const std::vector<ProfileEntry>& entries,
                 const forward::Destination& to, bool quiet);

}  // namespace sonde::cli
