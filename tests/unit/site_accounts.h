// Accounts that a test makes up.
//
// Thread safety: that of Accounts.
#pragma once

#include <map>
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
  Result<Account> ByName(const std::string& name) const override {
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
};

}  // namespace sonde::site
