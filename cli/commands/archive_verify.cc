// sonde archive verify: checks whether everything in the archive can be read.
#include <fmt/core.h>

#include "cli/commands/archive.h"
#include "cli/progress.h"
#include "profiles/model/text.h"
#include "profiles/upkeep/verify.h"

namespace sonde::cli {
namespace {

std::string AsText(const VerifyReport& report, const std::string& root) {
  using text::Printable;
  std::string out = fmt::format("{}\n  {} profiles, {} blocks ({}), {} schemas, {} index entries\n",
                                Printable(root), report.profiles, report.blocks,
                                text::Bytes(static_cast<double>(report.block_bytes)),
                                report.schemas, report.index_entries);
  if (report.live > 0) out += fmt::format("  {} finished steps wait in live/\n", report.live);
  if (report.running > 0) out += fmt::format("  {} running, not looked into\n", report.running);
  if (report.foreign > 0) {
    out += fmt::format("  {} records only another version of Sonde can check\n", report.foreign);
  }
  for (const VerifyReport::Problem& problem : report.problems) {
    out += fmt::format("  {}: {}\n", problem.profile.empty() ? "archive" : problem.profile,
                       Printable(problem.what));
  }
  if (report.problem_count > report.problems.size()) {
    out += fmt::format("  and {} more problems\n", report.problem_count - report.problems.size());
  }
  for (const std::string& name : report.damaged) {
    out += fmt::format("  kept of earlier damage: {}\n", Printable(name));
  }
  out += report.ok() ? "everything can be read\n"
                     : fmt::format("{} problems; 'sonde archive repair' mends what can be mended\n",
                                   report.problem_count);
  return out;
}

// A cron job tells this from damage.
int NotLooked(const Status& why) {
  static_cast<void>(Fail(why));
  return kNotLooked;
}

int Verify(const ArchiveOptions& options, const Environment& env) {
  const auto root = ArchiveDirectory(env);
  if (!root.ok()) return NotLooked(root.status());
  Progress progress("verifying " + *root, "bytes");
  const auto report = VerifyArchive(*root, progress.Follow());
  progress.End();
  if (!report.ok()) return NotLooked(report.status());
  const int printed = Print(options.json ? VerifyToJson(*report) + "\n" : AsText(*report, *root));
  return report->ok() ? printed : kFailed;
}

}  // namespace

void AddArchiveVerify(Arguments archive, const SharedArchiveOptions& options, Run& run) {
  Arguments sub = archive.Command(
      "verify",
      "Read and check everything in it; exit status 1: something is damaged, 4: it could not look");
  sub.OnRead([options, &run] {
    run = [options](const Environment& env) { return Verify(*options, env); };
  });
}

}  // namespace sonde::cli
