#include "web/server/session.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "web/http/gzip.h"
#include "web/http/negotiation.h"
#include "web/http/proof.h"
#include "web/server/packing.h"
#include "web/server/proving.h"
#include "web/server/refusals.h"
#include "web/server/request_head.h"
#include "web/server/share.h"
#include "web/server/wire.h"

namespace sonde::web {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

using ErrorCode = boost::system::error_code;
using SystemFailure = boost::system::system_error;
template <typename T>
using Awaitable = asio::awaitable<T>;

// A failure is thrown, and ends the connection; with the other the caller looks at the failure.
constexpr auto kOrThrow = asio::use_awaitable;
constexpr auto kOrError = asio::as_tuple(asio::use_awaitable);

constexpr size_t kReadAtOnce = 4096;
constexpr size_t kBodyBuffer = 65536;

std::chrono::nanoseconds ToChrono(Nanos duration) { return std::chrono::nanoseconds(duration); }

std::string_view View(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

bool MayBeginRequest(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// The peer left, or was too slow: nobody can be told.
bool IsGone(const ErrorCode& error) {
  return error == asio::error::eof || error == http::error::end_of_stream ||
         error == http::error::partial_message || error == beast::error::timeout ||
         error.category() == boost::system::system_category() ||
         error.category() == asio::error::get_misc_category();
}

// Its coroutines throw SystemFailure when the connection ends, which ends Run.
class HttpSession final : public Session, public std::enable_shared_from_this<HttpSession> {
 public:
  HttpSession(ServerState& state, std::weak_ptr<void> server, Socket socket)
      : state_(state),
        server_(std::move(server)),
        stream_(std::move(socket)),
        buffer_(state.limits.header_bytes + kBodyBuffer),
        timer_(stream_.get_executor()) {}
  ~HttpSession() override {
    if (id_ != 0) state_.sessions.Remove(id_);
  }

  void Start(std::string_view begun) override;
  void Close() override;
  void Stop() override;
  void Wake() override;

 private:
  Awaitable<void> Run();

  // Each gives the answer to a refused request, or nothing.
  Awaitable<std::optional<Response>> ReadRequest();
  std::optional<Response> TakeHead(size_t length);
  Awaitable<std::optional<Response>> ReadBody();
  Awaitable<void> ReadSome();

  Awaitable<void> Answer();
  Awaitable<Response> Ask();
  Awaitable<void> Send(Response response, bool keep_alive);
  Awaitable<void> SendPieces(const Response& response, Gzip* gzip);
  Awaitable<void> Feed(EventFeed& feed);
  Awaitable<void> Pull(EventFeed& feed);
  Awaitable<void> Write(const std::string& text);
  void BeginWrite() {
    begun_ = std::chrono::steady_clock::now();
    written_ = 0;
  }
  void ExpectWrite(size_t bytes);
  Awaitable<void> Drain();

  // Waits until `come` is true, at most so long; gives whether it is. Tell wakes the wait.
  template <typename Condition>
  Awaitable<bool> Wait(Nanos limit, Condition come);
  void Tell() { timer_.cancel(); }
  void Enter(Phase phase);
  void CloseNow();

  struct Pulled {
    std::string text;
    bool over;
  };

  ServerState& state_;
  std::weak_ptr<void> server_;
  beast::basic_stream<asio::generic::stream_protocol> stream_;
  beast::flat_buffer buffer_;
  asio::steady_timer timer_;  // of Wait
  std::optional<http::request_parser<http::string_body>> parser_;
  Request request_;
  Proving proving_;
  uint64_t request_number_ = 0;
  std::optional<Response> reply_;  // of the data source, to the request of that number
  std::optional<Pulled> pulled_;   // of the feed
  std::chrono::steady_clock::time_point begun_;
  size_t written_ = 0;       // since then
  bool keep_alive_ = false;  // another request may follow
  bool chunked_ = false;     // of the answer being written
  bool woken_ = false;
  bool closed_ = false;
  bool stopping_ = false;
};

void HttpSession::Start(std::string_view begun) {
  const size_t size = std::min(begun.size(), buffer_.max_size());
  asio::buffer_copy(buffer_.prepare(size), asio::buffer(begun.data(), size));
  buffer_.commit(size);
  id_ = state_.sessions.Add(shared_from_this());
  if (id_ == 0) return;
  asio::co_spawn(
      stream_.get_executor(), [self = shared_from_this()] { return self->Run(); },
      [](const std::exception_ptr& failure) {
        try {
          if (failure) std::rethrow_exception(failure);
        } catch (const SystemFailure&) {  // the connection has ended
        }
      });
}

void HttpSession::Enter(Phase phase) {
  phase_ = phase;
  since_ = std::chrono::steady_clock::now().time_since_epoch().count();
}

void HttpSession::Close() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] { self->CloseNow(); });
}

