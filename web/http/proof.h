// Shows both ends of a connection that the other one knows a step's token, which is not sent.
//
// Who asks a head begins with a nonce and nothing else. The head answers with a nonce of its own
// and its proof. Only if that is right does the request follow, with the asker's proof:
//
//   GET /api/v1/proof    Authorization: Sonde nonce=A
//   204                  Sonde-Proof: nonce=B, proof=HMAC(token; "head", A, B, ADDRESS)
//   POST /alarms/add     Authorization: Sonde proof=HMAC(token; "asker", A, B, ADDRESS, METHOD,
//                        TARGET, DIGEST), body=DIGEST
//
// HMAC is HMAC-SHA-256 (RFC 2104), its key the token and its message the parts with a line feed
// after each; DIGEST is the body's SHA-256. Nonces, proofs and digests are 64 hexadecimal digits in
// lower case. Two nonces serve one request. ADDRESS is where the connection leads, each side's own
// view of it ("10.1.2.3:4242"): somebody who listens elsewhere and passes on what comes has another
// one on his connection to the head than the asker has on his.
//
// What follows is as clear to who reads on the way as HTTP is: this is about who gets the token.
//
// Thread safety: functions without state.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"

namespace sonde::web {

inline constexpr std::string_view kProofPath = "/api/v1/proof";
inline constexpr std::string_view kProofHeader = "Sonde-Proof";

struct ProofParts {
  std::string token;
  std::string asker_nonce;
  std::string head_nonce;
  std::string address;
};
// What the asker's proof is about as well.
struct ProvenRequest {
  std::string_view method;
  std::string_view target;
  std::string digest;  // of the body
};

Result<std::string> NewNonce();
std::string DigestOf(std::string_view body);
std::string HeadProof(const ProofParts& parts);
std::string AskerProof(const ProofParts& parts, const ProvenRequest& request);
// Takes as long for every proof of the right length.
bool IsSameProof(std::string_view a, std::string_view b);

// Values of the headers above.
std::string AskerNonceText(std::string_view nonce);
std::string AskerProofText(std::string_view proof, std::string_view digest);
std::string HeadProofText(std::string_view nonce, std::string_view proof);
// Whether an Authorization header has a nonce or a proof.
bool HasProof(std::string_view authorization);
// The 64 digits of a member of such a header, such as "nonce".
std::optional<std::string_view> ProofMember(std::string_view header, std::string_view name);

// "10.1.2.3:4242", "[2001:db8::1]:4242", IPv4 as such where IPv6 holds it; "" for what is no IP
// address.
std::string AddressText(const sockaddr* address, size_t size);

}  // namespace sonde::web
