#include "cli/join/report.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>

namespace sonde::join {
namespace {

constexpr char kVariable[] = "SONDE_JOIN_REPORT";
constexpr size_t kMaxLine = 1024;

}  // namespace

Report::Report() {
  const char* text = std::getenv(kVariable);
  if (text == nullptr) return;
  const std::string_view number = text;
  std::from_chars(number.data(), number.data() + number.size(), fd_);
  unsetenv(kVariable);
  if (fd_ < 0 || fcntl(fd_, F_SETFD, FD_CLOEXEC) != 0) fd_ = -1;
  std::signal(SIGPIPE, SIG_IGN);
}

void Report::Up(std::string_view kind, const std::string& url) {
  Say(fmt::format("up {} {}", kind, url));
}

void Report::Down(std::string_view why) { Say(fmt::format("down {}", why)); }

// A reader that is gone, or does not read, misses it.
void Report::Say(std::string line) {
  if (fd_ < 0) return;
  line.resize(std::min(line.size(), kMaxLine));
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  if (write(fd_, line.data(), line.size()) < 0) fd_ = -1;
}

}  // namespace sonde::join
