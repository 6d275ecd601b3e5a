// A connection's way from a request to its answer.
#include "web/server/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "web/negotiation.h"

namespace sonde::web {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr size_t kWorthPacking = 1024;

std::chrono::nanoseconds ToChrono(Nanos duration) { return std::chrono::nanoseconds(duration); }

bool IsText(std::string_view content_type) {
  return content_type.starts_with("text/") || content_type.starts_with("application/json") ||
         content_type.starts_with("application/openmetrics-text");
}

Response Busy(std::string_view what) {
  Response response = ErrorResponse(503, what);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace

Session::~Session() {
  Release();
  if (feed_) --state_.feeds;
  if (id_ != 0) state_.sessions.Remove(id_);
}

void Session::Start(std::string_view begun) {
  const size_t size = std::min(begun.size(), buffer_.max_size());
  asio::buffer_copy(buffer_.prepare(size), asio::buffer(begun.data(), size));
  buffer_.commit(size);
  id_ = state_.sessions.Add(shared_from_this());
  if (id_ == 0) return;
  asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->NextRequest(); });
}

void Session::Enter(Phase phase) {
  phase_ = phase;
  since_ = std::chrono::steady_clock::now().time_since_epoch().count();
}

void Session::Close() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] { self->CloseNow(); });
}

void Session::CloseNow() {
  closed_ = true;
  stream_.close();
  timer_.cancel();
}

void Session::Stop() {
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    self->stopping_ = true;
    const Phase phase = self->phase_;
    if (phase == Phase::kFeeding) return self->PullFeed();
    if (phase != Phase::kBusy) self->CloseNow();
  });
}

void Session::Wake() {
  if (phase_ != Phase::kFeeding) return;
  asio::post(stream_.get_executor(), [self = shared_from_this()] {
    if (self->phase_ == Phase::kFeeding) self->PullFeed();
  });
}

void Session::OnRequest() {
  Enter(Phase::kBusy);
  request_.body = std::move(parser_->get().body());
  waiting_ = true;
  const uint64_t number = ++request_number_;
  stream_.expires_never();
  timer_.expires_after(ToChrono(state_.limits.reply_timeout));
  timer_.async_wait([self = shared_from_this(), number](const ErrorCode& error) {
    if (!error) self->OnReply(number, ErrorResponse(504, "the data did not arrive in time"));
  });
  // The answer may come from another thread and after the server is gone.
  Dispatch(state_.context, request_,
           [weak = weak_from_this(), server = server_, number](Response response) {
             const std::shared_ptr<void> alive = server.lock();
             const std::shared_ptr<Session> self = alive ? weak.lock() : nullptr;
             if (!self) return;
             asio::dispatch(self->stream_.get_executor(),
                            [self, number, response = std::move(response)]() mutable {
                              self->OnReply(number, std::move(response));
                            });
           });
}

void Session::OnReply(uint64_t number, Response response) {
  if (closed_ || !waiting_ || number != request_number_) return;
  waiting_ = false;
  timer_.cancel();
  const bool keep_alive = parser_->get().keep_alive() && !stopping_;
  if (!Hold(response.body.size() + response.held_bytes)) {
    response = Busy(fmt::format("answers of {} bytes are on their way already; ask again",
                                state_.limits.answer_bytes));
  } else if (response.feed && ++state_.feeds > state_.limits.feeds) {
    --state_.feeds;
    response = Busy(fmt::format("{} streams of events are open already", state_.limits.feeds));
  }
  if (IsUnchanged(request_, response)) {
    response.status = 304;
    response.body.clear();
  }
  Send(std::move(response), keep_alive);
}

// What all answers that are being sent hold together is bounded; one of them may be larger.
bool Session::Hold(size_t bytes) {
  const size_t before = state_.held_bytes.fetch_add(bytes);
  held_ = bytes;
  if (before == 0 || before + bytes <= state_.limits.answer_bytes) return true;
  Release();
  return false;
}

void Session::Release() { state_.held_bytes -= std::exchange(held_, 0); }

// Answers and closes: whatever else the peer sends is not read as a request. A request that has
// no body does not need that.
void Session::Refuse(Response response) {
  const bool keep = parser_ && parser_->is_done() && parser_->get().keep_alive() && !stopping_;
  Send(std::move(response), keep);
}

void Session::Pack(Response& response) {
  const bool large = response.body.size() >= kWorthPacking || response.next;
  if (!large || !IsText(response.content_type)) return;
  response.headers.emplace_back("Vary", "Accept-Encoding");
  if (!WantsGzip(request_.accept_encoding)) return;
  response.headers.emplace_back("Content-Encoding", "gzip");
  // Other bytes need another tag.
  if (!response.etag.empty()) response.etag.insert(response.etag.size() - 1, "-gzip");
  if (response.next) {
    gzip_.emplace();
    return;
  }
  std::string packed;
  Gzip().Add(response.body, true, packed);
  response.body = std::move(packed);
}

void Session::Prepare(Response& response, bool keep_alive) {
  gzip_.reset();
  head_only_ = request_.method == Method::kHead;
  Pack(response);
  state_.cors.Mark(request_, response);
  // Those who do not know chunks read until the end.
  const bool pieces = response.next || response.feed;
  const bool old = parser_ && parser_->get().version() < 11;
  chunked_ = pieces && !old;
  keep_alive_ = keep_alive && !(pieces && old) && !response.feed;
  message_.emplace(ToWire(response, keep_alive_));
  if (!chunked_ && pieces) message_->chunked(false);
  if (!head_only_) message_->body() = std::move(response.body);
  serializer_.emplace(*message_);
  begun_ = std::chrono::steady_clock::now();
  written_ = 0;
}

