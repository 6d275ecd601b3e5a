#include "daemon/node/launcher/small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "core/unique_fd.h"

namespace sonde::node {

std::string ReadSmall(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(4096, '\0');
  const ssize_t size = fd ? read(fd.get(), text.data(), text.size()) : 0;
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

}  // namespace sonde::node
