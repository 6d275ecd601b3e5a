#include "profiles/archive/stats.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>

#include "profiles/disk/archive_dir.h"
#include "profiles/json/writer.h"
#include "profiles/records/card.h"
#include "profiles/select/select.h"

namespace sonde {
uint64_t BytesBelow(const std::string& directory) {
  namespace fs = std::filesystem;
  uint64_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator it(directory, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    struct stat info;
    if (::lstat(it->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    bytes += static_cast<uint64_t>(info.st_size);
  }
  return bytes;
}

Result<ArchiveStats> StatsOf(const Archive& archive) {
  const auto profiles = archive.Select({}, Clock::System().Now());
  if (!profiles.ok()) return profiles.status();
  ArchiveStats stats;
  stats.profiles = profiles->size();
  std::map<std::string, ArchiveStats::User, std::less<>> users;
  Card card;
  for (const ListedProfile& one : *profiles) {
    stats.running += one.running ? 1 : 0;
    stats.waiting += one.live && !one.running ? 1 : 0;
    if (!DecodeCard(one.card, card).ok()) continue;
    const auto user = users.try_emplace(std::string(card.user)).first;
    ++user->second.profiles;
    user->second.bytes += card.size;
    const auto keeps = [](const auto& tag) { return tag.first == kKeepTag; };
    stats.pinned += std::any_of(card.tags.begin(), card.tags.end(), keeps) ? 1 : 0;
  }
  for (auto& [name, user] : users) {
    user.name = name;
    stats.users.push_back(std::move(user));
  }
  std::stable_sort(stats.users.begin(), stats.users.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  if (!profiles->empty()) {
    stats.newest = profiles->front().start;
    stats.oldest = profiles->back().start;
  }
  const ArchivePaths paths(archive.root());
  const std::vector<std::string> names = NamesIn(paths.live());
  stats.damaged =
      static_cast<uint64_t>(std::count_if(names.begin(), names.end(), [](const std::string& name) {
        return name.ends_with(kCorruptSuffix) ||
               name.find(std::string(kCorruptSuffix) + "-") != std::string::npos;
      }));
  stats.db_bytes = BytesBelow(paths.db());
  stats.live_bytes = BytesBelow(paths.live());
  return stats;
}

std::string StatsToJson(const ArchiveStats& stats) {
  std::string out;
  JsonWriter w(out);
  w.BeginObject().Field("profiles", stats.profiles).Field("running", stats.running);
  w.Field("waiting", stats.waiting).Field("damaged", stats.damaged);
  w.Field("db_bytes", stats.db_bytes).Field("live_bytes", stats.live_bytes);
  w.Field("pinned", stats.pinned).Key("users").BeginArray();
  for (const ArchiveStats::User& user : stats.users) {
    w.BeginObject().Field("name", user.name).Field("profiles", user.profiles);
    w.Field("bytes", user.bytes).EndObject();
  }
  w.EndArray();
  w.Field("oldest", stats.oldest).Field("newest", stats.newest).EndObject();
  return out;
}

}  // namespace sonde
