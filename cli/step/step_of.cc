#include "cli/step/step_of.h"

#include <fmt/core.h>

#include <cmath>

#include "cli/step/running_step.h"
#include "profiles/archive/listed_cards.h"
#include "profiles/model/text.h"

namespace sonde::cli {
namespace {

constexpr Nanos kPatience = 3 * kSecond;  // with a head

bool HasJustEnded(const Archive& archive, ProfileEntry& entry) {
  static_cast<void>(AskRunning(archive, "/job/list?limit=1", kPatience, entry));
  return !entry.running;
}

}  // namespace

Result<FinishedStep> LoadFinished(const Archive& archive, const std::string& id) {
  auto found = FindSteps(archive, id);
  if (!found.ok()) return found.status();
  for (ProfileEntry& entry : *found) {
    if (entry.running && !HasJustEnded(archive, entry)) continue;
    auto profile = archive.Load(entry.key);
    if (!profile.ok()) return profile.status();
    return FinishedStep{entry.key, *std::move(profile)};
  }
  return Status(Code::kNotFound,
                fmt::format("{} is running: it can be looked at when it has ended", id));
}

int ShowFinished(
    const std::string& id, const Environment& env,
    const std::function<Result<std::string>(const Archive&, const FinishedStep&)>& text) {
  const auto archive = OpenArchive(env, ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  const auto step = LoadFinished(*archive->reader, id);
  if (!step.ok()) return Fail(step.status());
  const auto shown = text(*archive->reader, *step);
  if (!shown.ok()) return Fail(shown.status());
  NoteDamage(*archive->reader);
  return Print(*shown);
}

std::string TitleOf(const Profile& profile) {
  const JobDescription& job = profile.job;
  const std::string name = job.name.empty() ? "" : fmt::format(" ({})", text::Printable(job.name));
  return fmt::format("{}{}: {} node{}, {} task{}, {}\n", text::Printable(job.id.ToString()), name,
                     job.expected_nodes, job.expected_nodes == 1 ? "" : "s", job.expected_tasks,
                     job.expected_tasks == 1 ? "" : "s",
                     text::Seconds(static_cast<double>(job.end - job.start) / kSecond));
}

std::string ValueText(double value, std::string_view unit) {
  if (std::isnan(value)) return "-";
  if (unit == "CPUs") return fmt::format("{} CPUs", text::Number(value));
  if (unit == "s/s") return fmt::format("{} s/s", text::Number(value));
  if (unit == "1/s") return text::Number(value) + "/s";
  if (unit.ends_with("/s")) return text::Value(value, unit.substr(0, unit.size() - 2), true);
  return text::Value(value, unit);
}

std::string SinceText(Nanos time, const JobDescription& job, bool from_start) {
  if (from_start || time <= job.start) return "from the start";
  return text::Seconds(static_cast<double>(time - job.start) / kSecond) + " after the start";
}

}  // namespace sonde::cli
