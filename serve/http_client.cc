#include "serve/http_client.h"

#include <fmt/core.h>
#include <pthread.h>

#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "core/log.h"
#include "core/signals_blocked.h"
#include "web/http/proof.h"

namespace sonde::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

// All but Close on the client's thread. A turn keeps this alive; its owner may be gone already.
class TurnsInOrder final : public Turns, public std::enable_shared_from_this<TurnsInOrder> {
 public:
  TurnsInOrder(std::weak_ptr<asio::io_context> context, size_t most)
      : context_(std::move(context)), free_(most) {}

  void Close() override { closed_ = true; }
  // Nobody who waits now gets a turn; who comes later may.
  void SendAway() {
    for (Waiter* waiter : std::exchange(waiting_, {})) waiter->wake.cancel();
  }

  // Throws operation_aborted for who gets no turn.
  asio::awaitable<std::shared_ptr<void>> Take() {
    if (free_ == 0) {
      const auto executor = co_await asio::this_coro::executor;
      Waiter waiter{asio::steady_timer(executor, asio::steady_timer::time_point::max())};
      waiting_.push_back(&waiter);
      co_await waiter.wake.async_wait(asio::as_tuple(asio::use_awaitable));
      if (!waiter.has_turn) throw boost::system::system_error(asio::error::operation_aborted);
    } else {
      --free_;
    }
    std::shared_ptr<void> turn(nullptr, [self = shared_from_this()](void*) {
      const std::shared_ptr<asio::io_context> context = self->context_.lock();
      if (context) asio::post(*context, [self] { self->GiveBack(); });
    });
    if (closed_) throw boost::system::system_error(asio::error::operation_aborted);
    co_return turn;
  }

 private:
  struct Waiter {
    asio::steady_timer wake;
    bool has_turn = false;
  };

  void GiveBack() {
    if (waiting_.empty()) {
      ++free_;
      return;
    }
    waiting_.front()->has_turn = true;
    waiting_.front()->wake.cancel();
    waiting_.pop_front();
  }

  const std::weak_ptr<asio::io_context> context_;
  std::atomic<bool> closed_ = false;
  size_t free_;
  std::deque<Waiter*> waiting_;  // in the frames of those who wait
};

void AddHeaders(const HttpQuestion& question, HttpRequest& ask) {
  const std::string& host = question.host;
  ask.set(http::field::host, host.find(':') == std::string::npos
                                 ? fmt::format("{}:{}", host, question.port)
                                 : fmt::format("[{}]:{}", host, question.port));
  ask.set(http::field::user_agent, "sonde/" SONDE_VERSION);
}

// With which an exchange fails, where it is no error of the connection.
class Failure final : public std::runtime_error {
 public:
  Failure(Code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Code code() const { return code_; }

 private:
  const Code code_;
};

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }
beast::string_view Wire(std::string_view text) { return {text.data(), text.size()}; }

using Addresses = asio::ip::tcp::resolver::results_type;

// A request on its connection. Each part may take the request's time.
class Talk {
 public:
  Talk(const asio::any_io_executor& executor, const HttpQuestion& question)
      : question_(question), request_(question.request), stream_(executor) {
    AddHeaders(question_, request_);
    request_.keep_alive(false);
  }

  asio::awaitable<void> Connect(const Addresses& addresses) {
    stream_.expires_after(std::chrono::nanoseconds(question_.timeout));
    co_await stream_.async_connect(addresses, asio::use_awaitable);
  }
  // Up to the header of the answer, in what is left of that time.
  asio::awaitable<void> Begin() {
    if (!question_.token.empty()) co_await Prove();
    co_await http::async_write(stream_, request_, asio::use_awaitable);
    parser_.body_limit(question_.max_body);
    co_await http::async_read_header(stream_, buffer_, parser_, asio::use_awaitable);
  }
  asio::awaitable<void> End(HttpResponse& out) {
    stream_.expires_after(std::chrono::nanoseconds(question_.timeout));
    co_await http::async_read(stream_, buffer_, parser_, asio::use_awaitable);
    out = parser_.release();
  }

 private:
  // Lets the peer prove that it knows the token, and puts our proof into the request.
  asio::awaitable<void> Prove() {
    const Result<std::string> nonce = web::NewNonce();
    if (!nonce.ok()) throw Failure(nonce.status().code(), std::string(nonce.status().message()));
    HttpRequest ask(http::verb::get, Wire(web::kProofPath), 11);
    AddHeaders(question_, ask);
    ask.set(http::field::authorization, web::AskerNonceText(*nonce));
    co_await http::async_write(stream_, ask, asio::use_awaitable);
    http::response_parser<http::string_body> parser;
    parser.body_limit(kMaxProof);
    co_await http::async_read(stream_, buffer_, parser, asio::use_awaitable);
    const HttpResponse& told = parser.get();
    // A head with too many connections says so to everybody.
    if (told.result() == http::status::service_unavailable) {
      throw Failure(Code::kUnavailable, "the head answers 503");
    }
    const asio::ip::tcp::endpoint peer = stream_.socket().remote_endpoint();
    const std::string_view proof = View(told[Wire(web::kProofHeader)]);
    const web::ProofParts parts{question_.token, *nonce,
                                std::string(web::ProofMember(proof, "nonce").value_or("")),
                                web::AddressText(peer.data(), peer.size())};
    if (parts.head_nonce.empty() ||
        !web::IsSameProof(web::ProofMember(proof, "proof").value_or(""), web::HeadProof(parts))) {
      throw Failure(Code::kPermission,
                    "who listens there does not prove to be the step's head, and was told nothing");
    }
    const std::string digest = web::DigestOf(request_.body());
    const std::string own =
        web::AskerProof(parts, {View(request_.method_string()), View(request_.target()), digest});
    request_.set(http::field::authorization, web::AskerProofText(own, digest));
  }

