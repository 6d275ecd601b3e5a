// sonde archive repair: makes the database anew from the readable records of a damaged one.
#include <fmt/core.h>

#include "cli/commands/archive.h"
#include "cli/progress.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/json/writer.h"
#include "profiles/model/text.h"
#include "profiles/upkeep/repair.h"

namespace sonde::cli {
namespace {

constexpr Nanos kWait = 5 * kSecond;

std::string AsText(const RepairReport& report, const std::string& root) {
  using text::Printable;
  std::string out;
  if (!report.damage.empty()) out += fmt::format("damage: {}\n", Printable(report.damage));
  if (report.dropped > 0) out += fmt::format("{} records were damaged\n", report.dropped);
  for (const RepairReport::Loss& loss : report.losses) {
    out += fmt::format("  {}: {}\n", Printable(loss.profile), Printable(loss.what));
  }
  out += fmt::format("{} profiles with {} blocks are in {}\n", report.profiles, report.blocks,
                     Printable(root));
  out += fmt::format(
      "the database as it was is kept in {}; 'sonde archive repair --discard' deletes it\n",
      Printable(report.kept));
  return out;
}

int Discard(const std::string& root, bool json) {
  const auto discarded = DiscardDamage(root);
  if (!discarded.ok()) return Fail(discarded.status());
  std::string out;
  if (json) {
    JsonWriter w(out);
    w.BeginObject().Key("discarded").BeginArray();
    for (const std::string& name : *discarded) w.Value(name);
    w.EndArray().EndObject();
    return Print(out + "\n");
  }
  for (const std::string& name : *discarded) {
    out += fmt::format("deleted {}\n", text::Printable(name));
  }
  if (discarded->empty()) out = "nothing damaged is kept\n";
  return Print(out);
}

int Repair(const ArchiveOptions& options, bool discard, const Environment& env) {
  const auto root = ArchiveDirectory(env);
  if (!root.ok()) return Fail(root.status());
  if (discard) return Discard(*root, options.json);
  Progress progress("repairing " + *root, "bytes");
  // A server that has the archive open does it.
  auto report = AskToRepair(*root, progress.Follow(), TellWait(progress));
  if (report.status().code() == Code::kNotFound) {
    report = RepairArchive(*root, kWait, progress.Follow());
  }
  progress.End();
  if (!report.ok()) return Fail(report.status());
  return Print(options.json ? RepairToJson(*report) + "\n" : AsText(*report, *root));
}

}  // namespace

void AddArchiveRepair(Arguments archive, const SharedArchiveOptions& options, Run& run) {
  const auto discard = std::make_shared<bool>(false);
  Arguments sub = archive.Command(
      "repair", "Make its database anew from what can be read; keeps the damaged one");
  sub.Flag("--discard", *discard, "Delete what repairs and ingests have put aside as damaged");
  sub.OnRead([options, discard, &run] {
    run = [options, discard](const Environment& env) { return Repair(*options, *discard, env); };
  });
}

}  // namespace sonde::cli
