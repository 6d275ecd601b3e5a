#include "web/server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.h"
#include "web/auth.h"
#include "web/router.h"

namespace sonde::web {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::seconds kDrainTime(2);
constexpr std::chrono::milliseconds kAcceptPause(100);

Method ToMethod(http::verb verb) {
  switch (verb) {
    case http::verb::get:
      return Method::kGet;
    case http::verb::head:
      return Method::kHead;
    case http::verb::post:
      return Method::kPost;
    default:
      return Method::kOther;
  }
}

std::string Field(const http::request<http::string_body>& message, http::field name) {
  const auto value = message[name];
  return {value.data(), value.size()};
}

Status FillRequest(const http::request<http::string_body>& message, Request& request) {
  request.method = ToMethod(message.method());
  request.authorization = Field(message, http::field::authorization);
  request.cookie = Field(message, http::field::cookie);
  request.if_none_match = Field(message, http::field::if_none_match);
  request.content_type = Field(message, http::field::content_type);
  request.content_encoding = Field(message, http::field::content_encoding);
  return ParseTarget({message.target().data(), message.target().size()}, request);
}

Response ReadErrorResponse(const error_code& error, const Server::Limits& limits) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return ErrorResponse(431,
                         fmt::format("the header is larger than {} bytes", limits.header_bytes));
  }
  if (error == http::error::body_limit) {
    return ErrorResponse(413, fmt::format("the body is larger than {} bytes", limits.body_bytes));
  }
  return ErrorResponse(400, fmt::format("this is no HTTP request: {}", error.message()));
}

std::chrono::nanoseconds ToChrono(Nanos duration) { return std::chrono::nanoseconds(duration); }

// What the sessions of one server share.
struct Shared {
  Shared(const Server::Options& options, std::shared_ptr<const DataSource> source)
      : limits(options.limits),
        auth(options.token),
        context{std::move(source), &Clock::System(), nullptr, options.nan_null} {}

  Server::Limits limits;
  Auth auth;
  Context context;

  std::mutex mutex;
  bool stopping = false;
  uint64_t next_id = 1;
  std::map<uint64_t, std::weak_ptr<class Session>> sessions;  // by age
};

}  // namespace

struct Server::Core {
  Core(const Options& options, std::shared_ptr<const DataSource> source)
      : shared(options, std::move(source)),
        context(options.threads),
        acceptor(asio::make_strand(context)),
        pause(acceptor.get_executor()) {}

  Status Listen(const Options& options);
  void Run(int thread_count);
  void Work();
  void Accept();
  void OnAccept(const error_code& error, tcp::socket socket);
  bool MakeRoom();
  void Stop();

  std::weak_ptr<Core> owner;
  Shared shared;  // outlives the context, whose destructor destroys sessions
  asio::io_context context;
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::vector<std::thread> threads;
  uint16_t port = 0;
};

namespace {

// One connection: reads a request, answers it, reads the next. All its work runs on its strand; it
// is kept alive by the operation it waits for.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Shared& shared, std::weak_ptr<void> core, tcp::socket socket)
      : shared_(shared),
        core_(std::move(core)),
        stream_(std::move(socket)),
        buffer_(shared.limits.header_bytes + 65536),
        reply_timer_(stream_.get_executor()) {}
  ~Session() {
    const std::lock_guard lock(shared_.mutex);
    shared_.sessions.erase(id_);
  }

