#include "cli/install.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace sonde::cli {
namespace {

namespace fs = std::filesystem;

// The directory above this program's; "" if that is unknown.
fs::path Prefix() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : program.parent_path().parent_path();
}

Result<std::string> FirstOf(const std::string& what, const std::string& variable, int mode,
                            std::vector<std::string> places) {
  if (const char* given = std::getenv(variable.c_str())) places = {given};
  for (const std::string& place : places) {
    if (access(place.c_str(), mode) == 0) return place;
  }
  for (const std::string& place : places) {
    if (access(place.c_str(), F_OK) != 0 && errno == ENOENT) continue;
    return Status(Code::kPermission,
                  mode == X_OK && IsMountedNoexec(place)
                      ? place +
                            " is on a file system that is mounted noexec: mount it with exec, or "
                            "install elsewhere"
                      : place + " may not be used: Permission denied");
  }
  return Status(Code::kNotFound, fmt::format("no {} at {}; install it or set {} to where it is",
                                             what, fmt::join(places, ", "), variable));
}

}  // namespace

bool IsMountedNoexec(const std::string& path) {
  struct statvfs info {};
  return statvfs(path.c_str(), &info) == 0 && (info.f_flag & ST_NOEXEC) != 0;
}

Result<std::string> SondedPath() {
  return FirstOf(
      "sonded", "SONDE_SONDED", X_OK,
      {Prefix() / "libexec/sonde/sonded", Prefix() / "daemon/sonded", SONDE_SONDED_PATH});
}

Result<std::string> PluginPath() {
  return FirstOf("spank_sonde.so", "SONDE_PLUGIN", R_OK,
                 {Prefix() / "spank/spank_sonde.so", SONDE_PLUGIN_PATH});
}

Result<std::string> LibraryPath() {
  std::vector<std::string> places = {Prefix() / "libclient", Prefix() / SONDE_LIBRARY_DIR,
                                     SONDE_LIBRARY_PATH};
  if (const char* given = std::getenv("SONDE_LIBRARIES")) places = {given};
  for (const std::string& place : places) {
    if (access((place + "/libsonde.so.1").c_str(), R_OK) == 0) return place;
  }
  return Status(Code::kNotFound, fmt::format("no libsonde.so.1 in {}; install it or set "
                                             "SONDE_LIBRARIES to the directory where it is",
                                             fmt::join(places, ", ")));
}

}  // namespace sonde::cli
