// sonde archive compact: gives back the room of what was deleted.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/archive.h"
#include "cli/progress.h"
#include "profiles/archive_dir.h"
#include "profiles/archive_stats.h"
#include "profiles/ask_keeper.h"
#include "profiles/json_writer.h"
#include "profiles/text.h"

namespace sonde::cli {
namespace {

int Compact(const ArchiveOptions& options, const Environment& env) {
  const auto root = ArchiveDirectory(env);
  if (!root.ok()) return Fail(root.status());
  const auto archive = OpenIndexed(env, false, Archive::For::kWriting);
  if (!archive.ok()) return Fail(archive.status());
  const uint64_t before = BytesBelow(ArchivePaths(*root).db());
  Progress progress("compacting " + *root, "parts");
  // A server that has the archive open does it.
  Status done = (*archive)->owned() ? Status(Code::kNotFound, "it is ours")
                                    : AskToCompact(*root, progress.Follow(), TellWait(progress));
  if (done.code() == Code::kNotFound) done = (*archive)->Compact(progress.Follow());
  progress.End();
  if (!done.ok()) return Fail(done);
  const uint64_t after = BytesBelow(ArchivePaths(*root).db());
  if (options.json) {
    std::string out;
    JsonWriter(out).BeginObject().Field("before", before).Field("after", after).EndObject();
    return Print(out + "\n");
  }
  return Print(fmt::format("db/ took {} and takes {}\n", text::Bytes(static_cast<double>(before)),
                           text::Bytes(static_cast<double>(after))));
}

}  // namespace

void AddArchiveCompact(CLI::App& archive, const SharedArchiveOptions& options, Run& run) {
  CLI::App* sub = archive.add_subcommand("compact", "Give back the room of what was deleted");
  sub->callback([options, &run] {
    run = [options](const Environment& env) { return Compact(*options, env); };
  });
}

}  // namespace sonde::cli
