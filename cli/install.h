// Finds the rest of the installation from this program's place.
//
// Thread safety: functions without state.
#pragma once

#include <string>

#include "core/status.h"

namespace sonde::cli {

// The daemon: $SONDE_SONDED, beside this program in a build or an installation, or where the build
// was told to install it. kNotFound lists the places looked at.
Result<std::string> SondedPath();
// Whether the file is on a file system from which nothing can be executed.
bool IsMountedNoexec(const std::string& path);
// The plugin: $SONDE_PLUGIN, beside this program in a build, or in Slurm's plugin directory.
Result<std::string> PluginPath();
// The directory of libsonde.so.1 and of the libraries to be preloaded: $SONDE_LIBRARIES, beside
// this program, or where the build was told to install them.
Result<std::string> LibraryPath();

}  // namespace sonde::cli
