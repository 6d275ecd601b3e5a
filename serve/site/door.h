// The door of a site's server: accepts connections, reads the head of one request of each, asks the
// gatekeeper who the visitor is and whose archive he may see, and hands the connection to that
// user's process, which answers and closes it. The door has no privilege and opens no archive.
//
// Whom no proxy names shows his token as well: in a header, or a browser in a cookie, which it gets
// as at any other server of Sonde's (web/server/auth.h). What a browser may have sent by itself,
// for whatever page, reaches the user's process as a cookie, so that it changes nothing by a GET.
//
// The door itself answers with refusals; with the page's files, to whoever has shown no token and
// opens the page, which holds nothing of a step; to GET /users: who the visitor is and, for
// administrators, which users have archives; and, over the socket for that, the token of the user
// whose process has connected, unless that is a browser's.
//
// Thread safety: the thread that runs the context.
#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
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
  static constexpr Nanos kPatience = 10 * kSecond;

  // The users who have archives, for administrators.
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

  void Accept(Listener& listener);
  void OnHead(const std::shared_ptr<Guest>& guest, size_t length);
  void OnRequest(const std::shared_ptr<Guest>& guest, const SiteRequest& request);
  void Enter(const std::shared_ptr<Guest>& guest, const SiteRequest& request,
             const Visitor& visitor, bool by_browser);
  web::Response TokenFor(std::optional<uid_t> peer, const SiteRequest& request) const;
  web::Response Users(const Visitor& visitor) const;
  void Remark(const Visitor& visitor, const Account& owner);

  boost::asio::io_context& context_;
  const Gatekeeper& gatekeeper_;
  const Tokens& tokens_;
  UserServers& servers_;
  const ListUsers users_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  const std::shared_ptr<size_t> guests_ = std::make_shared<size_t>(0);  // guests may outlive this
  std::map<std::pair<std::string, std::string>, Nanos> remarked_;  // who looked at whose archive
};

}  // namespace sonde::site