  void Start() {
    {
      const std::lock_guard lock(shared_.mutex);
      if (shared_.stopping) return;
      id_ = shared_.next_id++;
      shared_.sessions.emplace(id_, weak_from_this());
    }
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->ReadHeader(); });
  }

  // From any thread.
  void Close() {
    asio::post(stream_.get_executor(), [self = shared_from_this()] {
      self->closed_ = true;
      self->stream_.close();
      self->reply_timer_.cancel();
    });
  }

  bool authenticated() const { return authenticated_; }

 private:
  void ReadHeader() {
    if (closed_) return;
    parser_.emplace();
    parser_->header_limit(static_cast<uint32_t>(shared_.limits.header_bytes));
    // A stranger is refused before his body is looked at; ours is limited in OnHeader.
    parser_->body_limit(boost::none);
    stream_.expires_after(ToChrono(shared_.limits.read_timeout));
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& error, size_t) { self->OnHeader(error); });
  }

  void OnHeader(const error_code& error) {
    if (error) return OnReadError(error);
    request_ = Request();
    const Status parsed = FillRequest(parser_->get(), request_);
    if (!parsed.ok()) return Refuse(ErrorResponse(parsed));
    const Auth::Verdict verdict = shared_.auth.Check(request_);
    if (verdict == Auth::Verdict::kRefused) return Refuse(Auth::Refuse());
    authenticated_ = true;
    if (verdict == Auth::Verdict::kRedirect) return Refuse(shared_.auth.Redirect(request_));
    if (parser_->content_length().value_or(0) > shared_.limits.body_bytes) {
      return OnReadError(http::error::body_limit);
    }
    parser_->body_limit(shared_.limits.body_bytes);
    if (parser_->is_done()) return OnRequest();
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) return Continue();
    ReadBody();
  }

  void Continue() {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = shared_from_this()](const error_code& error, size_t) {
                        if (!error) self->ReadBody();
                      });
  }

  void ReadBody() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](const error_code& error, size_t) {
                       if (error) return self->OnReadError(error);
                       self->OnRequest();
                     });
  }

  void OnReadError(const error_code& error) {
    // The peer left, or was too slow: there is nobody to tell.
    if (closed_ || error == http::error::end_of_stream || error == http::error::partial_message ||
        error == beast::error::timeout || error.category() == boost::system::system_category() ||
        error.category() == asio::error::get_misc_category()) {
      return;
    }
    Refuse(ReadErrorResponse(error, shared_.limits));
  }

  void OnRequest() {
    request_.body = std::move(parser_->get().body());
    waiting_ = true;
    const uint64_t number = ++request_number_;
    stream_.expires_never();
    reply_timer_.expires_after(ToChrono(shared_.limits.reply_timeout));
    reply_timer_.async_wait([self = shared_from_this(), number](const error_code& error) {
      if (!error) self->OnReply(number, ErrorResponse(504, "the data did not arrive in time"));
    });
    // The answer may come from another thread and after the server is gone.
    Dispatch(shared_.context, request_,
             [weak = weak_from_this(), core = core_, number](Response response) {
               const std::shared_ptr<void> alive = core.lock();
               const std::shared_ptr<Session> self = alive ? weak.lock() : nullptr;
               if (!self) return;
               asio::dispatch(self->stream_.get_executor(),
                              [self, number, response = std::move(response)]() mutable {
                                self->OnReply(number, std::move(response));
                              });
             });
  }

  void OnReply(uint64_t number, Response response) {
    if (closed_ || !waiting_ || number != request_number_) return;
    waiting_ = false;
    reply_timer_.cancel();
    const bool head = request_.method == Method::kHead;
    if (!response.etag.empty() && request_.if_none_match == response.etag) {
      response.status = 304;
      response.body.clear();
    }
    Send(std::move(response), parser_->get().keep_alive(), head);
  }

  // Answers and closes: whatever else the peer sends is not read as a request. A request that has
  // no body does not need that.
  void Refuse(Response response) {
    const bool head = parser_->is_header_done() && request_.method == Method::kHead;
    const bool keep = parser_->is_done() && parser_->get().keep_alive();
    Send(std::move(response), keep, head);
  }

  void Send(Response response, bool keep_alive, bool head) {
    if (response.next && (head || parser_->get().version() < 11)) Collect(response);
    message_.emplace(static_cast<http::status>(response.status), 11);
    message_->set(http::field::server, "sonde");
    message_->set("X-Content-Type-Options", "nosniff");
    message_->set("Referrer-Policy", "no-referrer");
    for (const auto& [name, value] : response.headers) message_->set(name, value);
    if (response.etag.empty()) {
      message_->set(http::field::cache_control, "no-store");
    } else {
      message_->set(http::field::cache_control, "no-cache");
      message_->set(http::field::etag, response.etag);
    }
    if (!response.body.empty() || response.next)
      message_->set(http::field::content_type, response.content_type);
    message_->keep_alive(keep_alive);
    if (response.next) {
      message_->chunked(true);
    } else if (response.status != 304) {
      message_->content_length(response.body.size());
    }
    if (!head) message_->body() = std::move(response.body);
    serializer_.emplace(*message_);
    stream_.expires_after(ToChrono(shared_.limits.write_timeout));
    if (response.next) return Stream(std::move(response.next), keep_alive);
    http::async_write(stream_, *serializer_,
                      [self = shared_from_this(), keep_alive](const error_code& error, size_t) {
                        if (error) return;
                        keep_alive ? self->ReadHeader() : self->Drain(kDrainTime);
                      });
  }

  // For those who do not know chunks.
  static void Collect(Response& response) {
    while (response.next(response.body)) {
    }
    response.next = nullptr;
  }

  void Stream(std::function<bool(std::string&)> next, bool keep_alive) {
    next_ = std::move(next);
    http::async_write_header(
        stream_, *serializer_,
        [self = shared_from_this(), keep_alive](const error_code& error, size_t) {
          if (!error) self->SendChunk(keep_alive);
        });
  }

  void SendChunk(bool keep_alive) {
    chunk_.clear();
    const bool more = next_(chunk_);
    if (!more) next_ = nullptr;
    stream_.expires_after(ToChrono(shared_.limits.write_timeout));
    asio::async_write(
        stream_, http::make_chunk(asio::buffer(chunk_)),
        [self = shared_from_this(), keep_alive, more](const error_code& error, size_t) {
          if (error) return;
          more ? self->SendChunk(keep_alive) : self->SendLastChunk(keep_alive);
        });
  }

  void SendLastChunk(bool keep_alive) {
    std::string().swap(chunk_);
    asio::async_write(stream_, http::make_chunk_last(),
                      [self = shared_from_this(), keep_alive](const error_code& error, size_t) {
                        if (error) return;
                        keep_alive ? self->ReadHeader() : self->Drain(kDrainTime);
                      });
  }

  // A close with unread bytes makes the kernel send a reset, which may overtake the answer: first
  // read, for a short while, what the peer still sends.
  void Drain(std::chrono::nanoseconds time) {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    buffer_.clear();
    stream_.expires_after(time);
    ReadAndForget();
  }

  void ReadAndForget() {
    stream_.async_read_some(asio::buffer(trash_),
                            [self = shared_from_this()](const error_code& error, size_t) {
                              if (!error && !self->closed_) self->ReadAndForget();
                            });
  }

  Shared& shared_;
  std::weak_ptr<void> core_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  asio::steady_timer reply_timer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  Request request_;
  std::optional<http::response<http::string_body>> message_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  std::function<bool(std::string&)> next_;  // the rest of an answer that is sent in chunks
  std::string chunk_;
  std::array<char, 4096> trash_;
  uint64_t id_ = 0;
  uint64_t request_number_ = 0;
  bool waiting_ = false;
  bool closed_ = false;
  std::atomic<bool> authenticated_ = false;
};

