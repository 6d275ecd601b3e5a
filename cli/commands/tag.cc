// sonde tag: tags of a profile, shown or changed after its step has ended.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cli/command.h"
#include "cli/selection.h"
#include "profiles/archive/ask_keeper.h"
#include "profiles/archive/listed_cards.h"
#include "profiles/json/writer.h"
#include "profiles/model/text.h"
#include "profiles/records/keys.h"

namespace sonde::cli {
namespace {

struct TagOptions {
  std::string id;
  std::vector<std::string> set;
  std::vector<std::string> remove;
  bool json = false;
};

Result<TagChange> ChangeOf(const TagOptions& options) {
  TagChange change;
  for (const std::string& text : options.set) {
    auto tag = ParseUserTag(text);
    if (!tag.ok()) return tag.status();
    change.set.insert(*std::move(tag));
  }
  for (const std::string& name : options.remove) {
    const auto tag = ParseUserTag(name);
    if (!tag.ok()) return tag.status().Within("--remove");
    change.remove.push_back(tag->first);
  }
  return change;
}

Result<std::vector<ProfileEntry>> Find(const Archive& archive, const std::string& id) {
  if (!keys::DescribeKey(id)) return FindSteps(archive, id);
  auto entry = archive.Entry(id);
  if (!entry.ok()) return entry.status();
  return std::vector<ProfileEntry>{*std::move(entry)};
}

std::string AsText(const std::vector<ProfileEntry>& entries) {
  std::string out;
  for (const ProfileEntry& entry : entries) {
    out += text::Printable(entry.job.id.ToString());
    for (const auto& [name, value] : entry.job.tags) {
      out += " " + text::Printable(value.empty() ? name : fmt::format("{}={}", name, value));
    }
    out += '\n';
  }
  return out;
}

std::string AsJson(const std::vector<ProfileEntry>& entries) {
  std::string out;
  JsonWriter w(out);
  w.BeginArray();
  for (const ProfileEntry& entry : entries) {
    w.BeginObject().Field("key", entry.key).Field("job", entry.job.id.job);
    w.Field("step", entry.job.id.step).Key("tags").BeginObject();
    for (const auto& [name, value] : entry.job.tags) w.Field(name, value);
    w.EndObject().EndObject();
  }
  w.EndArray();
  return out + "\n";
}

int Tag(const TagOptions& options, const Environment& env) {
  const auto change = ChangeOf(options);
  if (!change.ok()) return FailUsage(change.status());
  const bool changes = !change->set.empty() || !change->remove.empty();
  const auto archive = OpenArchive(env, changes ? ArchiveUse::kWriting : ArchiveUse::kReading);
  if (!archive.ok()) return Fail(archive.status());
  auto found = Find(*archive->reader, options.id);
  if (!found.ok()) return Fail(found.status());
  if (changes) {
    for (const ProfileEntry& entry : *found) {
      const auto changed =
          TagWhereItIsOpen(*archive->reader, archive->owner.get(), entry.key, *change);
      if (!changed.ok()) return Fail(changed.status().Within("tag " + entry.job.id.ToString()));
    }
    found = Find(*archive->reader, options.id);
    if (!found.ok()) return Fail(found.status());
  }
  return Print(options.json ? AsJson(*found) : AsText(*found));
}

}  // namespace

void RegisterTag(Arguments app, Run& run) {
  auto options = std::make_shared<TagOptions>();
  Arguments sub = app.Command("tag", "Show or change the tags of a finished step or job");
  sub.Option("JOB[.STEP]", options->id, "As in 123.0; 123: all steps of the job; or a key")
      .Required();
  sub.Option("TAG", options->set, "NAME=VALUE or NAME, such as keep");
  sub.Option("--remove", options->remove, "A tag to take away; may be repeated")
      .Type("NAME")
      .Repeated();
  sub.Flag("--json", options->json, "As JSON");
  sub.OnRead(
      [options, &run] { run = [options](const Environment& env) { return Tag(*options, env); }; });
}

}  // namespace sonde::cli
