// sonde archive: subcommands for an archive as a whole.
#include "cli/commands/archive.h"

namespace sonde::cli {
namespace {

using AddSubcommand = void (*)(Arguments archive, const SharedArchiveOptions& options, Run& run);
constexpr AddSubcommand kSubcommands[] = {AddArchiveCompact, AddArchivePrune, AddArchiveRepair,
                                          AddArchiveStats, AddArchiveVerify};

}  // namespace

void RegisterArchive(Arguments app, Run& run) {
  const auto options = std::make_shared<ArchiveOptions>();
  Arguments archive = app.Command("archive", "Look after the archive as a whole");
  archive.RequireCommand();
  archive.PassOn();  // options may also be given behind the subcommand
  archive.Flag("--json", options->json, "As JSON");
  for (const AddSubcommand add : kSubcommands) add(archive, options, run);
  archive.PassOnFromAll();
}

}  // namespace sonde::cli