void HttpSession::CloseNow() {
  closed_ = true;
  stream_.close();
  Tell();
}

void HttpSession::Stop() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->stopping_ = true;
    const Phase phase = self->phase_;
    if (phase == Phase::kFeeding) return self->Tell();
    if (phase != Phase::kBusy) self->CloseNow();
  });
}

void HttpSession::Wake() {
  if (phase_ != Phase::kFeeding) return;
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->woken_ = true;
    if (self->phase_ == Phase::kFeeding) self->Tell();
  });
}

template <typename Condition>
Awaitable<bool> HttpSession::Wait(Nanos limit, Condition come) {
  timer_.expires_after(ToChrono(limit));
  while (!come()) {
    if (closed_) throw SystemFailure(asio::error::operation_aborted);
    const auto [cancelled] = co_await timer_.async_wait(kOrError);
    if (!cancelled) co_return come();
  }
  co_return true;
}

Awaitable<void> HttpSession::Run() {
  do {
    std::optional<Response> refusal = co_await ReadRequest();
    if (refusal) {
      // Bytes after a request that was not read to its end are no request.
      const bool whole = parser_ && parser_->is_done();
      const bool keep_alive = whole && parser_->get().keep_alive() && !stopping_;
      co_await Send(*std::move(refusal), keep_alive);
    } else {
      co_await Answer();
    }
  } while (keep_alive_ && !stopping_ && !closed_);
  if (closed_) co_return;
  co_await Drain();
}

// --- Reading ---

Awaitable<std::optional<Response>> HttpSession::ReadRequest() {
  Enter(Phase::kIdle);
  const Nanos time = authenticated_
                         ? state_.limits.read_timeout
                         : std::min(state_.limits.read_timeout, state_.limits.stranger_timeout);
  stream_.expires_after(ToChrono(time));
  parser_.reset();
  request_ = Request();
  proving_.Reset();
  size_t length = std::string_view::npos;
  while (true) {
    // Some clients end a body with an empty line.
    while (View(buffer_).starts_with("\r\n")) buffer_.consume(2);
    // The bytes read with the previous request may hold this one too.
    const std::string_view bytes = View(buffer_);
    if (!bytes.empty() && bytes != "\r") {
      if (phase_ == Phase::kIdle) {
        Enter(Phase::kReading);
        if (authenticated_) stream_.expires_after(ToChrono(state_.limits.read_timeout));
      }
      if (!MayBeginRequest(bytes[0])) {
        co_return ErrorResponse(400, "this is no HTTP request (HTTPS is not spoken here)");
      }
      length = HeadLength(bytes);
      if (std::min(length, bytes.size()) > state_.limits.header_bytes) {
        co_return ErrorResponse(
            431, fmt::format("the header is larger than {} bytes", state_.limits.header_bytes));
      }
      if (length != std::string_view::npos) break;
    }
    co_await ReadSome();
  }
  std::optional<Response> refusal = TakeHead(length);
  if (!refusal && !parser_->is_done()) refusal = co_await ReadBody();
  if (!refusal && !proving_.IsBody(parser_->get().body())) {
    co_return Auth::Refuse(request_, "the body is not the one that the proof is about");
  }
  co_return refusal;
}

Awaitable<void> HttpSession::ReadSome() {
  const size_t room = std::min(kReadAtOnce, buffer_.max_size() - buffer_.size());
  const size_t bytes = co_await stream_.async_read_some(buffer_.prepare(room), kOrThrow);
  buffer_.commit(bytes);
}

