#include "profiles/disk/claim.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/unique_fd.h"
#include "profiles/disk/archive_dir.h"

namespace sonde {
namespace {

constexpr size_t kMaxText = 4096;
constexpr int kClaimTries = 8;  // others may claim and give back meanwhile

// Three lines: the host, its boot, and what nobody else writes.
std::string TextOf(const Claim::Host& host, uint64_t nonce) {
  return fmt::format("{}\n{}\n{:016x}\n", host.name, host.boot, nonce);
}

std::string_view LineOf(std::string_view text, int line) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// A file of its own, to be put in another's place or to learn the file system's time.
Result<Nanos> WriteNew(const std::string& path, std::string_view text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return ArchiveError("make " + path, errno);
  struct stat info;
  const ssize_t n = ::write(fd.get(), text.data(), text.size());
  const bool written = n == static_cast<ssize_t>(text.size()) && ::fsync(fd.get()) == 0 &&
                       ::fstat(fd.get(), &info) == 0;
  if (written) return ChangeOf(info);
  const int error = n >= 0 && n < static_cast<ssize_t>(text.size()) ? ENOSPC : errno;
  ::unlink(path.c_str());
  return ArchiveError("write " + path, error);
}

bool IsGone(const Status& status) { return status.code() == Code::kNotFound; }

// On file systems without hard links others see the text a moment after the file: until then they
// know the claim by its age alone.
Status MakeWithoutLink(const std::string& path, std::string_view text, int& error) {
  struct stat info;
  error = EEXIST;
  if (::lstat(path.c_str(), &info) == 0) return {};
  const auto made = WriteNew(path, text);
  if (made.ok()) error = 0;
  return made.ok() || ::lstat(path.c_str(), &info) == 0 ? Status() : made.status();
}

// Makes the claim of the file `mine`. `error`: 0, EEXIST if there is a claim, or another.
Status MakeClaim(const std::string& path, const std::string& mine, std::string_view text,
                 int& error) {
  error = ::link(mine.c_str(), path.c_str()) == 0 ? 0 : errno;
  // If only the answer got lost on the way, there are two names.
  struct stat info {};
  if (error != 0 && ::stat(mine.c_str(), &info) == 0 && info.st_nlink == 2) error = 0;
  const bool no_links = error == EPERM || error == EOPNOTSUPP || error == ENOSYS;
  return no_links ? MakeWithoutLink(path, text, error) : Status();
}

// Whether the file holds that text. Opening it anew has a network file system look at the server.
Result<bool> Holds(const std::string& path, std::string_view text) {
  const auto now = ReadSmallFile(path, kMaxText);
  if (now.ok()) return *now == text;
  // Too long a text was taken for none.
  if (now.status().code() == Code::kLimit) return text.empty();
  if (IsGone(now.status())) return false;
  return now.status();
}

// Removes the file if it holds that text; another one stays or comes back. `aside`: a name of ours.
Status Remove(const std::string& path, std::string_view text, const std::string& aside) {
  if (::rename(path.c_str(), aside.c_str()) != 0) {
    return errno == ENOENT ? Status() : ArchiveError("take " + path, errno);
  }
  const auto expected = Holds(aside, text);
  // If somebody has claimed meanwhile, the owner of the other file sees that it lost.
  if (!expected.ok() || !*expected) static_cast<void>(::link(aside.c_str(), path.c_str()));
  ::unlink(aside.c_str());
  return expected.ok() ? Status() : expected.status();
}

Status HeldBy(const std::string& path, std::string_view text) {
  return {Code::kBusy, fmt::format("{} is held by host {}, or was until that died less than 10 "
                                   "minutes ago",
                                   path, LineOf(text, 0).substr(0, 256))};
}

// Of those who find a stale claim one removes it: else a slow one would remove the claim of who was
// faster. What a killed one leaves counts for as long as a claim.
Status RemoveStale(const std::string& path, std::string_view text, const std::string& aside) {
  const std::string turn = fmt::format("{}.{}.gone", path, LineOf(text, 2).substr(0, 16));
  const auto now = WriteNew(turn, "");
  if (!now.ok()) {
    struct stat info;
    if (::stat(turn.c_str(), &info) != 0) return now.status();
    const auto time = FileSystemTime(path.substr(0, path.rfind('/')));
    if (time.ok() && std::abs(*time - ChangeOf(info)) >= Claim::kSilence) ::unlink(turn.c_str());
    return HeldBy(path, text);
  }
  const auto there = Holds(path, text);
  const Status removed = there.ok() && *there ? Remove(path, text, aside) : there.status();
  ::unlink(turn.c_str());
  return removed;
}

// ok: whoever holds the claim is dead, or counts as that. kNotFound: it was given back meanwhile.
Status IsFree(const std::string& path, std::string_view text, const Claim::Host& host, Nanos now) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return SystemError("look at " + path);
  // A process of this host that lives would have the lock.
  if (LineOf(text, 1) == host.boot) return {};
  // If the clock was set back since, the time is no sign of life.
  if (std::abs(now - ChangeOf(info)) >= Claim::kSilence) return {};
  return HeldBy(path, text);
}

}  // namespace

