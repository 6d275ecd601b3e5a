#include "profiles/archive/keeper_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "core/descriptor_message.h"

namespace sonde::keeper {
namespace {

// Takes a number from the front of `text`, with the blank behind it if there is one.
bool TakeNumber(std::string_view& text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty()) return true;
  if (text.front() != ' ') return false;
  text.remove_prefix(1);
  return true;
}

Status NoAnswer() {
  return {Code::kCorrupt,
          "ask who keeps the archive: expected \"behind WORK\", \"at DONE TOTAL\", \"ok N\" or "
          "\"error WHY\""};
}

}  // namespace

// Paths of sockets must be short and those of archives may be long: a path through the directory's
// descriptor is always short enough.
Result<sockaddr_un> AddressOf(const std::string& root, UniqueFd& directory) {
  directory = UniqueFd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0) return SystemError("open " + root);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path =
      "/proc/self/fd/" + std::to_string(directory.get()) + "/" + std::string(kSocketName);
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  return address;
}

UniqueFd MakeSocket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }

void SetPatience(int fd, Nanos patience) {
  timeval time{};
  time.tv_sec = static_cast<time_t>(patience / kSecond);
  time.tv_usec = static_cast<suseconds_t>(patience % kSecond / 1000);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
}

bool IsOurs(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == ::geteuid() || peer.uid == 0);
}

bool SendAll(int to, std::string_view text, int fd) {
  std::span<const int> fds(&fd, fd >= 0 ? 1 : 0);
  while (!text.empty()) {
    const auto sent = SendWithDescriptors(to, text, fds, Patience::kAsTheSocket);
    if (!sent.ok() || *sent == 0) return false;
    fds = {};
    text.remove_prefix(*sent);
  }
  return true;
}

bool LineReader::Receive() {
  char bytes[4096];
  auto message = ReceiveWithDescriptors(from_, bytes, files_ - std::min(files_, got_.size()),
                                        Patience::kAsTheSocket);
  if (!message.ok()) return false;
  for (UniqueFd& fd : message->fds) got_.push_back(std::move(fd));
  buffer_.append(bytes, message->size);
  return true;
}

std::string LineReader::Next(size_t limit) {
  size_t looked = 0;
  size_t end = std::string::npos;
  while ((end = buffer_.find('\n', looked)) == std::string::npos) {
    looked = buffer_.size();
    if (looked >= limit || !Receive()) break;
  }
  const size_t size = std::min(limit, end == std::string::npos ? buffer_.size() : end + 1);
  std::string line = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return line;
}

bool IsWord(std::string_view text) {
  constexpr size_t kMost = 32;
  return !text.empty() && text.size() <= kMost &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
}

Result<AnswerLine> ParseAnswerLine(std::string_view line) {
  constexpr std::string_view kOk = "ok ";
  constexpr std::string_view kAt = "at ";
  constexpr std::string_view kError = "error ";
  if (!line.ends_with('\n')) {
    if (!line.empty()) return NoAnswer();
    return Status(Code::kUnavailable,
                  "who keeps the archive has ended, or does not answer in time; what it was asked "
                  "for may be done or not");
  }
  line.remove_suffix(1);
  if (line.starts_with(kError)) {
    return Status(Code::kIo, std::string(line.substr(kError.size())));
  }
  AnswerLine out;
  if (line.starts_with(kBehind)) {
    out.behind = line.substr(kBehind.size());
    return IsWord(out.behind) ? Result<AnswerLine>(std::move(out)) : NoAnswer();
  }
  out.last = line.starts_with(kOk);
  if (!out.last && !line.starts_with(kAt)) return NoAnswer();
  line.remove_prefix(kOk.size());
  if (!TakeNumber(line, out.count)) return NoAnswer();
  if (out.last) {
    out.more = line;
    return out;
  }
  if (!TakeNumber(line, out.total) || !line.empty()) return NoAnswer();
  return out;
}

}  // namespace sonde::keeper
