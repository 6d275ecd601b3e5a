#include "launcher/site/system_accounts.h"

#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace sonde::launch {
namespace {

constexpr size_t kMostMembers = 4 << 20;  // bytes of a group's entry, which names its members

// Calls look_up(entry, buffer, size, found), one of the C library's, with buffers large enough.
// Gives its error; `found` is null if there is no such entry.
template <typename Entry, typename LookUp>
int Find(Entry& entry, std::vector<char>& buffer, Entry*& found, const LookUp& look_up) {
  buffer.resize(4096);
  for (;;) {
    found = nullptr;
    const int error = look_up(&entry, buffer.data(), buffer.size(), &found);
    if (error == EINTR) continue;
    if (error != ERANGE || buffer.size() >= kMostMembers) return error;
    buffer.resize(4 * buffer.size());
  }
}

// What the manual names as ways to say that there is no such entry.
bool IsMissing(int error) {
  return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

bool HasStar(std::string_view pattern) { return pattern.find('*') != std::string_view::npos; }

}  // namespace

Truth SystemAccounts::IsUser(uint32_t uid, std::string_view pattern) {
  if (uid_ != uid) {
    if (unreachable_) return Truth::kUnknown;
    passwd entry{};
    passwd* found = nullptr;
    std::vector<char> buffer;
    const int error =
        Find(entry, buffer, found, [&](auto... to) { return ::getpwuid_r(uid, to...); });
    unreachable_ = found == nullptr && !IsMissing(error);
    if (unreachable_) return Truth::kUnknown;
    uid_ = uid;
    name_ = found == nullptr ? "" : found->pw_name;
  }
  if (name_.empty()) return Truth::kUnknown;
  return MatchesPattern(pattern, name_) ? Truth::kYes : Truth::kNo;
}

Truth SystemAccounts::IsGroup(std::span<const uint32_t> gids, std::string_view pattern) {
  if (!std::equal(gids.begin(), gids.end(), gids_.begin(), gids_.end())) {
    groups_.clear();
    gids_.assign(gids.begin(), gids.end());
  }
  const auto known = groups_.find(pattern);
  if (known != groups_.end()) return known->second;
  if (unreachable_) return Truth::kUnknown;
  const Truth truth = LookUpGroup(gids, pattern);
  unreachable_ = truth == Truth::kUnknown;
  if (!unreachable_) groups_.emplace(pattern, truth);
  return truth;
}

// One group is looked up by its name; for a pattern each group of the user is.
Truth SystemAccounts::LookUpGroup(std::span<const uint32_t> gids, std::string_view pattern) {
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer;
  if (!HasStar(pattern)) {
    const std::string name(pattern);
    const int error =
        Find(entry, buffer, found, [&](auto... to) { return ::getgrnam_r(name.c_str(), to...); });
    if (found == nullptr) return IsMissing(error) ? Truth::kNo : Truth::kUnknown;
    const bool among = std::find(gids.begin(), gids.end(), found->gr_gid) != gids.end();
    return among ? Truth::kYes : Truth::kNo;
  }
  for (const uint32_t gid : gids) {
    const int error =
        Find(entry, buffer, found, [&](auto... to) { return ::getgrgid_r(gid, to...); });
    if (found == nullptr) {
      if (!IsMissing(error)) return Truth::kUnknown;
    } else if (MatchesPattern(pattern, found->gr_name)) {
      return Truth::kYes;
    }
  }
  return Truth::kNo;
}

}  // namespace sonde::launch
