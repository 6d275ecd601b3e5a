#include "daemon/link/libfabric/native_fabrics.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>

namespace sonde::tree {
namespace {

namespace fs = std::filesystem;

// Fabrics of their own first. Before opx and psm3, whose endpoints take one of the adapter's few
// contexts each, which MPI needs, stands verbs, which works on the same adapters.
constexpr std::string_view kNative[] = {"cxi", "efa", "verbs", "opx", "psm3"};

// Empty if there is no such directory.
std::vector<fs::path> EntriesOf(const fs::path& directory) {
  std::error_code ignored;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(directory, ignored), end; at != end; at.increment(ignored)) {
    entries.push_back(at->path());
  }
  return entries;
}

bool HasInfiniBandPort(const fs::path& adapter) {
  for (const fs::path& port : EntriesOf(adapter / "ports")) {
    std::string layer;
    if (std::ifstream(port / "link_layer") >> layer && layer == "InfiniBand") return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> NativeFabrics(const std::string& sys) {
  std::set<std::string_view> found;
  if (!EntriesOf(fs::path(sys) / "class/cxi").empty()) found.insert("cxi");
  for (const fs::path& adapter : EntriesOf(fs::path(sys) / "class/infiniband")) {
    std::error_code ignored;
    const std::string driver = fs::read_symlink(adapter / "device/driver", ignored).filename();
    if (driver == "efa") {
      found.insert("efa");
    } else if (driver == "hfi1") {
      found.insert({"verbs", "opx", "psm3"});
    } else if (HasInfiniBandPort(adapter)) {
      found.insert("verbs");
    }
  }
  std::vector<std::string> names;
  for (const std::string_view name : kNative) {
    if (found.contains(name)) names.emplace_back(name);
  }
  return names;
}

}  // namespace sonde::tree
