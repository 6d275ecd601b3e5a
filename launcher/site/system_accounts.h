// Names of users and groups as the system knows them, for the site's rules.
//
// A name that cannot be looked up now, as the service of names does not answer, is neither right
// nor wrong.
//
// Thread safety: none; it keeps the last user's name.
#pragma once

#include <optional>
#include <string>

#include "core/text/site_rules.h"

namespace sonde::launch {

class SystemAccounts : public Accounts {
 public:
  Truth IsUser(uint32_t uid, std::string_view pattern) override;
  Truth IsGroup(std::span<const uint32_t> gids, std::string_view pattern) override;

 private:
  uint32_t uid_ = 0;
  std::optional<std::string> name_;  // of uid_
};

}  // namespace sonde::launch
