// The options by which commands choose among the archive's profiles: --since, --cmd and so on.
//
// Thread safety: one thread, main's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arguments.h"
#include "core/status.h"
#include "core/time.h"
#include "profiles/records/select.h"

namespace sonde::cli {

struct SelectionOptions {
  std::string since;
  std::string until;
  std::string command;
  std::string name;
  std::string node;
  std::string user;
  std::string account;
  std::string partition;
  std::string state;
  std::vector<std::string> tags;
};
// Adds the filters to `sub`.
void AddSelectionOptions(Arguments sub, SelectionOptions& options);
// The selection that the options make; kInvalid with what was expected.
Result<Selection> SelectionOf(const SelectionOptions& options, Nanos now);

// The values of --sort; kInvalid names them.
Result<SortBy> ParseSort(std::string_view text);

// A time: so long ago ("2d", "90m-ago"), local time ("2026-11-20", "2026-11-20 14:00"), "today",
// "yesterday", "now", or any form of OpenTSDB.
Result<Nanos> ParseMoment(std::string_view text, Nanos now);

// "NAME=VALUE" or "NAME", whose value is then empty.
Result<std::pair<std::string, std::string>> ParseUserTag(std::string_view text);

}  // namespace sonde::cli
