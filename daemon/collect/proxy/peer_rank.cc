#include "daemon/collect/proxy/peer_rank.h"

#include <fcntl.h>

#include <algorithm>

#include "core/text/rank.h"
#include "core/unique_fd.h"
#include "daemon/collect/read/file_reader.h"

namespace sonde::collect {

int RankInEnvironment(std::string_view environment) {
  return InnermostRank(kRankVariables, [environment](std::string_view name) {
    for (std::string_view left = environment; !left.empty();) {
      const std::string_view entry = left.substr(0, left.find('\0'));
      left.remove_prefix(std::min(entry.size() + 1, left.size()));
      if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
        return entry.substr(name.size() + 1);
      }
    }
    return std::string_view();
  });
}

int RankOfPeer(const std::string& proc, pid_t pid) {
  const std::string path = proc + "/" + std::to_string(pid) + "/environ";
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file) return -1;
  ReadBuffer buffer;
  size_t size = 16u << 10;
  int error = 0;
  return RankInEnvironment(ReadText(file.get(), Shape::kRecords, size, buffer, error));
}

}  // namespace sonde::collect
