// The subcommands of `sonde archive`: what is done with an archive as a whole.
//
// Each is a file cli/commands/archive_NAME.cc with one Add function, which archive.cc has in its
// table: it adds the subcommand with its options to `archive` and gives what shall run. An option
// that has the same meaning for all is in ArchiveOptions and is taken behind the subcommand as
// well.
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