Status Bind(tcp::acceptor& acceptor, const tcp::endpoint& endpoint) {
  error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (!error) return {};
  error_code ignored;
  acceptor.close(ignored);
  return {error == asio::error::address_in_use ? Code::kUnavailable : Code::kIo, error.message()};
}

}  // namespace

Status Server::Core::Listen(const Options& options) {
  error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) {
    return {Code::kInvalid, fmt::format("'{}' is no numeric IP address", options.address)};
  }
  Status bound = Bind(acceptor, {address, options.port});
  if (!bound.ok() && options.port_if_taken_any && options.port != 0) {
    bound = Bind(acceptor, {address, 0});
  }
  if (!bound.ok()) {
    return bound.Within(fmt::format("listen on {} port {}", options.address, options.port));
  }
  port = acceptor.local_endpoint(error).port();
  return {};
}

void Server::Core::Run(int thread_count) {
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (int i = 0; i < thread_count; ++i) threads.emplace_back([this] { Work(); });
  } catch (const std::system_error& e) {
    log::Warning("HTTP: {} of {} threads started: {}", threads.size(), thread_count, e.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Server::Core::Work() {
  pthread_setname_np(pthread_self(), "sonde-http");
  for (bool running = true; running;) {
    try {
      context.run();
      running = false;
    } catch (const std::exception& e) {
      log::Error("HTTP: {}", e.what());
    }
  }
}

void Server::Core::Accept() {
  acceptor.async_accept(
      asio::make_strand(context),
      [this](const error_code& error, tcp::socket socket) { OnAccept(error, std::move(socket)); });
}

void Server::Core::OnAccept(const error_code& error, tcp::socket socket) {
  if (!acceptor.is_open()) return;
  if (error) {
    // Out of descriptors: they come back when a connection ends.
    pause.expires_after(kAcceptPause);
    pause.async_wait([this](const error_code& cancelled) {
      if (!cancelled && acceptor.is_open()) Accept();
    });
    return;
  }
  if (MakeRoom()) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    std::make_shared<Session>(shared, owner, std::move(socket))->Start();
  }
  Accept();
}

// Whether another connection may come in; the oldest stranger goes for it.
bool Server::Core::MakeRoom() {
  std::vector<std::shared_ptr<Session>> held;  // released after the lock
  const std::lock_guard lock(shared.mutex);
  if (shared.sessions.size() < shared.limits.connections) return true;
  for (const auto& [id, weak] : shared.sessions) {
    held.push_back(weak.lock());
    if (held.back() && !held.back()->authenticated()) {
      held.back()->Close();
      shared.sessions.erase(id);
      return true;
    }
  }
  return false;
}

void Server::Core::Stop() {
  asio::post(acceptor.get_executor(), [this] {
    error_code ignored;
    acceptor.close(ignored);
    pause.cancel();
  });
  std::vector<std::shared_ptr<Session>> open;
  {
    const std::lock_guard lock(shared.mutex);
    shared.stopping = true;
    for (const auto& [id, weak] : shared.sessions) open.push_back(weak.lock());
  }
  for (const auto& session : open) {
    if (session) session->Close();
  }
}

Server::Server(std::shared_ptr<Core> core) : core_(std::move(core)) {}

Result<std::unique_ptr<Server>> Server::Start(const Options& options,
                                              std::shared_ptr<const DataSource> source) {
  if (options.token.empty()) {
    return Status(Code::kInvalid, "an HTTP server needs a token: without one it would be open");
  }
  try {
    auto core = std::make_shared<Core>(options, std::move(source));
    core->owner = core;
    core->shared.context.executor = [weak = std::weak_ptr<Core>(core)](std::function<void()> f) {
      if (const std::shared_ptr<Core> alive = weak.lock()) {
        asio::post(alive->context, std::move(f));
      }
    };
    SONDE_RETURN_IF_ERROR(core->Listen(options));
    core->Accept();
    core->Run(options.threads);
    if (core->threads.empty()) {
      return Status(Code::kLimit, "start the HTTP server: no thread could be started");
    }
    return std::unique_ptr<Server>(new Server(std::move(core)));
  } catch (const std::exception& e) {
    return Status(Code::kInternal, fmt::format("start the HTTP server: {}", e.what()));
  }
}

Server::~Server() {
  core_->Stop();
  for (std::thread& thread : core_->threads) thread.join();
}

uint16_t Server::port() const { return core_->port; }

}  // namespace sonde::web
