// What a site decides in sonde.conf, as slurmstepd reads it, which is root: nobody gets more than
// is asked for, and a step whose account, partition and QOS are hidden gets no more than with any.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/text/options.h"
#include "core/text/site_rules.h"

namespace {

using namespace sonde;

class MadeUpAccounts : public Accounts {
 public:
  Truth IsUser(uint32_t, std::string_view pattern) override {
    return MatchesPattern(pattern, "alice") ? Truth::kYes : Truth::kUnknown;
  }
  Truth IsGroup(std::span<const uint32_t>, std::string_view pattern) override {
    return MatchesPattern(pattern, "staff") ? Truth::kYes : Truth::kNo;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  SiteRules rules;
  ForEachSetting(text, [&](const Setting& line) {
    if (rules.Takes(line)) (void)rules.Add(line);
    return true;
  });
  MadeUpAccounts accounts;
  const Asked asked{4, 20'000'000, "cycles,cycles:u,skx::X:Y,cache-misses"};
  const Applicant hidden{1001, {100, 200}, "", "", ""};
  const Granted least = rules.Grant(asked, hidden, accounts, "f");
  for (const char* name : {"physics", "debug", "high"}) {
    const Applicant known{1001, {100, 200}, name, name, name};
    const Granted granted = rules.Grant(asked, known, accounts, "f");
    if (granted.level < 0 || granted.level > 4 || granted.period < *asked.period) std::abort();
    if (granted.period > 3'600'000'000'000) std::abort();
    if (!granted.events.empty() && !ValidEventList(granted.events)) std::abort();
    if (least.level > granted.level || least.period < granted.period) std::abort();
    if (least.events.size() > granted.events.size()) std::abort();
    if (rules.Grant({0, {}, ""}, known, accounts, "f").level != 0) std::abort();
    const int unasked = rules.Grant({}, known, accounts, "f").level;
    if (unasked > 0 && !rules.WatchesUnasked()) std::abort();
    if (rules.Grant({}, hidden, accounts, "f").level > unasked) std::abort();
  }
  return 0;
}
