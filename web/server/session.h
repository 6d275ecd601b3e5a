// One connection: reads a request, answers it, reads the next. web/server/server.h has the bounds.
//
// All its work runs on its strand. It is kept alive by the operation it waits for; where it waits
// for the data source, by its timer.
//
// Thread safety: Start once; Close, Stop, Wake and what it tells from any thread.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "web/gzip.h"
#include "web/router.h"
#include "web/server/auth.h"
#include "web/server/cors.h"
#include "web/server/server.h"
#include "web/server/session_set.h"
#include "web/server/wire.h"

namespace sonde::web {

// What the sessions of one server share.
struct ServerState {
  ServerState(const Server::Options& options, std::shared_ptr<const DataSource> source)
      : limits(options.limits),
        auth(options.token),
        cors(options.cors),
        context{std::move(source), &Clock::System(), nullptr, options.nan_null},
        sessions(options.limits.connections) {}

  const Server::Limits limits;
  const Auth auth;
  const Cors cors;
  Context context;
  SessionSet sessions;
  std::atomic<size_t> held_bytes = 0;  // of answers that are being sent
  std::atomic<size_t> feeds = 0;       // that are open
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // `server`: alive as long as `state` may be used.
  Session(ServerState& state, std::weak_ptr<void> server, Socket socket);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // `begun`: what has been read of it already.
  void Start(std::string_view begun);
  void Close();
  // What is being answered is answered, then it closes.
  void Stop();
  // There may be something new for its feed.
  void Wake();

  uint64_t id() const { return id_; }
  bool authenticated() const { return authenticated_; }
  bool idle() const { return phase_ == Phase::kIdle; }
  int64_t idle_since() const { return since_; }  // monotonic

 private:
  using ErrorCode = boost::system::error_code;
  using Timer = boost::asio::steady_timer;
  enum class Phase : uint8_t { kIdle, kReading, kBusy, kFeeding, kLeaving };

  // Reading.
  void NextRequest();
  void ReadHead();
  void ReadSome();
  void OnHead(size_t length);
  void OnRequestHead();
  void Continue();
  void ReadBody();
  void OnReadError(const ErrorCode& error);

  // Answering.
  void OnRequest();
  void OnReply(uint64_t number, Response response);
  void Refuse(Response response);
  void Send(Response response, bool keep_alive);
  void Prepare(Response& response, bool keep_alive);
  void Pack(Response& response);
  bool Hold(size_t bytes);
  void Release();
  void ExpectWrite(size_t bytes);
  void WriteHeader(std::function<void()> next);
  void SendPiece();
  void Write(std::string text, std::function<void()> next);
  void WriteEnd(std::function<void()> next);
  void Sent();

  // Feeding.
  void BeginFeed(std::shared_ptr<EventFeed> feed);
  void PullFeed();
  void OnFeed(std::string text, bool over);
  void AwaitFeed();
  void EndFeed();

  void Enter(Phase phase);
  void CloseNow();
  void Drain();
  void ReadAndForget();

  ServerState& state_;
  std::weak_ptr<void> server_;
  boost::beast::basic_stream<boost::asio::generic::stream_protocol> stream_;
  boost::beast::flat_buffer buffer_;
  Timer timer_;  // for the data source, or the next pull of a feed
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  Request request_;
  std::optional<WireResponse> message_;
  std::optional<boost::beast::http::response_serializer<boost::beast::http::string_body>>
      serializer_;
  std::function<bool(std::string&)> next_;  // the rest of an answer that is sent in pieces
  std::optional<Gzip> gzip_;                // of that
  std::shared_ptr<EventFeed> feed_;
  std::string chunk_;
  std::array<char, 4096> trash_;
  uint64_t id_ = 0;
  uint64_t request_number_ = 0;
  size_t held_ = 0;     // bytes
  size_t written_ = 0;  // of this answer
  std::chrono::steady_clock::time_point begun_;
  bool keep_alive_ = false;
  bool chunked_ = false;
  bool head_only_ = false;
  bool waiting_ = false;  // for the data source
  bool pulling_ = false;
  bool woken_ = false;
  bool beating_ = false;  // a comment is due, for whoever waits
  bool closed_ = false;
  bool stopping_ = false;
  std::atomic<Phase> phase_ = Phase::kIdle;
  std::atomic<int64_t> since_ = 0;
  std::atomic<bool> authenticated_ = false;
};

}  // namespace sonde::web
