#include "cli/install.h"

#include <fmt/format.h>
#include <unistd.h>

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
  return Status(Code::kNotFound, fmt::format("no {} at {}; install it or set {} to where it is",
                                             what, fmt::join(places, ", "), variable));
}

}  // namespace

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
