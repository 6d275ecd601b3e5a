// A connection's way from bytes to a request.
#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "web/server/request_head.h"
#include "web/server/session.h"

namespace sonde::web {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr size_t kReadAtOnce = 4096;
constexpr size_t kBodyBuffer = 65536;

std::string_view View(const beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.data().data()), buffer.size()};
}

std::chrono::nanoseconds ToChrono(Nanos duration) { return std::chrono::nanoseconds(duration); }

bool MayBeginRequest(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

Response TooLong(const Server::Limits& limits) {
  return ErrorResponse(413, fmt::format("the body is larger than {} bytes", limits.body_bytes));
}

}  // namespace

Session::Session(ServerState& state, std::weak_ptr<void> server, Socket socket)
    : state_(state),
      server_(std::move(server)),
      stream_(std::move(socket)),
      buffer_(state.limits.header_bytes + kBodyBuffer),
      timer_(stream_.get_executor()) {}

void Session::NextRequest() {
  if (closed_) return;
  if (stopping_) return Drain();
  Enter(Phase::kIdle);
  const Nanos time = authenticated_
                         ? state_.limits.read_timeout
                         : std::min(state_.limits.read_timeout, state_.limits.stranger_timeout);
  stream_.expires_after(ToChrono(time));
  ReadHead();
}

// What came with the request before may hold this one too.
void Session::ReadHead() {
  if (closed_) return;
  // Some clients end a body with an empty line.
  while (View(buffer_).starts_with("\r\n")) buffer_.consume(2);
  const std::string_view bytes = View(buffer_);
  if (bytes.empty() || bytes == "\r") return ReadSome();
  if (phase_ == Phase::kIdle) {
    Enter(Phase::kReading);
    if (authenticated_) stream_.expires_after(ToChrono(state_.limits.read_timeout));
  }
  parser_.reset();
  request_ = Request();
  if (!MayBeginRequest(bytes[0])) {
    return Refuse(ErrorResponse(400, "this is no HTTP request (HTTPS is not spoken here)"));
  }
  const size_t length = HeadLength(bytes);
  if (std::min(length, bytes.size()) > state_.limits.header_bytes) {
    return Refuse(ErrorResponse(
        431, fmt::format("the header is larger than {} bytes", state_.limits.header_bytes)));
  }
  length == std::string_view::npos ? ReadSome() : OnHead(length);
}

void Session::ReadSome() {
  const size_t room = std::min(kReadAtOnce, buffer_.max_size() - buffer_.size());
  stream_.async_read_some(buffer_.prepare(room),
                          [self = shared_from_this()](const ErrorCode& error, size_t bytes) {
                            if (error) return self->OnReadError(error);
                            self->buffer_.commit(bytes);
                            self->ReadHead();
                          });
}

void Session::OnHead(size_t length) {
  if (const auto fault = CheckHead(View(buffer_).substr(0, length))) {
    return Refuse(ErrorResponse(fault->status, fault->message));
  }
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(state_.limits.header_bytes + 1));
  // A stranger is refused before his body is looked at; ours is limited in OnRequestHead.
  parser_->body_limit(boost::none);
  ErrorCode error;
  const size_t used = parser_->put(asio::buffer(buffer_.data().data(), length), error);
  if (error && error != http::error::need_more) {
    parser_.reset();
    return Refuse(ErrorResponse(400, "this is no HTTP request: " + error.message()));
  }
  buffer_.consume(used);
  OnRequestHead();
}

void Session::OnRequestHead() {
  const Status read = FromWire(parser_->get(), request_);
  if (!read.ok()) return Refuse(ErrorResponse(read));
  if (state_.cors.IsPreflight(request_)) return Refuse(Cors::Preflight());
  const Auth::Verdict verdict = state_.auth.Check(request_);
  if (verdict == Auth::Verdict::kRefused) return Refuse(Auth::Refuse(request_));
  authenticated_ = true;
  if (verdict == Auth::Verdict::kRedirect) return Refuse(state_.auth.Redirect(request_));
  if (parser_->content_length().value_or(0) > state_.limits.body_bytes) {
    return Refuse(TooLong(state_.limits));
  }
  parser_->body_limit(state_.limits.body_bytes);
  if (parser_->is_done()) return OnRequest();
  if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) return Continue();
  ReadBody();
}

void Session::Continue() {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream_, asio::buffer(kContinue),
                    [self = shared_from_this()](const ErrorCode& error, size_t) {
                      if (!error) self->ReadBody();
                    });
}

void Session::ReadBody() {
  if (closed_) return;
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](const ErrorCode& error, size_t) {
                     if (error) return self->OnReadError(error);
                     self->OnRequest();
                   });
}

void Session::OnReadError(const ErrorCode& error) {
  // The peer left, or was too slow: there is nobody to tell.
  if (closed_ || error == asio::error::eof || error == http::error::end_of_stream ||
      error == http::error::partial_message || error == beast::error::timeout ||
      error.category() == boost::system::system_category() ||
      error.category() == asio::error::get_misc_category()) {
    return;
  }
  if (error == http::error::body_limit) return Refuse(TooLong(state_.limits));
  Refuse(ErrorResponse(400, fmt::format("the body is not as HTTP has it: {}", error.message())));
}

// A close with unread bytes makes the kernel send a reset, which may overtake the answer: first
// read, for a short while, what the peer still sends.
void Session::Drain() {
  constexpr std::chrono::seconds kTime(2);
  constexpr std::chrono::milliseconds kTimeAtEnd(50);
  if (closed_) return;
  Enter(Phase::kLeaving);
  ErrorCode ignored;
  stream_.socket().shutdown(Socket::shutdown_send, ignored);
  buffer_.clear();
  stopping_ ? stream_.expires_after(kTimeAtEnd) : stream_.expires_after(kTime);
  ReadAndForget();
}

void Session::ReadAndForget() {
  stream_.async_read_some(asio::buffer(trash_),
                          [self = shared_from_this()](const ErrorCode& error, size_t) {
                            if (!error && !self->closed_) self->ReadAndForget();
                          });
}

}  // namespace sonde::web
