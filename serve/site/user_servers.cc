#include "serve/site/user_servers.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/log.h"

namespace sonde::site {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::string_view kOk = "ok ";
constexpr std::string_view kError = "error ";

}  // namespace

struct UserServers::UserServer {
  UserServer(asio::io_context& context, std::string of)
      : user(std::move(of)), control(context), deadline(context) {}

  const std::string user;
  asio::posix::stream_descriptor control;
  asio::steady_timer deadline;  // for the process to start
  std::string token;            // "": it has not started yet
  std::vector<Visit> waiting;
  uint64_t used = 0;
};

UserServers::UserServers(asio::io_context& context, UniqueFd starter, size_t most)
    : context_(context), starter_(context, starter.Release()), most_(most) {
  AwaitStarter();
}

UserServers::~UserServers() = default;

bool UserServers::MakeRoom() {
  if (servers_.size() < most_) return true;
  auto oldest = servers_.end();
  for (auto at = servers_.begin(); at != servers_.end(); ++at) {
    if (at->second->token.empty()) continue;
    if (oldest == servers_.end() || at->second->used < oldest->second->used) oldest = at;
  }
  if (oldest == servers_.end()) return false;
  error_code ignored;
  oldest->second->control.close(ignored);
  servers_.erase(oldest);
  return true;
}

void UserServers::Hand(const std::string& user, Visit visit) {
  Give(user, std::move(visit), false);
}

void UserServers::Give(const std::string& user, Visit visit, bool again) {
  if (!servers_.contains(user)) {
    if (!MakeRoom())
      return visit.refuse({Code::kUnavailable, "too many archives are being opened"});
    Start(user);
  }
  const auto at = servers_.find(user);
  if (at == servers_.end()) {
    return visit.refuse({Code::kUnavailable, "no process can be started for this archive now"});
  }
  UserServer& server = *at->second;
  server.used = ++uses_;
  if (server.token.empty()) {
    if (server.waiting.size() < kMaxWaiting) return server.waiting.push_back(std::move(visit));
    return visit.refuse({Code::kUnavailable, "too many wait for this archive to be opened"});
  }
  const Status sent = SendMessage(server.control.native_handle(), visit.begun(server.token),
                                  visit.client->native_handle());
  if (sent.ok()) return;
  if (sent.code() == Code::kBusy) {
    return visit.refuse({Code::kUnavailable, "too many requests for this archive; ask again"});
  }
  // The process has just ended.
  servers_.erase(at);
  if (again)
    return visit.refuse({Code::kUnavailable, "the archive's process has ended; ask again"});
  Give(user, std::move(visit), true);
}

void UserServers::Start(const std::string& user) {
  if (const Status asked = SendMessage(starter_.native_handle(), user); !asked.ok()) {
    return log::Warning("start a process for {}: {}", user, asked.message());
  }
  auto server = std::make_shared<UserServer>(context_, user);
  server->deadline.expires_after(std::chrono::nanoseconds(kPatience));
  server->deadline.async_wait([this, weak = std::weak_ptr(server)](const error_code& cancelled) {
    const auto late = weak.lock();
    if (cancelled || !late || !late->token.empty()) return;
    Fail(late,
         {Code::kUnavailable,
          fmt::format("the archive could not be opened in {} s: its file system does not answer",
                      kPatience / kSecond)});
  });
  servers_.emplace(user, std::move(server));
}

void UserServers::Fail(const std::shared_ptr<UserServer>& server, const Status& why) {
  const auto at = servers_.find(server->user);
  if (at != servers_.end() && at->second == server) servers_.erase(at);
  server->deadline.cancel();
  error_code ignored;
  server->control.close(ignored);
  log::Warning("the archive of {}: {}", server->user, why.message());
  for (const Visit& visit : std::exchange(server->waiting, {})) visit.refuse(why);
}

void UserServers::AwaitStarter() {
  starter_.async_wait(asio::posix::stream_descriptor::wait_read, [this](const error_code& error) {
    if (error) return;
    for (;;) {
      Result<Message> message = ReceiveMessage(starter_.native_handle(), false);
      if (!message.ok() && message.status().code() == Code::kBusy) return AwaitStarter();
      // The door can do nothing without the starter: it ends, and the whole server is started anew.
      if (!message.ok()) return context_.stop();
      OnStarted(*std::move(message));
    }
  });
}

// "ok USER" with the process's end, or "error USER WHY".
void UserServers::OnStarted(Message message) {
  const bool ok = message.text.starts_with(kOk);
  std::string_view rest = message.text;
  rest.remove_prefix(std::min(ok ? kOk.size() : kError.size(), rest.size()));
  const size_t end = std::min(rest.find(' '), rest.size());
  const auto at = servers_.find(std::string(rest.substr(0, end)));
  if (at == servers_.end() || at->second->control.is_open()) return;
  const std::shared_ptr<UserServer> server = at->second;
  if (!ok || !message.fd) {
    return Fail(server,
                {Code::kUnavailable, std::string(rest.substr(std::min(end + 1, rest.size())))});
  }
  error_code error;
  server->control.assign(message.fd.Release(), error);
  AwaitServer(server);
}

void UserServers::AwaitServer(const std::shared_ptr<UserServer>& server) {
  server->control.async_wait(asio::posix::stream_descriptor::wait_read,
                             [this, weak = std::weak_ptr(server)](const error_code& error) {
                               const auto alive = weak.lock();
                               if (!error && alive) OnServer(alive);
                             });
}

void UserServers::OnServer(const std::shared_ptr<UserServer>& server) {
  const Result<Message> message = ReceiveMessage(server->control.native_handle(), false);
  if (!message.ok() && message.status().code() == Code::kBusy) return AwaitServer(server);
  if (!message.ok()) {
    if (server->token.empty()) {
      return Fail(server, {Code::kUnavailable, "the process for this archive ended as it began"});
    }
    const auto at = servers_.find(server->user);
    if (at != servers_.end() && at->second == server) servers_.erase(at);
    return;
  }
  if (!message->text.starts_with(kOk)) {
    const std::string_view text = message->text;
    return Fail(server, {Code::kUnavailable,
                         std::string(text.substr(std::min(kError.size(), text.size())))});
  }
  server->token = message->text.substr(kOk.size());
  server->deadline.cancel();
  AwaitServer(server);
  for (Visit& visit : std::exchange(server->waiting, {}))
    Give(server->user, std::move(visit), false);
}

}  // namespace sonde::site
