#include "launcher/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "core/unique_fd.h"

namespace sonde::launch {

Result<std::string> ReadFile(const std::string& path, size_t most_mib) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return SystemError("open " + path);
  std::string text;
  while (text.size() <= most_mib << 20) {
    char buffer[4096];
    const ssize_t got = ::read(fd.get(), buffer, sizeof(buffer));
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError("read " + path);
    text.append(buffer, static_cast<size_t>(got));
  }
  return Status(Code::kLimit,
                "read " + path + ": longer than " + std::to_string(most_mib) + " MiB");
}

}  // namespace sonde::launch
