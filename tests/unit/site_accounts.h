// Accounts that a test makes up.
//
// Thread safety: that of Accounts.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "serve/site/accounts.h"

namespace sonde::site {

class MadeUpAccounts final : public Accounts {
 public:
  void Add(const std::string& name, uid_t uid, const std::set<std::string>& groups = {}) {
    accounts_[name] = {name, uid, 100, "/home/" + name};
    groups_[name] = groups;
  }
  // Whoever looks for that name waits until it is another one, as with a name service that hangs.
  void HangAt(const std::string& name) {
    const std::lock_guard lock(mutex_);
    hangs_ = name;
    changed_.notify_all();
  }
  Result<Account> ByName(const std::string& name) const override {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return hangs_ != name; });
    }
    const auto at = accounts_.find(name);
    if (at == accounts_.end()) return Status(Code::kNotFound, "there is no account " + name);
    return at->second;
  }
  Result<Account> ByUid(uid_t uid) const override {
    for (const auto& [name, account] : accounts_) {
      if (account.uid == uid) return account;
    }
    return Status(Code::kNotFound, "there is no such account");
  }
  bool IsIn(const Account& account, const std::string& group) const override {
    return groups_.at(account.name).contains(group);
  }

 private:
  std::map<std::string, Account> accounts_;
  std::map<std::string, std::set<std::string>> groups_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string hangs_;
};

}  // namespace sonde::site
