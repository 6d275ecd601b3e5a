// sonde import: takes profiles that `sonde export --to FILE.sonde` wrote into the archive.
#include <fmt/core.h>

#include <memory>

#include "cli/command.h"
#include "cli/progress.h"
#include "profiles/archive/ask_keeper.h"

namespace sonde::cli {
namespace {

constexpr Nanos kWaitForImport = 5 * kSecond;

struct ImportOptions {
  std::vector<std::string> files;
  bool quiet = false;
};

int Import(const Environment& env, const ImportOptions& options) {
  const Result<std::string> archive = ArchiveDirectory(env);
  if (!archive.ok()) return Fail(archive.status());
  int code = kDone;
  for (const std::string& file : options.files) {
    Progress progress("importing " + file, "bytes", !options.quiet);
    // A server that has the archive open takes it in.
    auto imported = AskToImport(*archive, file, progress.Follow(), TellWait(progress));
    if (imported.status().code() == Code::kNotFound) {
      imported = ImportProfile(*archive, file, kWaitForImport, progress.Follow());
    }
    progress.End();
    if (!imported.ok()) {
      code = kFailed;
      Fail(imported.status());
    } else if (!options.quiet) {
      const std::string id = imported->job.id.ToString();
      Note(imported->was_there ? fmt::format("{} is in the archive already", id)
                               : fmt::format("{} is in the archive now, {} blocks; see it with: "
                                             "sonde show {}",
                                             id, imported->blocks, id));
    }
  }
  return code;
}

}  // namespace

void RegisterImport(Arguments app, Run& run) {
  Arguments sub = app.Command("import", "Take profiles from files into the archive");
  const auto options = std::make_shared<ImportOptions>();
  sub.Option("FILE", options->files, "A profile that 'sonde export' wrote as FILE.sonde")
      .Required();
  sub.Flag("--quiet", options->quiet, "Only say what fails");
  sub.OnRead([&run, options] {
    run = [options](const Environment& env) { return Import(env, *options); };
  });
}

}  // namespace sonde::cli