std::optional<Response> HttpSession::TakeHead(size_t length) {
  if (const auto fault = CheckHead(View(buffer_).substr(0, length))) {
    return ErrorResponse(fault->status, fault->message);
  }
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(state_.limits.header_bytes + 1));
  // An unknown client is refused before its body is read; the bodies of others are limited below.
  parser_->body_limit(boost::none);
  ErrorCode error;
  const size_t used = parser_->put(asio::buffer(buffer_.data().data(), length), error);
  if (error && error != http::error::need_more) {
    parser_.reset();
    return ErrorResponse(400, "this is no HTTP request: " + error.message());
  }
  buffer_.consume(used);
  const Status read = FromWire(parser_->get(), request_);
  if (!read.ok()) return ErrorResponse(read);
  if (state_.cors.IsPreflight(request_)) return Cors::Preflight();
  if (request_.path == kProofPath) {
    return proving_.Begin(state_.auth.token(), AddressOf(stream_.socket()), request_);
  }
  const bool proves = HasProof(request_.authorization);
  const Status proven = proves ? proving_.Check(state_.auth.token(), parser_->get()) : Status();
  if (!proven.ok()) return Auth::Refuse(request_, proven.message());
  const Auth::Verdict verdict =
      proves ? Auth::Verdict::kAllowed
             : state_.auth.Check(request_, state_.cors.Allows(request_.origin));
  if (verdict == Auth::Verdict::kRefused) return Auth::Refuse(request_);
  if (verdict == Auth::Verdict::kOtherOrigin) return Auth::RefuseOrigin(request_);
  if (verdict == Auth::Verdict::kPageOnly && parser_->is_done()) return {};
  // As long as it has not shown the token it is a stranger, whose body is not read.
  if (verdict == Auth::Verdict::kPageOnly) return Auth::Refuse(request_);
  authenticated_ = true;
  request_.by_browser = verdict == Auth::Verdict::kByBrowser;
  if (parser_->content_length().value_or(0) > state_.limits.body_bytes) {
    return TooLong(state_.limits.body_bytes);
  }
  parser_->body_limit(state_.limits.body_bytes);
  return {};
}

Awaitable<std::optional<Response>> HttpSession::ReadBody() {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) {
    co_await asio::async_write(stream_, asio::buffer(kContinue), kOrThrow);
  }
  const auto [error, bytes] = co_await http::async_read(stream_, buffer_, *parser_, kOrError);
  if (!error) co_return std::nullopt;
  if (closed_ || IsGone(error)) throw SystemFailure(error);
  if (error == http::error::body_limit) co_return TooLong(state_.limits.body_bytes);
  co_return ErrorResponse(400, fmt::format("the body is not as HTTP has it: {}", error.message()));
}

// A close with unread bytes makes the kernel send a reset, which may overtake the answer: so first
// read, for a short while, the bytes that the peer still sends.
Awaitable<void> HttpSession::Drain() {
  constexpr std::chrono::seconds kTime(2);
  constexpr std::chrono::milliseconds kTimeAtEnd(50);
  Enter(Phase::kLeaving);
  ErrorCode ignored;
  stream_.socket().shutdown(Socket::shutdown_send, ignored);
  buffer_.clear();
  stopping_ ? stream_.expires_after(kTimeAtEnd) : stream_.expires_after(kTime);
  while (true) {
    const auto [error, bytes] =
        co_await stream_.async_read_some(buffer_.prepare(kReadAtOnce), kOrError);
    if (error) co_return;
  }
}

// --- Answering ---

Awaitable<void> HttpSession::Answer() {
  Response response = co_await Ask();
  const bool keep_alive = parser_->get().keep_alive() && !stopping_;
  // The bytes of all answers under way are bounded; one of them may be larger.
  const size_t bytes = response.body.size() + response.held_bytes;
  std::optional<Share> held(std::in_place, state_.held_bytes, bytes);
  std::optional<Share> feed;
  if (response.feed) feed.emplace(state_.feeds, 1);
  if (held->before() != 0 && held->before() + bytes > state_.limits.answer_bytes) {
    held.reset();
    response = Busy(fmt::format("answers of {} bytes are on their way already; ask again",
                                state_.limits.answer_bytes));
  } else if (feed && feed->before() >= state_.limits.feeds) {
    response = Busy(fmt::format("{} streams of events are open already", state_.limits.feeds));
  }
  if (!response.feed) feed.reset();
  if (IsUnchanged(request_, response)) {
    response.status = 304;
    response.body.clear();
  }
  co_await Send(std::move(response), keep_alive);
}

Awaitable<Response> HttpSession::Ask() {
  Enter(Phase::kBusy);
  request_.body = std::move(parser_->get().body());
  stream_.expires_never();
  reply_.reset();
  // The answer may come from another thread, too late, and after the server is gone.
  Dispatch(state_.context, request_,
           [weak = weak_from_this(), server = server_, number = ++request_number_](Response reply) {
             const std::shared_ptr<void> alive = server.lock();
             const std::shared_ptr<HttpSession> self = alive ? weak.lock() : nullptr;
             if (!self) return;
             asio::dispatch(self->stream_.get_executor(),
                            [self, number, reply = std::move(reply)]() mutable {
                              if (number != self->request_number_) return;
                              self->reply_ = std::move(reply);
                              self->Tell();
                            });
           });
  const bool come =
      co_await Wait(state_.limits.reply_timeout, [this] { return reply_.has_value(); });
  ++request_number_;
  if (!come) co_return ErrorResponse(504, "the data did not arrive in time");
  co_return *std::move(reply_);
}

