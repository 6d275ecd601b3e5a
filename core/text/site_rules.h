// What a site decides about the telemetry of steps, in sonde.conf: default_level, max_level,
// min_period and allow_events, for everybody or for the steps that a line in brackets names.
//
//   default_level = 1
//   max_level = 2
//   [partition = gpu*, bench]
//   max_level = 4
//   [user = alice, 1005; partition = debug]
//   min_period = 10ms
//
// A line in brackets is for the lines below it, up to the next one. All of its conditions must
// hold; a condition holds if one of its values does, in which '*' stands for any text. Among the
// lines of a key whose conditions hold, the last one counts.
//
// A condition that cannot be decided, as the step's account is not known, gives nobody more: a line
// that depends on it counts where it takes something away, and only there.
//
// Free of dependencies, as names.h is: the plugin enforces these lines, the daemon and the command
// check them.
//
// Thread safety: values and functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/options.h"
#include "core/text/settings.h"

namespace sonde {

enum class Truth : unsigned char { kNo, kUnknown, kYes };

// Whether `pattern` describes `text`; '*' stands for any text.
bool MatchesPattern(std::string_view pattern, std::string_view text);

// Where names of users and groups are looked up. Asked only if a line names some.
class Accounts {
 public:
  virtual ~Accounts() = default;
  virtual Truth IsUser(uint32_t uid, std::string_view pattern) = 0;
  // Whether one of the groups has such a name.
  virtual Truth IsGroup(std::span<const uint32_t> gids, std::string_view pattern) = 0;
};

// Whose step it is, and where it runs.
struct Applicant {
  uint32_t uid = 0;
  std::vector<uint32_t> gids;
  // Empty: not known.
  std::string account;
  std::string partition;
  std::string qos;
};

// What a step asks for. A value that is not given is left to the site.
struct Asked {
  std::optional<int> level;
  std::optional<int64_t> period;  // ns
  std::string events;             // names separated by commas; "": those of the level
};

// What it gets.
struct Granted {
  int level = 0;
  int64_t period = 0;  // ns
  std::string events;
  // A line for each value that was asked for and is not granted.
  std::vector<std::string> lowered;
};

class SiteRules {
 public:
  // Whether a line of sonde.conf is for Add: one in brackets and all below it, and these keys.
  bool Takes(const Setting& line) const;
  // What is wrong with the line; "" if nothing is. A wrong line does not count. The lines below a
  // wrong line in brackets count where they take something away: for whom they are meant is not
  // known.
  std::string Add(const Setting& line);

  // Whether some step may be watched that did not ask for it.
  bool WatchesUnasked() const;

  // Whether what a step gets depends on its account, partition or QOS, which are known only once it
  // has an allocation.
  bool DependOnAllocation() const;

  // `file` is the name of sonde.conf, for the texts.
  Granted Grant(const Asked& asked, const Applicant& applicant, Accounts& accounts,
                std::string_view file) const;

 private:
  enum class Key : unsigned char { kDefaultLevel, kLevelLimit, kPeriodLimit, kAllowEvents };
  enum class Of : unsigned char { kUser, kGroup, kAccount, kPartition, kQos };
  struct Condition {
    Of of = Of::kUser;
    std::vector<std::string> patterns;
  };
  struct Section {
    int line = 0;
    bool wrong = false;
    std::vector<Condition> conditions;
  };
  struct Rule {
    Key key = Key::kDefaultLevel;
    size_t section = 0;  // 0: everybody
    int line = 0;
    int64_t value = 0;                // a level or a period
    bool all = false;                 // allow_events = all
    std::vector<std::string> events;  // patterns
  };
  // What holds for one step.
  struct Limits;

  static std::optional<Key> FindKey(std::string_view name);
  static std::string ParseConditions(std::string_view text, Section& section);
  static std::string ParseValue(std::string_view text, Rule& rule);
  static bool Allows(const Rule& rule, std::string_view event);
  static Truth Holds(const Condition& condition, const Applicant& applicant, Accounts& accounts);
  static Truth Holds(const Section& section, const Applicant& applicant, Accounts& accounts);
  Limits LimitsOf(const Applicant& applicant, Accounts& accounts) const;
  static void LowerEvents(const Asked& asked, const Limits& limits, std::string_view file,
                          Granted& granted);

  std::vector<Section> sections_{1};
  std::vector<Rule> rules_;
};

}  // namespace sonde
