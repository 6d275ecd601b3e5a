#include "serve/site/accounts.h"

#include <fmt/core.h>
#include <grp.h>
#include <pwd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace sonde::site {
namespace {

constexpr size_t kFirstRoom = 4096;
constexpr size_t kMostRoom = 1u << 20;

// Calls a function that needs a buffer for texts, with larger ones until one is enough.
template <typename Entry, typename Call>
int WithRoom(std::vector<char>& room, Entry& entry, Entry*& found, const Call& call) {
  for (size_t size = kFirstRoom;; size *= 2) {
    room.resize(size);
    const int error = call(&entry, room.data(), room.size(), &found);
    if (error != ERANGE || size >= kMostRoom) return error;
  }
}

Result<Account> ToAccount(int error, const passwd* found, const std::string& what) {
  if (found == nullptr && (error == 0 || error == ENOENT || error == ESRCH)) {
    return Status(Code::kNotFound, "there is no account " + what);
  }
  if (found == nullptr) return SystemError("look up the account " + what, error);
  return Account{found->pw_name, found->pw_uid, found->pw_gid, found->pw_dir};
}

class SystemAccounts final : public Accounts {
 public:
  Result<Account> ByName(const std::string& name) const override {
    std::vector<char> room;
    passwd entry{};
    passwd* found = nullptr;
    const int error = WithRoom(room, entry, found,
                               [&](auto... rest) { return getpwnam_r(name.c_str(), rest...); });
    return ToAccount(error, found, name);
  }
  Result<Account> ByUid(uid_t uid) const override {
    std::vector<char> room;
    passwd entry{};
    passwd* found = nullptr;
    const int error =
        WithRoom(room, entry, found, [&](auto... rest) { return getpwuid_r(uid, rest...); });
    return ToAccount(error, found, fmt::format("of uid {}", uid));
  }
  bool IsIn(const Account& account, const std::string& group) const override {
    std::vector<char> room;
    ::group entry{};
    ::group* found = nullptr;
    const int error = WithRoom(room, entry, found,
                               [&](auto... rest) { return getgrnam_r(group.c_str(), rest...); });
    if (error != 0 || found == nullptr) return false;
    int count = 64;
    std::vector<gid_t> groups(static_cast<size_t>(count));
    if (getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) {
      groups.resize(static_cast<size_t>(count));
      if (getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) return false;
    }
    groups.resize(static_cast<size_t>(count));
    return std::find(groups.begin(), groups.end(), found->gr_gid) != groups.end();
  }
};

}  // namespace

const Accounts& Accounts::System() {
  static const SystemAccounts accounts;
  return accounts;
}

}  // namespace sonde::site
