// The door of a site's server: accepts connections, reads the head of one request of each, asks the
// gatekeeper who the visitor is and whose archive he may see, and hands the connection to that
// user's process, which answers and closes it. The door has no privilege and opens no archive.
//
// Whom no proxy names shows his token as well, as at any other server of Sonde's
// (web/server/auth.h). Where a browser may have sent the proof by itself, for whatever page, the
// user's process is told so (web::kByBrowserHeader), and changes nothing by a GET.
//
// The door itself answers with refusals; with the page's files, to whoever has shown no token and
// opens the page, which holds nothing of a step; to GET /users: who the visitor is and, for
// administrators, which users have archives; and, over the socket for that, the token of the user
// whose process has connected, unless that is a browser's.
//
// Who asks is found out by threads of the door's own, since a name service may take its time and a
// directory of archives may be large: other visitors do not wait for it. A user who connects over
// the Unix socket has a share of the connections, so that no one takes them all; the proxy, which
// comes for others, has no share.
//
// Thread safety: the thread that runs the context.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/time.h"
#include "daemon/loop.h"
#include "serve/site/gatekeeper.h"
#include "serve/site/tokens.h"
#include "serve/site/user_servers.h"
#include "web/http/http.h"

namespace sonde::site {

class Door {
 public:
  static constexpr size_t kHeadBytes = 8192;
  static constexpr size_t kMaxGuests = 512;  // being read or answered here
  static constexpr size_t kShare = 64;       // of them, for one user
  static constexpr size_t kWorkers = 4;
  static constexpr Nanos kPatience = 10 * kSecond;

  // The users who have archives, for administrators; called by any of the workers.
  using ListUsers = std::function<std::vector<std::string>()>;

  Door(boost::asio::io_context& context, const Gatekeeper& gatekeeper, const Tokens& tokens,
       UserServers& servers, ListUsers users);
  ~Door();

  enum class Tells { kArchives, kTokens };
  // A listening socket; kTokens: a Unix socket.
  Status Listen(UniqueFd listener, Tells tells = Tells::kArchives);

 private:
  using Socket = UserServers::Socket;
  struct Listener;
  class Guest;

  // What becomes of a request: an answer from here, or a way into the owner's process.
  struct Entry {
    Visitor visitor;
    Account owner;
    bool by_browser;  // which may have sent the proof by itself
  };
  using Decision = std::variant<web::Response, Entry>;

  void Accept(Listener& listener);
  void OnHead(const std::shared_ptr<Guest>& guest, size_t length);
  // By a worker.
  Decision Decide(const SiteRequest& request, std::optional<uid_t> peer) const;
  Decision MayEnter(const SiteRequest& request, const Visitor& visitor, bool by_browser) const;
  web::Response TokenFor(std::optional<uid_t> peer, const SiteRequest& request) const;
  web::Response Users(const Visitor& visitor) const;

  void Enter(const std::shared_ptr<Guest>& guest, const SiteRequest& request, const Entry& entry);
  void Remark(const Visitor& visitor, const Account& owner);

  boost::asio::io_context& context_;
  const Gatekeeper& gatekeeper_;
  const Tokens& tokens_;
  UserServers& servers_;
  const ListUsers users_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  struct Guests {
    size_t all = 0;
    std::map<uid_t, size_t> of;  // of those who have a share
  };
  const std::shared_ptr<Guests> guests_ = std::make_shared<Guests>();  // guests may outlive this
  std::map<std::pair<std::string, std::string>, Nanos> remarked_;  // who looked at whose archive
  boost::asio::thread_pool workers_{kWorkers};
};

}  // namespace sonde::site
