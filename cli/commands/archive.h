// The subcommands of `sonde archive`, which work on an archive as a whole.
//
// Each is a file cli/commands/archive_NAME.cc with one Add function in the table of archive.cc:
// it adds the subcommand with its options to `archive` and returns the function to run. Options
// with the same meaning for all are in ArchiveOptions; they may also be given behind the
// subcommand.
//
// Thread safety: one thread, main's.
#pragma once

#include <memory>

#include "cli/command.h"

namespace sonde::cli {

struct ArchiveOptions {
  bool json = false;
};
using SharedArchiveOptions = std::shared_ptr<const ArchiveOptions>;

void AddArchiveCompact(Arguments archive, const SharedArchiveOptions& options, Run& run);
void AddArchivePrune(Arguments archive, const SharedArchiveOptions& options, Run& run);
void AddArchiveRepair(Arguments archive, const SharedArchiveOptions& options, Run& run);
void AddArchiveStats(Arguments archive, const SharedArchiveOptions& options, Run& run);
void AddArchiveVerify(Arguments archive, const SharedArchiveOptions& options, Run& run);

}  // namespace sonde::cli
