#include "web/server/server.h"

#include <fmt/core.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/niceness.h"
#include "core/signals_blocked.h"
#include "core/text/port_range.h"
#include "web/server/refusals.h"
#include "web/server/session.h"
#include "web/server/wire_text.h"
#include "web/source/tick_signal.h"

namespace sonde::web {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kAcceptPause(100);
constexpr int kSendBuffer = 256 * 1024;  // without it the kernel holds megabytes for a slow reader

// For a client for which there is no room; its request is not read.
std::string NoRoom() { return TextOf(Busy("all connections are taken; ask once more")); }

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

struct Server::Core {
  Core(const Options& options, std::shared_ptr<const DataSource> source)
      : state(options, std::move(source)),
        context(options.threads),
        acceptor(asio::make_strand(context)),
        pause(acceptor.get_executor()) {
    const auto last = std::make_shared<std::promise<void>>();
    let_go = last->get_future();
    alive = std::shared_ptr<Core>(this, [last](Core*) { last->set_value(); });
  }
  ~Core() {
    alive.reset();
    let_go.wait();
  }

  Status Listen(const Options& options);
  void Take(Session::Socket socket, const std::string& begun);
  void Adopt(int fd, std::string begun);
  void Run(int thread_count, int niceness);
  void Work(int niceness);
  void Accept();
  void OnAccept(const error_code& error, tcp::socket socket);
  void OnTick();
  void Stop();

  // Locked by other threads while they hand something over. At the end these are waited for: the
  // last reference to the source must not be dropped on a thread of the source.
  std::shared_ptr<Core> alive;
  std::future<void> let_go;
  ServerState state;  // outlives the context, whose destructor destroys sessions
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
  tcp::acceptor acceptor;
  asio::steady_timer pause;
  std::vector<std::thread> threads;
  uint16_t port = 0;
};

Status Server::Core::Listen(const Options& options) {
  error_code error;
  const auto address = asio::ip::make_address(options.address, error);
  if (error) {
    return {Code::kInvalid, fmt::format("'{}' is no numeric IP address", options.address)};
  }
  const bool any = options.port == 0;
  Status bound = any ? Status(Code::kUnavailable, "") : Bind(acceptor, {address, options.port});
  if (!bound.ok() && (any || options.port_if_taken_any)) {
    TryPorts(options.other_ports, [&](uint16_t other) {
      bound = Bind(acceptor, {address, other});
      return bound.ok();
    });
  }
  if (!bound.ok()) {
    std::string where = fmt::format("listen on {} port {}", options.address, options.port);
    if (options.other_ports.first != 0) {
      where += fmt::format(", or {}", PortRangeText(options.other_ports));
    }
    return bound.Within(where);
  }
  port = acceptor.local_endpoint(error).port();
  return {};
}

void Server::Core::Run(int thread_count, int niceness) {
  // Signals are for the program's own threads.
  const SignalsBlocked blocked;
  try {
    for (int i = 0; i < thread_count; ++i) {
      threads.emplace_back([this, niceness] { Work(niceness); });
    }
  } catch (const std::system_error& e) {
    log::Warning("HTTP: {} of {} threads started: {}", threads.size(), thread_count, e.what());
  }
}

void Server::Core::Work(int niceness) {
  BeNicer(niceness);
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
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  Take(std::move(socket), "");
  Accept();
}

void Server::Core::Take(Session::Socket socket, const std::string& begun) {
  error_code ignored;
  if (state.sessions.MakeRoom()) {
    socket.set_option(asio::socket_base::send_buffer_size(kSendBuffer), ignored);
    Session::Make(state, alive, std::move(socket))->Start(begun);
  } else {
    socket.non_blocking(true, ignored);
    socket.send(asio::buffer(NoRoom()), 0, ignored);
  }
}

void Server::Core::Adopt(int fd, std::string begun) {
  int family = AF_UNSPEC;
  socklen_t size = sizeof(family);
  getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
  Session::Socket socket(asio::make_strand(context));
  error_code error;
  socket.assign({family, 0}, fd, error);
  if (error) {
    close(fd);
    return;
  }
  asio::post(acceptor.get_executor(),
             [this, begun = std::move(begun), socket = std::move(socket)]() mutable {
               Take(std::move(socket), begun);
             });
}

// Called on the source's thread, which must not wait: one of ours tells the feeds.
void Server::Core::OnTick() {
  if (state.feeds == 0) return;
  asio::post(context, [this] { state.sessions.ForEach([](Session& session) { session.Wake(); }); });
}

// Answers under way may end within the bound; threads end when no work is left.
void Server::Core::Stop() {
  if (TickSignal* ticks = state.context.series->ticks()) ticks->Forget();
  asio::post(acceptor.get_executor(), [this] {
    error_code ignored;
    acceptor.close(ignored);
    pause.cancel();
    work.reset();
  });
  state.sessions.Stop();
  state.sessions.ForEach([](Session& session) { session.Stop(); });
  if (state.sessions.WaitUntilEmpty(state.limits.stop_timeout)) return;
  state.sessions.ForEach([](Session& session) { session.Close(); });
}

Server::Server(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Result<std::unique_ptr<Server>> Server::Start(const Options& options,
                                              std::shared_ptr<const DataSource> source) {
  if (options.token.empty()) {
    return Status(Code::kInvalid, "an HTTP server needs a token: without one it would be open");
  }
  try {
    auto core = std::make_unique<Core>(options, std::move(source));
    core->state.context.executor = [weak = std::weak_ptr(core->alive)](std::function<void()> f) {
      if (const std::shared_ptr<Core> alive = weak.lock()) {
        asio::post(alive->context, std::move(f));
      }
    };
    if (options.listen) SONDE_RETURN_IF_ERROR(core->Listen(options));
    if (options.listen) core->Accept();
    core->Run(options.threads, options.niceness);
    if (core->threads.empty()) {
      return Status(Code::kLimit, "start the HTTP server: no thread could be started");
    }
    if (TickSignal* ticks = core->state.context.series->ticks()) {
      ticks->Listen([raw = core.get()] { raw->OnTick(); });
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

void Server::Adopt(int fd, std::string begun) { core_->Adopt(fd, std::move(begun)); }

size_t Server::connections() const { return core_->state.sessions.size(); }

uint16_t Server::port() const { return core_->port; }

size_t Server::held_bytes() const { return core_->state.held_bytes; }

}  // namespace sonde::web
