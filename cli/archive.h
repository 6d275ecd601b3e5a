// The subcommands of `sonde archive`: what is done with an archive as a whole.
//
// Each is a file cli/archive_NAME.cc with one Add function, which archive.cc has in its table: it
// adds the subcommand with its options to `archive` and gives what shall run. An option that has
// the same meaning for all is in ArchiveOptions and is taken behind the subcommand as well.
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

void AddArchiveCompact(CLI::App& archive, const SharedArchiveOptions& options, Run& run);
void AddArchivePrune(CLI::App& archive, const SharedArchiveOptions& options, Run& run);
void AddArchiveRepair(CLI::App& archive, const SharedArchiveOptions& options, Run& run);
void AddArchiveStats(CLI::App& archive, const SharedArchiveOptions& options, Run& run);
void AddArchiveVerify(CLI::App& archive, const SharedArchiveOptions& options, Run& run);

}  // namespace sonde::cli
