// The machine's accounts: whose a uid or a name is, and who is in a group.
//
// Thread safety: const methods from any thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "core/status.h"

namespace sonde::site {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string home;
};

class Accounts {
 public:
  virtual ~Accounts() = default;
  // kNotFound if there is no such account.
  virtual Result<Account> ByName(const std::string& name) const = 0;
  virtual Result<Account> ByUid(uid_t uid) const = 0;
  // True also for the account's own group. False for a group that does not exist.
  virtual bool IsIn(const Account& account, const std::string& group) const = 0;

  // The accounts that the system's name service knows.
  static const Accounts& System();
};

}  // namespace sonde::site
