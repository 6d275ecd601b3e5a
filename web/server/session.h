// One connection: reads a request, answers it, reads the next. web/server/server.h has the bounds.
//
// A coroutine on the connection's strand does all of it, and keeps the session alive until the
// connection ends.
//
// Thread safety: Start once; the rest from any thread.
#pragma once

#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "web/router.h"
#include "web/server/auth.h"
#include "web/server/cors.h"
#include "web/server/server.h"
#include "web/server/session_set.h"

namespace sonde::web {

// State that the sessions of one server share.
struct ServerState {
  ServerState(const Server::Options& options, std::shared_ptr<const DataSource> asked)
      : limits(options.limits),
        auth(options.token),
        cors(options.cors),
        source(std::move(asked)),
        context(*source, options.clock, nullptr, options.nan_null),
        sessions(options.limits.connections) {}

  const Server::Limits limits;
  const Auth auth;
  const Cors cors;
  const std::shared_ptr<const DataSource> source;
  Context context;  // of the source
  SessionSet sessions;
  std::atomic<size_t> held_bytes = 0;  // of answers under way
  std::atomic<size_t> feeds = 0;       // open ones
};

class Session {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // `server`: must live as long as `state` is used.
  static std::shared_ptr<Session> Make(ServerState& state, std::weak_ptr<void> server,
                                       Socket socket);
  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // `begun`: bytes that were read from it already.
  virtual void Start(std::string_view begun) = 0;
  virtual void Close() = 0;
  // Finishes the answer under way, then closes.
  virtual void Stop() = 0;
  // There may be new events for its feed.
  virtual void Wake() = 0;

  uint64_t id() const { return id_; }
  bool authenticated() const { return authenticated_; }
  bool idle() const { return phase_ == Phase::kIdle; }
  int64_t idle_since() const { return since_; }  // monotonic

 protected:
  enum class Phase : uint8_t { kIdle, kReading, kBusy, kFeeding, kLeaving };

  Session() = default;

  uint64_t id_ = 0;
  std::atomic<Phase> phase_ = Phase::kIdle;
  std::atomic<int64_t> since_ = 0;
  std::atomic<bool> authenticated_ = false;
};

}  // namespace sonde::web
