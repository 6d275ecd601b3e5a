#include "cli/peaks/find.h"

#include "core/config.h"

namespace sonde::cli::peaks {

std::vector<std::string> CacheFiles::All() const {
  std::vector<std::string> all = {user};
  if (!site.empty()) all.push_back(site);
  return all;
}

Result<CacheFiles> FilesOf(const Environment& env) {
  const auto config = LoadConfig(env.config_path);
  if (!config.ok()) return config.status();
  const auto archive = ArchiveDirectory(env);
  if (!archive.ok()) return archive.status();
  return CacheFiles{config->peaks, *archive + "/peaks.json"};
}

Result<std::vector<NodePeaks>> KnownPeaks(const Environment& env, const std::string& file) {
  if (!file.empty()) {
    auto named = insight::ReadPeaks(file);
    if (named.ok() && named->empty()) {
      return Status(Code::kNotFound, file + " has no peaks; `sonde peaks --file` measures them");
    }
    return named;
  }
  const auto files = FilesOf(env);
  if (!files.ok()) return files.status();
  return insight::ReadPeaks(files->All());
}

}  // namespace sonde::cli::peaks
