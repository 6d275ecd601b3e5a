// A selection as people write it: the filters of `sonde ls` and of /api/v1/steps, which have the
// same words, and what they mean.
//
// Thread safety: values and functions without state.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "profiles/select/selection.h"

namespace sonde {

// "" and none: any.
struct SelectionWords {
  std::string search;  // words with blanks between
  std::string since;
  std::string until;
  std::string command;
  std::string name;
  std::string node;
  std::string user;
  std::string account;
  std::string partition;
  std::string state;
  std::string level;
  std::vector<std::string> tags;  // NAME or NAME=VALUE
};

// How the place where they were written reads a time, and what stands there before the name of a
// filter in a message: "--" or "parameter ".
struct SelectionForm {
  std::function<Result<Nanos>(std::string_view text, Nanos now)> time;
  std::string_view prefix;
};

// The selection without order and limit; kInvalid with what was expected.
Result<Selection> SelectionOf(const SelectionWords& words, Nanos now, const SelectionForm& form);

// Of "start", "time" and so on; kInvalid names them all, after `prefix`.
Result<SortBy> ParseSort(std::string_view text, std::string_view prefix);

// "NAME=VALUE" or "NAME", whose value is then empty.
Result<std::pair<std::string, std::string>> ParseUserTag(std::string_view text);

}  // namespace sonde
