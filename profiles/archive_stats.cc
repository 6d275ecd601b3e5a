#include "profiles/archive_stats.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "profiles/archive_dir.h"
#include "profiles/json_writer.h"

namespace sonde {
namespace {

// What the files below a directory take. Those that go meanwhile do not count.
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

}  // namespace

Result<ArchiveStats> StatsOf(const Archive& archive, const std::string& root) {
  const auto entries = archive.List();
  if (!entries.ok()) return entries.status();
  ArchiveStats stats;
  stats.profiles = entries->size();
  for (const ProfileEntry& entry : *entries) {
    stats.running += entry.running ? 1 : 0;
    stats.waiting += entry.live && !entry.running ? 1 : 0;
  }
  if (!entries->empty()) {
    stats.newest = entries->front().job.start;
    stats.oldest = entries->back().job.start;
  }
  const ArchivePaths paths(root);
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
  w.Field("oldest", stats.oldest).Field("newest", stats.newest).EndObject();
  return out;
}

}  // namespace sonde
