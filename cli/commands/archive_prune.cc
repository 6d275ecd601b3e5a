// sonde archive prune: deletes what exceeds the limits of sonde.conf, or those that are given.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "cli/archive.h"
#include "cli/progress.h"
#include "profiles/ask_keeper.h"
#include "profiles/keys.h"
#include "profiles/retention.h"
#include "profiles/text.h"

namespace sonde::cli {
namespace {

constexpr Nanos kNoHurry = 3600 * kSecond;
constexpr size_t kShown = 20;

struct Options {
  bool dry_run = false;
  // As in sonde.conf, in whose place they stand; "": as it says.
  std::string age, profiles, size, user_profiles, user_size;
};

// The limits of sonde.conf with those that are given, checked as there.
Result<Retention> Limits(const Options& options, const Environment& env) {
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

// Where a server has the archive open, it does it.
Result<PruneReport> Prune(Archive& archive, const std::string& root, const Retention& limits,
                          bool dry_run) {
  Progress progress("pruning " + root, "profiles");
  if (!dry_run && !archive.owned()) {
    auto report = AskToPrune(root, limits, progress.Follow(), TellWait(progress));
    if (report.status().code() != Code::kNotFound) return report;
  }
  return archive.Prune(limits, Clock::System().Now(), kNoHurry, dry_run, progress.Follow());
}

int Prune(const ArchiveOptions& shared, const Options& options, const Environment& env) {
  const auto limits = Limits(options, env);
  if (!limits.ok()) return FailUsage(limits.status());
  const auto root = ArchiveDirectory(env);
  if (!root.ok()) return Fail(root.status());
  const auto use = options.dry_run ? Archive::For::kReading : Archive::For::kWriting;
  const auto archive = OpenIndexed(env, true, use);
  if (!archive.ok()) return Fail(archive.status());
  const auto report = Prune(**archive, *root, *limits, options.dry_run);
  if (!report.ok()) return Fail(report.status());
  return Print(shared.json ? PruneToJson(*report, options.dry_run) + "\n"
                           : AsText(*report, options.dry_run));
}

}  // namespace

void AddArchivePrune(CLI::App& archive, const SharedArchiveOptions& shared, Run& run) {
  const auto options = std::make_shared<Options>();
  CLI::App* sub =
      archive.add_subcommand("prune", "Delete the oldest profiles beyond the limits of sonde.conf");
  sub->add_flag("--dry-run", options->dry_run, "Only say what would be deleted");
  sub->add_option("--age", options->age, "Those that ended longer ago, instead of sonde.conf")
      ->type_name("TIME");
  sub->add_option("--profiles", options->profiles, "All but so many of the newest");
  sub->add_option("--size", options->size, "Until they take so many bytes")->type_name("SIZE");
  sub->add_option("--user-profiles", options->user_profiles, "All but so many of each user");
  sub->add_option("--user-size", options->user_size, "Until each user's take so many bytes")
      ->type_name("SIZE");
  sub->callback([shared, options, &run] {
    run = [shared, options](const Environment& env) { return Prune(*shared, *options, env); };
  });
}

}  // namespace sonde::cli
