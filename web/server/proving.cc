#include "web/server/proving.h"

#include <fmt/core.h>

#include <boost/beast/http/field.hpp>
#include <utility>

#include "web/http/proof.h"

namespace sonde::web {
namespace {

namespace http = boost::beast::http;

std::string_view View(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

Response Proving::Begin(std::string_view token, std::string address, const Request& request) {
  asker_nonce_.clear();
  if (address.empty()) {
    return ErrorResponse(400,
                         "a proof is about the IP address that was asked: this is no such "
                         "connection");
  }
  const auto nonce = ProofMember(request.authorization, "nonce");
  if (request.method != Method::kGet || !HasProof(request.authorization) || !nonce) {
    return ErrorResponse(400,
                         "expected a GET with the header 'Authorization: Sonde nonce=' and 64 "
                         "hexadecimal digits in lower case");
  }
  Result<std::string> own = NewNonce();
  if (!own.ok()) return ErrorResponse(own.status());
  asker_nonce_ = *nonce;
  head_nonce_ = *std::move(own);
  address_ = std::move(address);
  Response response;
  response.status = 204;
  response.headers.emplace_back(
      kProofHeader, HeadProofText(head_nonce_, HeadProof({std::string(token), asker_nonce_,
                                                          head_nonce_, address_})));
  return response;
}

Status Proving::Check(std::string_view token, const WireRequest& request) {
  const std::string_view authorization = View(request[http::field::authorization]);
  const std::string nonce = std::exchange(asker_nonce_, {});
  if (nonce.empty()) {
    return {Code::kPermission,
            fmt::format("a proof serves one request: ask {} on this connection first", kProofPath)};
  }
  const auto proof = ProofMember(authorization, "proof");
  const auto digest = ProofMember(authorization, "body");
  if (!proof || !digest) {
    return {Code::kPermission,
            "expected 'Authorization: Sonde proof=PROOF, body=DIGEST', each of 64 hexadecimal "
            "digits in lower case"};
  }
  const std::string expected =
      AskerProof({std::string(token), nonce, head_nonce_, address_},
                 {View(request.method_string()), View(request.target()), std::string(*digest)});
  if (!IsSameProof(*proof, expected)) return {Code::kPermission, "the proof is wrong"};
  digest_ = *digest;
  return {};
}

std::string AddressOf(const boost::asio::generic::stream_protocol::socket& socket) {
  boost::system::error_code error;
  const auto end = socket.local_endpoint(error);
  return error ? std::string() : AddressText(end.data(), end.size());
}

bool Proving::IsBody(std::string_view body) const {
  return digest_.empty() || DigestOf(body) == digest_;
}

}  // namespace sonde::web
