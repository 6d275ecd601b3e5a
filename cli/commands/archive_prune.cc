// sonde archive prune: deletes what exceeds the limits of sonde.conf, or those of the options.
#include <fmt/core.h>

#include <utility>

#include "cli/commands/archive.h"
#include "cli/progress.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/model/text.h"
#include "profiles/records/keys.h"
#include "profiles/upkeep/retention.h"

namespace sonde::cli {
namespace {

constexpr Nanos kNoHurry = 3600 * kSecond;
constexpr size_t kShown = 20;

struct ArchivePruneOptions {
  bool dry_run = false;
  // As in sonde.conf, which they replace; "": the limit of sonde.conf.
  std::string age, profiles, size, user_profiles, user_size;
};

// The limits of sonde.conf, replaced by those of the options, with the same checks.
Result<Retention> Limits(const ArchivePruneOptions& options, const Environment& env) {
  std::string given;
  for (const auto& [key, value] :
       {std::pair{"keep_age", &options.age}, std::pair{"keep_profiles", &options.profiles},
        std::pair{"keep_size", &options.size},
        std::pair{"keep_user_profiles", &options.user_profiles},
        std::pair{"keep_user_size", &options.user_size}}) {
    if (!value->empty()) given += fmt::format("{} = {}\n", key, *value);
  }
  const auto config = given.empty() ? LoadConfig(env.config_path) : ParseConfig(given, "prune");
  if (!config.ok()) return config.status();
  const Retention limits = RetentionOf(*config);
  if (!limits.any()) {
    return Status(Code::kInvalid,
                  fmt::format("there are no limits: set keep_age, keep_profiles, keep_size, "
                              "keep_user_profiles or keep_user_size in {}, or give --age 180d, "
                              "--profiles 10000, --size 50G, --user-profiles or --user-size",
                              env.config_path));
  }
  return limits;
}

std::string AsText(const PruneReport& report, bool dry_run) {
  std::string out;
  for (size_t i = 0; i < report.pruned.size() && i < kShown; ++i) {
    const PrunedProfile& one = report.pruned[i];
    const auto job = keys::DescribeKey(one.key);
    out += fmt::format("  {}  {}  {}\n", text::Printable(job ? job->id.ToString() : one.key),
                       text::Bytes(static_cast<double>(one.bytes)), text::Printable(one.why));
  }
  if (report.profiles > kShown) out += fmt::format("  and {} more\n", report.profiles - kShown);
  out += fmt::format("{} profiles, {}, {}\n", report.profiles,
                     text::Bytes(static_cast<double>(report.bytes)),
                     dry_run ? "would be deleted" : "deleted");
  if (report.pinned > 0) {
    out += fmt::format("{} exceed a limit and stay: they are tagged keep\n", report.pinned);
  }
  if (!report.complete) out += "not everything was looked at; the same command goes on\n";
  if (!dry_run && report.profiles > 0) {
    out += "'sonde archive compact' gives their room back at once\n";
  }
  return out;
}

// If a server has the archive open, the server does it.
Result<PruneReport> Prune(const OpenedArchive& archive, const Retention& limits, bool dry_run) {
  const std::string& root = archive.reader->root();
  Progress progress("pruning " + root, "profiles");
  const auto now = [] { return Clock::System().Now(); };
  if (dry_run) return archive.reader->WouldPrune(limits, now(), kNoHurry, progress.Follow());
  if (!archive.owned()) {
    auto report = AskToPrune(root, limits, progress.Follow(), TellWait(progress));
    if (report.status().code() != Code::kNotFound) return report;
  }
  if (archive.owner == nullptr) return WhyNotOwned(*archive.reader);
  return archive.owner->Prune(limits, now(), kNoHurry, progress.Follow());
}

int Prune(const ArchiveOptions& shared, const ArchivePruneOptions& options,
          const Environment& env) {
  const auto limits = Limits(options, env);
  if (!limits.ok()) return FailUsage(limits.status());
  const auto use = options.dry_run ? ArchiveUse::kReading : ArchiveUse::kWriting;
  const auto archive = OpenIndexed(env, true, use);
  if (!archive.ok()) return Fail(archive.status());
  const auto report = Prune(*archive, *limits, options.dry_run);
  if (!report.ok()) return Fail(report.status());
  return Print(shared.json ? PruneToJson(*report, options.dry_run) + "\n"
                           : AsText(*report, options.dry_run));
}

}  // namespace

void AddArchivePrune(Arguments archive, const SharedArchiveOptions& shared, Run& run) {
  const auto options = std::make_shared<ArchivePruneOptions>();
  Arguments sub =
      archive.Command("prune", "Delete the oldest profiles beyond the limits of sonde.conf");
  sub.Flag("--dry-run", options->dry_run, "Only say what would be deleted");
  sub.Option("--age", options->age, "Those that ended longer ago, instead of sonde.conf")
      .Type("TIME");
  sub.Option("--profiles", options->profiles, "All but so many of the newest");
  sub.Option("--size", options->size, "Until they take so many bytes").Type("SIZE");
  sub.Option("--user-profiles", options->user_profiles, "All but so many of each user");
  sub.Option("--user-size", options->user_size, "Until each user's take so many bytes")
      .Type("SIZE");
  sub.OnRead([shared, options, &run] {
    run = [shared, options](const Environment& env) { return Prune(*shared, *options, env); };
  });
}

}  // namespace sonde::cli
