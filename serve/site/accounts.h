// The machine's accounts: who is behind a uid, a name, a group.
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
  // kNotFound if there is none.
  virtual Result<Account> ByName(const std::string& name) const = 0;
  virtual Result<Account> ByUid(uid_t uid) const = 0;
  // Also by a group that is the account's own. False for a group that there is not.
  virtual bool IsIn(const Account& account, const std::string& group) const = 0;

  // Those that the system's name service knows.
  static const Accounts& System();
};

}  // namespace sonde::site