Claim::Host Claim::Host::Own() {
  constexpr size_t kBootId = 64;
  const UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::string boot(kBootId, '\0');
  const ssize_t n = fd.get() < 0 ? 0 : ::read(fd.get(), boot.data(), boot.size());
  boot.resize(n > 0 ? static_cast<size_t>(n) : 0);
  boot = boot.substr(0, boot.find('\n'));
  // Without one the host's name has to do.
  const std::string name = HostName();
  return {name, boot.empty() ? name : boot};
}

Result<std::shared_ptr<Claim>> Claim::Take(const std::string& path, const Host& host) {
  const auto nonce = RandomNumber();
  if (!nonce.ok()) return nonce.status();
  // Two views of a file system on one host may not see each other's locks.
  struct stat view {};
  const std::string directory = path.substr(0, path.rfind('/'));
  if (::stat(directory.c_str(), &view) != 0) return SystemError("look at " + directory);
  const Host seen{host.name, fmt::format("{}/{:x}", host.boot, view.st_dev)};
  const std::string text = TextOf(seen, *nonce);
  const std::string mine = fmt::format("{}.{:016x}", path, *nonce);
  const auto now = WriteNew(mine, text);
  if (!now.ok()) return now.status();
  Status status;
  for (int tries = 0; tries < kClaimTries; ++tries) {
    int error = 0;
    status = MakeClaim(path, mine, text, error);
    if (!status.ok()) break;
    if (error == 0) {
      ::unlink(mine.c_str());
      std::shared_ptr<Claim> claim(new Claim(path, text));
      claim->touched_ = Clock::System().Monotonic();
      return claim;
    }
    status = ArchiveError("make " + path, error);
    if (error != EEXIST) break;
    const auto there = ReadSmallFile(path, kMaxText);
    if (!there.ok() && IsGone(there.status())) {
      status = HeldBy(path, "");
      continue;
    }
    // What is no text of a claim tells nothing of a holder but its age.
    const std::string holder = there.ok() ? *there : "";
    status = there.ok() || there.status().code() == Code::kLimit ? IsFree(path, holder, seen, *now)
                                                                 : there.status();
    if (status.ok()) status = RemoveStale(path, holder, mine + ".old");
    if (!status.ok() && !IsGone(status)) break;
    status = HeldBy(path, holder);
  }
  ::unlink(mine.c_str());
  return status;
}

Result<bool> Claim::Look() {
  const UniqueFd fd = OpenRegular(path_, O_RDONLY);
  if (fd.get() < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EINVAL)) return false;
  if (fd.get() < 0) return SystemError("look at " + path_);
  const auto text = ReadSmallFile(fd.get(), path_, kMaxText);
  if (!text.ok() && text.status().code() != Code::kLimit) return text.status();
  if (!text.ok() || *text != text_) return false;
  const Nanos now = Clock::System().Monotonic();
  if (now - touched_ >= kTouch) {
    touched_ = now;
    static_cast<void>(::futimens(fd.get(), nullptr));
  }
  // Since the file was opened, another host may have put its own there.
  return IsAt(fd.get(), path_);
}

Claim::~Claim() {
  if (!Check().ok()) return;
  static_cast<void>(Remove(path_, text_, fmt::format("{}.{}.old", path_, LineOf(text_, 2))));
}

Status Claim::Check() {
  const auto lost = [&] {
    return Status(Code::kBusy, path_ +
                                   " was taken by another host: this process did not touch it "
                                   "for 10 minutes");
  };
  if (lost_) return lost();
  const auto ours = Look();
  if (!ours.ok()) return ours.status();
  if (*ours) return {};
  lost_ = true;
  return lost();
}

}  // namespace sonde