Awaitable<void> HttpSession::Send(Response response, bool keep_alive) {
  Enter(Phase::kBusy);
  const std::unique_ptr<Gzip> gzip = Pack(request_, response);
  state_.cors.Mark(request_, response);
  const bool head_only = request_.method == Method::kHead;
  const bool pieces = response.next || response.feed;
  // Clients that do not know chunks read until the end.
  const bool old = parser_ && parser_->get().version() < 11;
  chunked_ = pieces && !old;
  keep_alive_ = keep_alive && !(pieces && old) && !response.feed;
  WireResponse message = ToWire(response, keep_alive_);
  if (pieces && old) message.chunked(false);
  if (!head_only) message.body() = std::move(response.body);
  http::response_serializer<http::string_body> serializer(message);
  BeginWrite();
  ExpectWrite(message.body().size());
  if (!pieces) {
    co_await http::async_write(stream_, serializer, kOrThrow);
    co_return;
  }
  co_await http::async_write_header(stream_, serializer, kOrThrow);
  if (head_only) co_return;
  if (response.feed) {
    co_await Feed(*response.feed);
  } else {
    co_await SendPieces(response, gzip.get());
  }
  if (!chunked_) co_return;
  ExpectWrite(0);
  co_await asio::async_write(stream_, http::make_chunk_last(), kOrThrow);
}

// A client that reads more slowly than this is dropped.
void HttpSession::ExpectWrite(size_t bytes) {
  written_ += bytes;
  const auto allowed = std::chrono::seconds(written_ / state_.limits.write_rate);
  stream_.expires_at(begun_ + ToChrono(state_.limits.write_timeout) + allowed);
}

Awaitable<void> HttpSession::Write(const std::string& text) {
  if (text.empty()) co_return;
  ExpectWrite(text.size());
  if (chunked_) {
    co_await asio::async_write(stream_, http::make_chunk(asio::buffer(text)), kOrThrow);
  } else {
    co_await asio::async_write(stream_, asio::buffer(text), kOrThrow);
  }
}

Awaitable<void> HttpSession::SendPieces(const Response& response, Gzip* gzip) {
  for (bool more = true; more;) {
    std::string piece;
    more = response.next(piece);
    if (gzip == nullptr) {
      co_await Write(piece);
      continue;
    }
    std::string packed;  // may be empty: the packer keeps some
    gzip->Add(piece, !more, packed);
    co_await Write(packed);
  }
}

// --- Feeding ---

// One pull or write at a time: a slow reader costs only the bytes being sent, and nothing waits.
Awaitable<void> HttpSession::Feed(EventFeed& feed) {
  Enter(Phase::kFeeding);
  const bool told = state_.context.series->ticks() != nullptr;
  for (bool waited = false;;) {
    woken_ = false;
    co_await Pull(feed);
    // A comment tells that the connection is alive.
    if (waited && pulled_->text.empty()) pulled_->text = ":\n\n";
    BeginWrite();
    co_await Write(pulled_->text);
    if (pulled_->over) co_return;
    waited = false;
    // After one event there may be more.
    if (!pulled_->text.empty()) continue;
    const bool come = co_await Wait(told ? state_.limits.heartbeat : kSecond,
                                    [this] { return woken_ || stopping_; });
    waited = !come;
  }
}

Awaitable<void> HttpSession::Pull(EventFeed& feed) {
  pulled_.reset();
  feed.Pull(stopping_, [weak = weak_from_this(), server = server_](std::string text, bool over) {
    const std::shared_ptr<void> alive = server.lock();
    const std::shared_ptr<HttpSession> self = alive ? weak.lock() : nullptr;
    if (!self) return;
    asio::post(self->stream_.get_executor(), [self, over, text = std::move(text)]() mutable {
      self->pulled_ = Pulled{std::move(text), over};
      self->Tell();
    });
  });
  const bool come =
      co_await Wait(state_.limits.reply_timeout, [this] { return pulled_.has_value(); });
  if (!come) throw SystemFailure(asio::error::timed_out);
}

}  // namespace

std::shared_ptr<Session> Session::Make(ServerState& state, std::weak_ptr<void> server,
                                       Socket socket) {
  return std::make_shared<HttpSession>(state, std::move(server), std::move(socket));
}

}  // namespace sonde::web
