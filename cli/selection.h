// The options by which commands choose among the archive's profiles: --since, --cmd and so on.
//
// Thread safety: one thread, main's.
#pragma once

#include <string_view>

#include "cli/arguments.h"
#include "core/status.h"
#include "core/time.h"
#include "profiles/select/words.h"

namespace sonde::cli {

// Adds the filters to `sub`.
void AddSelectionOptions(Arguments sub, SelectionWords& words);
// The selection that the options make; kInvalid with what was expected.
Result<Selection> SelectionOf(const SelectionWords& words, Nanos now);

// A time: so long ago ("2d", "90m-ago"), local time ("2026-11-20", "2026-11-20 14:00"), "today",
// "yesterday", "now", or any form of OpenTSDB.
Result<Nanos> ParseMoment(std::string_view text, Nanos now);

}  // namespace sonde::cli