void Session::Send(Response response, bool keep_alive) {
  if (phase_ != Phase::kLeaving) Enter(Phase::kBusy);
  std::function<bool(std::string&)> next = std::move(response.next);
  response.next = next ? [](std::string&) { return false; } : response.next;
  std::shared_ptr<EventFeed> feed = response.feed;
  Prepare(response, keep_alive);
  if (next && !head_only_) {
    next_ = std::move(next);
    return WriteHeader([this] { SendPiece(); });
  }
  if (feed && !head_only_) {
    return WriteHeader([this, feed] { BeginFeed(feed); });
  }
  if (feed) --state_.feeds;
  if (next || feed) return WriteHeader([this] { Sent(); });
  ExpectWrite(message_->body().size());
  http::async_write(stream_, *serializer_,
                    [self = shared_from_this()](const ErrorCode& error, size_t) {
                      if (!error) self->Sent();
                    });
}

void Session::Sent() {
  Release();
  keep_alive_ ? NextRequest() : Drain();
}

// Whoever reads slower than this is not waited for.
void Session::ExpectWrite(size_t bytes) {
  written_ += bytes;
  const auto allowed = std::chrono::seconds(written_ / state_.limits.write_rate);
  stream_.expires_at(begun_ + ToChrono(state_.limits.write_timeout) + allowed);
}

void Session::WriteHeader(std::function<void()> next) {
  ExpectWrite(0);
  http::async_write_header(
      stream_, *serializer_,
      [self = shared_from_this(), next = std::move(next)](const ErrorCode& error, size_t) {
        if (!error && !self->closed_) next();
      });
}

void Session::SendPiece() {
  std::string piece;
  bool more = true;
  // A piece may be inside the packer still.
  while (more && piece.empty()) {
    std::string text;
    more = next_(text);
    gzip_ ? gzip_->Add(text, !more, piece) : piece.swap(text);
  }
  if (more) return Write(std::move(piece), [this] { SendPiece(); });
  next_ = nullptr;
  Write(std::move(piece), [this] { WriteEnd([this] { Sent(); }); });
}

void Session::Write(std::string text, std::function<void()> next) {
  if (closed_) return;
  chunk_ = std::move(text);
  if (chunk_.empty()) return next();
  ExpectWrite(chunk_.size());
  auto done = [self = shared_from_this(), next = std::move(next)](const ErrorCode& error, size_t) {
    if (!error) next();
  };
  if (chunked_) {
    asio::async_write(stream_, http::make_chunk(asio::buffer(chunk_)), std::move(done));
  } else {
    asio::async_write(stream_, asio::buffer(chunk_), std::move(done));
  }
}

void Session::WriteEnd(std::function<void()> next) {
  std::string().swap(chunk_);
  if (!chunked_) return next();
  asio::async_write(
      stream_, http::make_chunk_last(),
      [self = shared_from_this(), next = std::move(next)](const ErrorCode& error, size_t) {
        if (!error) next();
      });
}

// --- Feeding ---

void Session::BeginFeed(std::shared_ptr<EventFeed> feed) {
  feed_ = std::move(feed);
  Enter(Phase::kFeeding);
  PullFeed();
}

// One pull or write at a time: a slow reader costs what is being sent to it, and nothing waits.
void Session::PullFeed() {
  if (closed_) return;
  if (pulling_) {
    woken_ = true;
    return;
  }
  pulling_ = true;
  woken_ = false;
  timer_.cancel();
  feed_->Pull(stopping_, [weak = weak_from_this(), server = server_](std::string text, bool over) {
    const std::shared_ptr<void> alive = server.lock();
    const std::shared_ptr<Session> self = alive ? weak.lock() : nullptr;
    if (!self) return;
    asio::post(self->stream_.get_executor(), [self, over, text = std::move(text)]() mutable {
      self->OnFeed(std::move(text), over);
    });
  });
  // Without an answer nothing else keeps this alive.
  timer_.expires_after(ToChrono(state_.limits.reply_timeout));
  timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (!error && self->pulling_) self->CloseNow();
  });
}

void Session::OnFeed(std::string text, bool over) {
  if (closed_) return;
  timer_.cancel();
  begun_ = std::chrono::steady_clock::now();
  written_ = 0;
  if (std::exchange(beating_, false) && text.empty()) text = ":\n\n";
  if (over) return Write(std::move(text), [this] { WriteEnd([this] { EndFeed(); }); });
  // Where there was something there may be more.
  const bool again = !text.empty();
  Write(std::move(text), [this, again] {
    pulling_ = false;
    again || woken_ || stopping_ ? PullFeed() : AwaitFeed();
  });
}

void Session::AwaitFeed() {
  stream_.expires_never();
  const bool told = state_.context.source->ticks() != nullptr;
  timer_.expires_after(ToChrono(told ? state_.limits.heartbeat : kSecond));
  timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
    if (error || self->pulling_ || self->closed_) return;
    self->beating_ = true;
    self->PullFeed();
  });
}

void Session::EndFeed() {
  feed_.reset();
  --state_.feeds;
  Sent();
}

}  // namespace sonde::web
