// Finds runs in the archive that belong together, and reads them to be compared or modelled.
//
// Thread safety: functions without state.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "profiles/archive/archive.h"
#include "profiles/compare/compare.h"
#include "profiles/records/card.h"
#include "profiles/select/select.h"

namespace sonde {

using Entries = std::vector<ProfileEntry>;

// The newest run of a step that has ended, or the profile with that key.
Result<ProfileEntry> FindRun(const Archive& archive, const std::string& word);

// The entries of a list that have ended, are not in `groups` and are accepted by `wanted`: the
// first `most`. Reads on until there are that many.
Result<Entries> EndedOf(const Archive& archive, Selection selection,
                        const std::vector<Entries>& groups, size_t most,
                        const std::function<bool(const Card&)>& wanted);

// The newest runs whose command line or name has the text, and which ended in that state, if one is
// given; those in `groups` are left out. The indexes hold both texts.
Result<Entries> RunsOf(const Archive& archive, const std::string& text,
                       std::optional<EndState> state, const std::vector<Entries>& groups,
                       size_t most);

// Its profile and summary; its variation stays unknown.
Result<ComparedRun> LoadRun(const Archive& archive, const ProfileEntry& entry);

}  // namespace sonde