  static constexpr uint64_t kMaxProof = 4096;  // the body of an answer that has none, or an error's

  const HttpQuestion& question_;
  HttpRequest request_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
};

asio::awaitable<void> SendAlone(const HttpQuestion& question, HttpResponse& out) {
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const Addresses addresses =
      co_await resolver.async_resolve(question.host, question.port, asio::use_awaitable);
  Talk talk(executor, question);
  co_await talk.Connect(addresses);
  co_await talk.Begin();
  co_await talk.End(out);
}

// Blocks its thread.
asio::awaitable<Addresses> Resolve(std::string host, std::string port) {
  asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
  co_return resolver.resolve(host, port);
}

Status FromError(const boost::system::error_code& error, std::string_view what, uint64_t max_body) {
  if (error == http::error::body_limit) {
    return {Code::kLimit, fmt::format("{}: the answer has more than {} bytes", what, max_body)};
  }
  Code code = Code::kUnavailable;
  if (error == asio::error::operation_aborted) code = Code::kBusy;
  if (error == beast::error::timeout) code = Code::kTimeout;
  const bool ended = error == http::error::end_of_stream || error == http::error::partial_message;
  if (!ended && error.category() == make_error_code(http::error::end_of_stream).category()) {
    code = Code::kCorrupt;
  }
  return {code, fmt::format("{}: {}", what, error.message())};
}

Status FromFailure(const std::exception_ptr& failure, std::string_view what, uint64_t max_body) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& e) {
    return FromError(e.code(), what, max_body);
  } catch (const Failure& e) {
    return {e.code(), fmt::format("{}: {}", what, e.what())};
  } catch (const std::exception& e) {
    return {Code::kUnavailable, fmt::format("{}: {}", what, e.what())};
  }
}

Status NoAnswer(std::string_view what, Nanos timeout) {
  return {Code::kTimeout, fmt::format("{}: no answer in {}", what, FormatDuration(timeout))};
}

// An exchange under way. Its timer is separate, since resolving a name has none: the first of both
// to end calls back.
class Exchanging : public std::enable_shared_from_this<Exchanging> {
 public:
  Exchanging(asio::io_context& context, HttpQuestion asked, HttpClient::Callback done)
      : question(std::move(asked)), end_(context), callback_(std::move(done)) {}

  // Starts its time, perhaps anew.
  void BeginTime() {
    end_.expires_after(std::chrono::nanoseconds(question.timeout));
    end_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) self->Finish(NoAnswer(self->question.what, self->question.timeout));
    });
  }
  // Stops its time: it waits for other requests now, not for its peer.
  void StopTime() { end_.cancel(); }
  bool over() const { return callback_ == nullptr; }
  // The first end counts: who waits when the second comes has nothing to do with it.
  void Finish(Result<HttpAnswer> result) {
    if (over()) return;
    end_.cancel();
    // A connection that just ends says nothing of the others: it may have been one too many.
    const bool late = result.status().code() == Code::kTimeout && !question.waits_for_others;
    if (of_peer && (late || !connected)) of_peer->SendAway();
    std::exchange(callback_, nullptr)(std::move(result));
  }

  const HttpQuestion question;
  HttpAnswer answer;
  std::shared_ptr<TurnsInOrder> of_peer;  // of all requests to the peer, once this has a turn
  bool connected = false;

 private:
  asio::steady_timer end_;
  HttpClient::Callback callback_;
};

}  // namespace

Result<HttpResponse> HttpExchange(HttpQuestion question) try {
  asio::io_context context(1);
  HttpResponse response;
  std::exception_ptr failure;
  bool ended = false;
  asio::co_spawn(context, SendAlone(question, response), [&](std::exception_ptr e) {
    failure = std::move(e);
    ended = true;
  });
  // Resolving a name has no timeout of its own.
  context.run_for(std::chrono::nanoseconds(question.timeout));
  if (!ended) return NoAnswer(question.what, question.timeout);
  if (failure) return FromFailure(failure, question.what, question.max_body);
  return response;
} catch (const std::exception& e) {
  return Status(Code::kUnavailable, fmt::format("{}: {}", question.what, e.what()));
}

