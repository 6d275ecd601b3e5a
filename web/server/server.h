// The HTTP server: of the head, beside a running step, and of `sonde serve`.
//
// It serves HTTP/1.1 with Boost.Beast on its own threads, so it delays no tick; without a request
// no thread wakes up. Every request needs the token (web/server/auth.h). A client's cost is
// bounded: bytes of a header and a body, seconds for sending them and for reading the answer,
// connections, and the bytes of all answers under way. When all connections are taken, a connection
// that never showed the token is closed, else the one that has been idle longest.
//
// Thread safety: Start and the destructor from one thread; the const methods from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/status.h"
#include "core/text/settings.h"
#include "core/time.h"
#include "web/source/data_source.h"

namespace sonde::web {

class Server {
 public:
  struct Limits {
    size_t header_bytes = 8192;
    size_t body_bytes = 1u << 20;
    size_t connections = 128;
    size_t feeds = 32;                      // connections that receive live events
    size_t answer_bytes = 256u << 20;       // of all answers on their way; one may be larger
    size_t write_rate = 64u << 10;          // bytes per second that a reader must take, besides
    Nanos write_timeout = 20 * kSecond;     // the time that each answer has
    Nanos read_timeout = 30 * kSecond;      // for a request; also how long it may be idle
    Nanos stranger_timeout = 10 * kSecond;  // until the first request with the token
    Nanos reply_timeout = 60 * kSecond;     // for the data source to answer
    Nanos heartbeat = 15 * kSecond;         // of live events, when there are none
    Nanos stop_timeout = 2 * kSecond;       // for answers under way when the server ends
  };
  struct Options {
    bool listen = true;                 // false: connections come through Adopt
    std::string address = "127.0.0.1";  // a numeric address
    uint16_t port = 0;                  // 0: any free one
    bool port_if_taken_any = true;
    PortRange other_ports{0, 0};  // what any one is taken of; {0, 0}: all
    std::string token;            // must not be empty
    int threads = 2;
    int niceness = 0;  // added to the process's niceness for threads: where a loop must not wait
    bool nan_null = false;  // OpenTSDB's answers have null for NaN and infinity, not texts
    std::string cors;       // origins whose pages may ask (web/server/cors.h); "": none
    const Clock* clock = &Clock::System();  // what "now" is in requests
    Limits limits;
  };

  // Listens and returns; the source must answer from now on. kUnavailable if the port is taken.
  static Result<std::unique_ptr<Server>> Start(const Options& options,
                                               std::shared_ptr<const DataSource> source);
  // Closes idle connections, lets answers under way end within the bound, and joins the threads.
  // Callbacks of queries that still run do nothing.
  ~Server();

  uint16_t port() const;
  // Adopts a stream socket that another program has accepted, and the bytes read from it.
  void Adopt(int fd, std::string begun);
  // Number of open connections.
  size_t connections() const;
  // Bytes of the answers under way.
  size_t held_bytes() const;

 private:
  struct Core;
  explicit Server(std::unique_ptr<Core> core);
  const std::unique_ptr<Core> core_;
};

}  // namespace sonde::web
