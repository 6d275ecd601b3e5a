#include "daemon/held_program.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <utility>

namespace sonde {
namespace {

// Above the descriptors that a child gets by number (launcher/launch.h).
constexpr int kAbove = 16;

// What the kernel puts behind the path of a file without a name.
constexpr std::string_view kDeleted = " (deleted)";

std::string OwnPath() {
  std::array<char, PATH_MAX> own{};  // links resolved
  const ssize_t size = readlink("/proc/self/exe", own.data(), own.size());
  std::string path(own.data(), size < 0 ? 0 : static_cast<size_t>(size));
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

}  // namespace

HeldProgram HeldProgram::Beside(std::string_view suffix) {
  HeldProgram program;
  program.held_ = program.path_ = OwnPath().append(suffix);
  const UniqueFd opened(open(program.path_.c_str(), O_PATH | O_CLOEXEC));
  program.fd_.Reset(fcntl(opened.get(), F_DUPFD_CLOEXEC, kAbove));
  if (program.fd_) program.held_ = "/proc/self/fd/" + std::to_string(program.fd_.get());
  return program;
}

HeldProgram HeldProgram::ByPath(std::string path) {
  HeldProgram program;
  program.held_ = program.path_ = std::move(path);
  return program;
}

}  // namespace sonde
