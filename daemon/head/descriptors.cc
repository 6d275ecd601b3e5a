#include "daemon/head/descriptors.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "daemon/link/via_links.h"

namespace sonde::head {
namespace {

constexpr uint64_t kWeb = 128;     // web::Server's bound
constexpr uint64_t kArchive = 32;  // LevelDB's log, manifest and tables, and the profile's files
constexpr uint64_t kOwn = 32;

}  // namespace

uint64_t ConnectionsFor(uint64_t nodes, uint64_t direct) {
  if (nodes <= direct) return nodes;
  return std::min(nodes, direct + uint64_t{4} * tree::GatewaysOf(nodes));
}

uint64_t DescriptorsFor(uint64_t nodes, uint64_t direct, uint64_t fanout) {
  return ConnectionsFor(nodes, direct) + std::min(nodes, fanout) + kWeb + kArchive + kOwn;
}

std::string TooFewDescriptors(std::string_view host, uint64_t nodes, uint64_t direct,
                              uint64_t fanout, uint64_t limit) {
  const uint64_t needed = DescriptorsFor(nodes, direct, fanout);
  if (limit >= needed) return "";
  return fmt::format(
      "{} lets a process have {} open files, and the head of {} nodes needs {}: nodes may be "
      "missing; raise the hard limit there (ulimit -Hn)",
      host, limit, nodes, needed);
}

uint64_t DescriptorLimit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return std::numeric_limits<uint64_t>::max();
  return files.rlim_cur;
}

}  // namespace sonde::head
