#include "profiles/records/tags.h"

#include <fmt/core.h>
#include <leveldb/write_batch.h>

#include <utility>

#include "core/text/user_tags.h"
#include "profiles/disk/leveldb_env.h"
#include "profiles/records/index.h"
#include "profiles/records/records.h"

namespace sonde {

Result<UserTags> ChangeTags(leveldb::DB& db, const std::string& key, const TagChange& change) {
  auto profile = ReadProfile(db, key);
  if (!profile.ok()) return profile.status();
  UserTags& tags = profile->job.tags;
  for (const std::string& name : change.remove) tags.erase(name);
  for (const auto& [name, value] : change.set) {
    if (!ValidUserTag(name, value)) {
      return Status(Code::kInvalid, fmt::format("tag '{}': {}", name, kUserTagExpected));
    }
    tags[name] = value;
  }
  if (tags.size() > kMaxUserTags) {
    return Status(Code::kLimit, fmt::format("a profile has at most {} tags", kMaxUserTags));
  }
  leveldb::WriteBatch batch;
  IndexWriter index(db);
  SONDE_RETURN_IF_ERROR(index.Put(*profile, batch));
  index.Finish(batch);
  leveldb::WriteOptions options;
  options.sync = true;
  SONDE_RETURN_IF_ERROR(FromLevelDb(db.Write(options, &batch), "write the tags of " + key));
  return std::move(tags);
}

std::string TagChangeToText(const TagChange& change) {
  std::string text;
  for (const auto& [name, value] : change.set) {
    text += (text.empty() ? "" : ",") + name + "=" + value;
  }
  text += '\t';
  for (size_t i = 0; i < change.remove.size(); ++i) text += (i == 0 ? "" : ",") + change.remove[i];
  return text;
}

Result<TagChange> TagChangeFromText(std::string_view text) {
  TagChange change;
  const size_t tab = text.find('\t');
  const bool valid =
      tab != std::string_view::npos &&
      ForEachUserTag(text.substr(0, tab),
                     [&](std::string_view name, std::string_view value) {
                       change.set[std::string(name)] = value;
                     }) &&
      ForEachUserTag(text.substr(tab + 1), [&](std::string_view name, std::string_view) {
        change.remove.emplace_back(name);
      });
  if (!valid) return Status(Code::kCorrupt, std::string(kUserTagsExpected));
  return change;
}

}  // namespace sonde
