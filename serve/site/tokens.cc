#include "serve/site/tokens.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <nettle/hmac.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/unique_fd.h"
#include "serve/site/user_process.h"

namespace sonde::site {
namespace {

constexpr size_t kMinKey = 32;
constexpr size_t kMaxKey = 256;

Status WriteKey(const std::string& path, const std::string& key) {
  constexpr mode_t kOwnOnly = 0600;
  const UniqueFd fd(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnOnly));
  if (!fd) return SystemError("create " + path);
  // The tokens that are told from now on hold after a power failure as well.
  if (write(fd.get(), key.data(), key.size()) == static_cast<ssize_t>(key.size()) &&
      fsync(fd.get()) == 0) {
    return {};
  }
  const Status failed = SystemError("write " + path);
  unlink(path.c_str());
  return failed;
}

}  // namespace

Result<std::string> Tokens::KeyAt(const std::string& path) {
  const UniqueFd fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) {
    Result<std::string> key = RandomToken();
    if (key.ok()) SONDE_RETURN_IF_ERROR(WriteKey(path, *key));
    return key;
  }
  if (!fd) return SystemError("open " + path);
  struct stat info {};
  if (fstat(fd.get(), &info) != 0) return SystemError("look at " + path);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return Status(Code::kPermission,
                  fmt::format("{}: expected a file of this user's alone, mode 0600; remove it, and "
                              "another one is made",
                              path));
  }
  std::string key(kMaxKey, '\0');
  const ssize_t size = read(fd.get(), key.data(), key.size());
  if (size < 0) return SystemError("read " + path);
  key.resize(static_cast<size_t>(size));
  if (key.size() >= kMinKey) return key;
  return Status(Code::kInvalid, path + ": too short; remove it, and another one is made");
}

std::string Tokens::Of(const Account& account) const {
  const std::string text = fmt::format("sonde site {} {}", account.uid, account.name);
  hmac_sha256_ctx state;
  hmac_sha256_set_key(&state, key_.size(), reinterpret_cast<const uint8_t*>(key_.data()));
  hmac_sha256_update(&state, text.size(), reinterpret_cast<const uint8_t*>(text.data()));
  uint8_t digest[SHA256_DIGEST_SIZE];
  hmac_sha256_digest(&state, sizeof digest, digest);
  explicit_bzero(&state, sizeof state);
  std::string token;
  for (const uint8_t byte : digest) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace sonde::site
