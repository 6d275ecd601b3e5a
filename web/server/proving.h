// The head's side of web/http/proof.h, on one connection.
//
// Thread safety: one thread at a time.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <string>
#include <string_view>

#include "core/status.h"
#include "web/http/http.h"
#include "web/server/wire.h"

namespace sonde::web {

class Proving {
 public:
  // The answer to GET kProofPath on a connection that leads to `address` ("": to no IP address).
  Response Begin(std::string_view token, std::string address, const Request& request);
  // Whether the request on the wire, of which the body has not been read yet, proves the token.
  // Ends what was begun. After that the body has to be the one that was proven.
  Status Check(std::string_view token, const WireRequest& request);
  bool IsBody(std::string_view body) const;
  // Another request follows, which proves nothing yet.
  void Reset() { digest_.clear(); }

 private:
  std::string address_;
  std::string asker_nonce_;  // "" until it was begun
  std::string head_nonce_;
  std::string digest_;  // of the body that has to follow; "" of a request without proof
};

// The IP address to which the connection leads, of its own end; "" of another kind.
std::string AddressOf(const boost::asio::generic::stream_protocol::socket& socket);

}  // namespace sonde::web
