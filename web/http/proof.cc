#include "web/http/proof.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <nettle/base16.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace sonde::web {
namespace {

constexpr std::string_view kScheme = "Sonde ";
constexpr size_t kBytes = 32;
static_assert(kBytes == SHA256_DIGEST_SIZE);
using Bytes = std::array<uint8_t, kBytes>;

std::string Hex(const Bytes& bytes) {
  std::string text(BASE16_ENCODE_LENGTH(kBytes), '\0');
  base16_encode_update(text.data(), bytes.size(), bytes.data());
  return text;
}

const uint8_t* Octets(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

std::string Hmac(std::string_view key, std::initializer_list<std::string_view> parts) {
  hmac_sha256_ctx state;
  hmac_sha256_set_key(&state, key.size(), Octets(key));
  for (const std::string_view part : parts) {
    hmac_sha256_update(&state, part.size(), Octets(part));
    hmac_sha256_update(&state, 1, Octets("\n"));
  }
  Bytes bytes;
  hmac_sha256_digest(&state, bytes.size(), bytes.data());
  return Hex(bytes);
}

bool IsHex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

std::string V4Text(const in_addr& address, in_port_t port) {
  char text[INET_ADDRSTRLEN];
  if (inet_ntop(AF_INET, &address, text, sizeof text) == nullptr) return {};
  return fmt::format("{}:{}", text, ntohs(port));
}

}  // namespace

Result<std::string> NewNonce() {
  Bytes bytes;
  if (getentropy(bytes.data(), bytes.size()) != 0) return SystemError("make a nonce");
  return Hex(bytes);
}

std::string DigestOf(std::string_view body) {
  sha256_ctx state;
  sha256_init(&state);
  sha256_update(&state, body.size(), Octets(body));
  Bytes bytes;
  sha256_digest(&state, bytes.size(), bytes.data());
  return Hex(bytes);
}

std::string HeadProof(const ProofParts& parts) {
  return Hmac(parts.token, {"head", parts.asker_nonce, parts.head_nonce, parts.address});
}

std::string AskerProof(const ProofParts& parts, const ProvenRequest& request) {
  return Hmac(parts.token, {"asker", parts.asker_nonce, parts.head_nonce, parts.address,
                            request.method, request.target, request.digest});
}

bool IsSameProof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && memeql_sec(a.data(), b.data(), a.size()) != 0;
}

std::string AskerNonceText(std::string_view nonce) {
  return fmt::format("{}nonce={}", kScheme, nonce);
}

std::string AskerProofText(std::string_view proof, std::string_view digest) {
  return fmt::format("{}proof={}, body={}", kScheme, proof, digest);
}

std::string HeadProofText(std::string_view nonce, std::string_view proof) {
  return fmt::format("nonce={}, proof={}", nonce, proof);
}

bool HasProof(std::string_view authorization) { return authorization.starts_with(kScheme); }

std::optional<std::string_view> ProofMember(std::string_view header, std::string_view name) {
  if (HasProof(header)) header.remove_prefix(kScheme.size());
  while (!header.empty()) {
    const size_t end = std::min(header.find(", "), header.size());
    std::string_view member = header.substr(0, end);
    header.remove_prefix(std::min(end + 2, header.size()));
    if (!member.starts_with(name) || member.substr(name.size()).substr(0, 1) != "=") continue;
    member.remove_prefix(name.size() + 1);
    const bool whole =
        member.size() == 2 * kBytes && std::all_of(member.begin(), member.end(), IsHex);
    return whole ? std::optional(member) : std::nullopt;
  }
  return std::nullopt;
}

std::string AddressText(const sockaddr* address, size_t size) {
  if (size >= sizeof(sockaddr_in) && address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof v4);
    return V4Text(v4.sin_addr, v4.sin_port);
  }
  if (size < sizeof(sockaddr_in6) || address->sa_family != AF_INET6) return {};
  sockaddr_in6 v6;
  std::memcpy(&v6, address, sizeof v6);
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    in_addr v4;
    std::memcpy(&v4, v6.sin6_addr.s6_addr + 12, sizeof v4);
    return V4Text(v4, v6.sin6_port);
  }
  char text[INET6_ADDRSTRLEN];
  if (inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text) == nullptr) return {};
  return fmt::format("[{}]:{}", text, ntohs(v6.sin6_port));
}

}  // namespace sonde::web
