// Proofs of the step key: HMAC-SHA256 over nonces and what else is to be believed, with a role in
// the text that keeps a proof from being played back as one of another kind. The key itself never
// travels.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "daemon/launch_message.h"

namespace sonde::tree {

inline constexpr size_t kNonceSize = 32;

// kNonceSize random bytes.
std::string MakeNonce();
// HMAC-SHA256(key, role | 0 | first | second | 0 | body).
std::string Prove(const StepKey& key, std::string_view role, std::string_view first,
                  std::string_view second, std::string_view body);
// In constant time.
bool SameBytes(std::string_view a, std::string_view b);
// The bearer token of HTTP: hexadecimal HMAC-SHA256(key, "http token"), first 32 digits.
std::string HttpToken(const StepKey& key);

}  // namespace sonde::tree
