// sonde archive compact: gives back the room of deleted profiles.
#include <fmt/core.h>

#include "cli/commands/archive.h"
#include "cli/progress.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/archive/stats.h"
#include "profiles/disk/archive_dir.h"
#include "profiles/json/writer.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

// If a server has the archive open, the server does it.
Status Compact(const OpenedArchive& archive, Progress& progress) {
  if (!archive.owned()) {
    const Status asked =
        AskToCompact(archive.reader->root(), progress.Follow(), TellWait(progress));
    if (asked.code() != Code::kNotFound) return asked;
  }
  if (archive.owner == nullptr) return WhyNotOwned(*archive.reader);
  return archive.owner->Compact(progress.Follow());
}

int Compact(const ArchiveOptions& options, const Environment& env) {
  const auto root = ArchiveDirectory(env);
  if (!root.ok()) return Fail(root.status());
  const auto archive = OpenIndexed(env, false, ArchiveUse::kWriting);
  if (!archive.ok()) return Fail(archive.status());
  const uint64_t before = BytesBelow(ArchivePaths(*root).db());
  Progress progress("compacting " + *root, "parts");
  const Status done = Compact(*archive, progress);
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

void AddArchiveCompact(Arguments archive, const SharedArchiveOptions& options, Run& run) {
  Arguments sub = archive.Command("compact", "Give back the room of what was deleted");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Compact(*options, env); };
  });
}

}  // namespace sonde::cli
