// The HTTP server: of the head, beside a running step, and of `sonde serve`.
//
// HTTP/1.1 over Boost.Beast on threads of its own, so that nothing here delays a tick; without a
// request none of them wakes up. Every request needs the token (web/auth.h). What a stranger can
// cost is bounded: bytes of a header and a body, seconds for sending them, connections. When all
// connections are taken, the oldest that never showed the token makes room.
//
// Thread safety: Start and the destructor from one thread; port() from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "core/time.h"
#include "web/data_source.h"

namespace sonde::web {

class Server {
 public:
  struct Limits {
    size_t header_bytes = 8192;
    size_t body_bytes = 1u << 20;
    size_t connections = 64;
    Nanos read_timeout = 30 * kSecond;   // for a request; also how long an idle connection is kept
    Nanos write_timeout = 60 * kSecond;  // for a response
    Nanos reply_timeout = 60 * kSecond;  // for the data source
  };
  struct Options {
    std::string address = "127.0.0.1";  // a numeric address
    uint16_t port = 4242;               // 0: any free one
    bool port_if_taken_any = true;
    std::string token;  // must not be empty
    int threads = 2;
    bool nan_null = false;  // OpenTSDB's answers have null for NaN, not the text "NaN"
    Limits limits;
  };

  // Listens and returns; the source must answer from now on. kUnavailable if the port is taken.
  static Result<std::unique_ptr<Server>> Start(const Options& options,
                                               std::shared_ptr<const DataSource> source);
  // Closes every connection and joins the threads. Callbacks of queries that still run do nothing.
  ~Server();

  uint16_t port() const;

 private:
  struct Core;
  explicit Server(std::shared_ptr<Core> core);
  std::shared_ptr<Core> core_;
};

}  // namespace sonde::web
