// Proofs of the step key: HMAC-SHA256 over what is to be believed, with a role in the text that
// keeps a proof from being played back as one of another kind. The key itself never travels.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/launch_message.h"

namespace sonde::tree {

// What a key is made of, a step's or one side's of a connection.
using RandomBytes = std::array<uint8_t, 32>;
static_assert(sizeof(RandomBytes) == sizeof(StepKey));
RandomBytes Random();
// HMAC-SHA256(key, role | 0 | text).
std::string Prove(const StepKey& key, std::string_view role, std::string_view text);
// In constant time.
bool SameBytes(std::string_view a, std::string_view b);
// The bearer token of HTTP: hexadecimal HMAC-SHA256(key, "http token"), first 32 digits.
std::string HttpToken(const StepKey& key);

}  // namespace sonde::tree
