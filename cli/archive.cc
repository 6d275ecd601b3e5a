// sonde archive: what is done with an archive as a whole.
#include "cli/archive.h"

#include <CLI/CLI.hpp>

namespace sonde::cli {
namespace {

using Add = void (*)(CLI::App& archive, const SharedArchiveOptions& options, Run& run);
constexpr Add kSubcommands[] = {AddArchiveCompact, AddArchivePrune, AddArchiveRepair,
                                AddArchiveStats, AddArchiveVerify};

}  // namespace

void RegisterArchive(CLI::App& app, Run& run) {
  const auto options = std::make_shared<ArchiveOptions>();
  CLI::App* archive = app.add_subcommand("archive", "Look after the archive as a whole");
  archive->require_subcommand(1);
  archive->fallthrough();  // what follows is taken behind the word as well
  archive->add_flag("--json", options->json, "As JSON");
  for (const Add add : kSubcommands) add(*archive, options, run);
  for (CLI::App* sub : archive->get_subcommands({})) sub->fallthrough();
}

}  // namespace sonde::cli
