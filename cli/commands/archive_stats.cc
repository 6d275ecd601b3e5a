// sonde archive stats: what the archive holds and how much room it takes.
#include <fmt/core.h>

#include "cli/commands/archive.h"
#include "profiles/archive/stats.h"
#include "profiles/model/text.h"
#include "profiles/report/local_time.h"

namespace sonde::cli {
namespace {

constexpr size_t kShownUsers = 20;  // users

std::string AsText(const ArchiveStats& stats, const std::string& root) {
  const auto bytes = [](uint64_t n) { return text::Bytes(static_cast<double>(n)); };
  std::string out = fmt::format("{}\n", text::Printable(root));
  out += fmt::format("  {} profiles", stats.profiles);
  if (stats.running > 0) out += fmt::format(", {} running", stats.running);
  if (stats.waiting > 0) out += fmt::format(", {} not yet moved to db/", stats.waiting);
  out += '\n';
  if (stats.profiles > 0) {
    out += fmt::format("  from {}\n", FormatLocalSpan(stats.oldest, stats.newest));
  }
  out += fmt::format("  {} in db/, {} in live/\n", bytes(stats.db_bytes), bytes(stats.live_bytes));
  if (stats.pinned > 0) out += fmt::format("  {} tagged keep\n", stats.pinned);
  for (size_t i = 0; stats.users.size() > 1 && i < stats.users.size() && i < kShownUsers; ++i) {
    const ArchiveStats::User& user = stats.users[i];
    out += fmt::format("  {} of {}, {}\n", user.profiles, text::Printable(user.name),
                       bytes(user.bytes));
  }
  if (stats.damaged > 0) {
    out += fmt::format("  {} damaged, kept in live/*.corrupt\n", stats.damaged);
  }
  return out;
}

int Stats(const ArchiveOptions& options, const Environment& env) {
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto stats = StatsOf(*archive->reader);
  if (!stats.ok()) return Fail(stats.status());
  return Print(options.json ? StatsToJson(*stats) + "\n" : AsText(*stats, archive->reader->root()));
}

}  // namespace

void AddArchiveStats(Arguments archive, const SharedArchiveOptions& options, Run& run) {
  Arguments sub = archive.Command("stats", "What it holds, and how much room it takes");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Stats(*options, env); };
  });
}

}  // namespace sonde::cli
