// Proof of the step key: HMAC-SHA256, challenge and response, both ways.
//
// The key itself never travels. Each side sends a fresh nonce and proves the key over both nonces
// and, for the side that registers, over what it registers; the role in the text keeps one side's
// proof from being played back as the other's.
//
// Thread safety: functions without state.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "daemon/launch_message.h"

namespace sonde::tree {

inline constexpr size_t kNonceSize = 32;
inline constexpr size_t kProofSize = 32;

// kNonceSize random bytes.
std::string MakeNonce();
// The same, but for the last 8, which say which version of the protocol its maker speaks.
std::string MakeMarkedNonce(uint32_t version);
// What they say; 0: nothing, as those of version 6.
uint32_t MarkedVersion(std::string_view nonce);
// HMAC-SHA256(key, role | 0 | first | second | 0 | body).
std::string Prove(const StepKey& key, std::string_view role, std::string_view first,
                  std::string_view second, std::string_view body);
// In constant time.
bool SameBytes(std::string_view a, std::string_view b);
// The bearer token of HTTP: hexadecimal HMAC-SHA256(key, "http token"), first 32 digits.
std::string HttpToken(const StepKey& key);

}  // namespace sonde::tree
