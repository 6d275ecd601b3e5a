// The users' processes for the door: it asks for a process when a visitor wants a user's archive,
// gives it the connections, and ends the least recently used one when there are too many. A process
// ends by itself when it has had no request for a while.
//
// Thread safety: the thread that runs the context.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "core/time.h"
#include "serve/site/messages.h"

namespace sonde::site {

class UserServers {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  // A connection that waits for a process.
  struct Visit {
    std::shared_ptr<Socket> client;
    // The text to send with it, to a process with that token.
    std::function<std::string(const std::string& token)> begun;
    // Called with the reason, if the connection does not get there.
    std::function<void(const Status& why)> refuse;
  };

  static constexpr size_t kMaxWaiting = 64;  // for one process to start
  static constexpr Nanos kPatience = 20 * kSecond;

  // `starter`: the process that starts others. At most `most` of them at a time.
  UserServers(boost::asio::io_context& context, UniqueFd starter, size_t most);
  ~UserServers();

  void Hand(const std::string& user, Visit visit);
  size_t size() const { return servers_.size(); }

 private:
  struct UserServer;

  bool MakeRoom();
  void Start(const std::string& user);
  void Give(const std::string& user, Visit visit, bool again);
  void AwaitStarter();
  void OnStarted(Message message);
  void AwaitServer(const std::shared_ptr<UserServer>& server);
  void OnServer(const std::shared_ptr<UserServer>& server);
  void Fail(const std::shared_ptr<UserServer>& server, const Status& why);

  boost::asio::io_context& context_;
  boost::asio::posix::stream_descriptor starter_;
  const size_t most_;
  uint64_t uses_ = 0;
  std::map<std::string, std::shared_ptr<UserServer>> servers_;
};

}  // namespace sonde::site
