// Names of users and groups as the system knows them, for the site's rules.
//
// A name that cannot be looked up now, as the service of names does not answer, is neither right
// nor wrong. After one such answer nothing more is asked: each question may take as long.
//
// Thread safety: none; it keeps what it was told.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/site_rules.h"

namespace sonde::launch {

class SystemAccounts : public Accounts {
 public:
  Truth IsUser(uint32_t uid, std::string_view pattern) override;
  Truth IsGroup(std::span<const uint32_t> gids, std::string_view pattern) override;

 private:
  Truth LookUpGroup(std::span<const uint32_t> gids, std::string_view pattern);

  bool unreachable_ = false;
  std::optional<uint32_t> uid_;                       // that was looked up last
  std::string name_;                                  // of uid_; "": it has none
  std::map<std::string, Truth, std::less<>> groups_;  // by pattern, of gids_
  std::vector<uint32_t> gids_;
};

}  // namespace sonde::launch
