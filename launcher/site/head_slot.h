// How many steps are watched from one host at a time, for a site that bounds it (max_heads).
//
// Each srun that watches a step holds one of the host's slots, which are abstract names of Unix
// sockets: they need no directory that all users may write, and are free when their process ends,
// however it ends.
//
// Thread safety: a function without state.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/status.h"
#include "core/unique_fd.h"

namespace sonde::launch {

// Takes a free slot of `most`; it is held as long as the descriptor is open. kLimit: all are taken.
// `scope`: the path of sonde.conf; those of another file are counted apart.
Result<UniqueFd> TakeHeadSlot(uint32_t most, std::string_view scope);

}  // namespace sonde::launch
