#include "daemon/node/launcher/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/unique_fd.h"

namespace sonde::node {

std::string ReadSmall(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = fd ? read(fd.get(), text.data(), text.size()) : 0;
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

// Lines are "NUMBER:CONTROLLERS:PATH"; the unified hierarchy has "0::PATH".
std::string CgroupPath(std::string_view text, std::string_view controller) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    at = end + 1;
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view names = line.substr(first + 1, second - first - 1);
    const std::string_view path = line.substr(second + 1);
    if (controller.empty() && names.empty()) return std::string(path);
    while (!controller.empty() && !names.empty()) {
      const size_t comma = std::min(names.find(','), names.size());
      if (names.substr(0, comma) == controller) return std::string(path);
      names.remove_prefix(std::min(comma + 1, names.size()));
    }
  }
  return "";
}

}  // namespace sonde::node