struct HttpClient::Core {
  // Of all requests together.
  static constexpr size_t kMaxSockets = 256;
  // Of the requests to one peer. A server with too many connections closes one whose client has not
  // sent its token yet (web/server/session_set.h): many questions at once, one for each metric of a
  // step, must not do that to each other.
  static constexpr size_t kMaxToOnePeer = 16;
  // A host name that hangs must not delay the others.
  static constexpr size_t kResolvers = 4;

  void Work() {
    pthread_setname_np(pthread_self(), "sonde-asks");
    for (bool running = true; running;) {
      try {
        context->run();
        running = false;
      } catch (const std::exception& e) {
        log::Error("asking heads: {}", e.what());
      }
    }
  }
  std::shared_ptr<TurnsInOrder> TurnsOf(const HttpQuestion& question);
  asio::awaitable<std::shared_ptr<void>> Connection(std::shared_ptr<TurnsInOrder> of_peer);
  asio::awaitable<Addresses> Find(const HttpQuestion& question);
  asio::awaitable<void> Send(std::shared_ptr<Exchanging> open);

  const std::shared_ptr<asio::io_context> context = std::make_shared<asio::io_context>(1);
  asio::executor_work_guard<asio::io_context::executor_type> work{context->get_executor()};
  const std::shared_ptr<TurnsInOrder> sockets =
      std::make_shared<TurnsInOrder>(context, kMaxSockets);
  // The requests under way; used on the client's thread.
  std::map<std::pair<std::string, std::string>, std::weak_ptr<TurnsInOrder>> peers;
  std::thread thread;
  std::optional<asio::thread_pool> resolvers;  // destroyed first: it posts to the context
};

std::shared_ptr<TurnsInOrder> HttpClient::Core::TurnsOf(const HttpQuestion& question) {
  std::erase_if(peers, [](const auto& peer) { return peer.second.expired(); });
  std::weak_ptr<TurnsInOrder>& known = peers[{question.host, question.port}];
  std::shared_ptr<TurnsInOrder> turns = known.lock();
  if (!turns) known = turns = std::make_shared<TurnsInOrder>(context, kMaxToOnePeer);
  return turns;
}

// Whoever waited for a peer that has failed meanwhile does not wait for its time as well.
asio::awaitable<std::shared_ptr<void>> HttpClient::Core::Connection(
    std::shared_ptr<TurnsInOrder> of_peer) {
  try {
    co_return co_await of_peer->Take();
  } catch (const boost::system::system_error&) {
    throw std::runtime_error("another request just failed there");
  }
}

asio::awaitable<Addresses> HttpClient::Core::Find(const HttpQuestion& question) {
  boost::system::error_code error;
  const auto address = asio::ip::make_address(question.host, error);
  uint16_t port = 0;
  const char* end = question.port.data() + question.port.size();
  const auto [read, wrong] = std::from_chars(question.port.data(), end, port);
  if (!error && wrong == std::errc() && read == end) {
    co_return Addresses::create({address, port}, question.host, question.port);
  }
  co_return co_await asio::co_spawn(*resolvers, Resolve(question.host, question.port),
                                    asio::use_awaitable);
}

// An exchange's time is what its peer takes, not what it waits for other exchanges.
asio::awaitable<void> HttpClient::Core::Send(std::shared_ptr<Exchanging> open) {
  const HttpQuestion& question = open->question;
  const std::shared_ptr<TurnsInOrder> of_peer = TurnsOf(question);
  const std::shared_ptr<void> connection = co_await Connection(of_peer);
  const std::shared_ptr<void> socket = co_await sockets->Take();
  open->of_peer = of_peer;
  open->BeginTime();
  const Addresses addresses = co_await Find(question);
  if (open->over()) co_return;
  Talk talk(co_await asio::this_coro::executor, question);
  co_await talk.Connect(addresses);
  open->connected = true;
  co_await talk.Begin();
  if (question.turns) {
    open->StopTime();
    open->answer.turn = co_await static_cast<TurnsInOrder&>(*question.turns).Take();
    open->BeginTime();
  }
  co_await talk.End(open->answer.response);
}

HttpClient::HttpClient() : core_(std::make_unique<Core>()) {
  // Signals are for the program's own thread.
  const SignalsBlocked blocked;
  core_->resolvers.emplace(Core::kResolvers);
  core_->thread = std::thread([core = core_.get()] { core->Work(); });
}

HttpClient::~HttpClient() {
  core_->context->stop();
  core_->thread.join();
}

void HttpClient::Exchange(HttpQuestion question, Callback callback) const {
  auto open =
      std::make_shared<Exchanging>(*core_->context, std::move(question), std::move(callback));
  asio::post(*core_->context, [core = core_.get(), open = std::move(open)] {
    asio::co_spawn(*core->context, core->Send(open), [open](const std::exception_ptr& failure) {
      const HttpQuestion& asked = open->question;
      open->Finish(failure ? Result<HttpAnswer>(FromFailure(failure, asked.what, asked.max_body))
                           : std::move(open->answer));
    });
  });
}

std::shared_ptr<Turns> HttpClient::NewTurns(size_t most) const {
  return std::make_shared<TurnsInOrder>(core_->context, most);
}

}  // namespace sonde::serve
